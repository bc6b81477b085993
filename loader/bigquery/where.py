"""Where one file is in BigQuery: its row, its refusal, and what the ledger says of its day.

**Invariant:** reads only, and never a table without naming days: the partitions of others are not
paid for.

It refuses nothing: a table that is not there is told as such.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.format.bigquery_names import Naming, TableName, table_name
from jostler.format.names import REJECTED
from loader.bigquery.ledger import LOADS, Meta
from loader.bigquery.warehouse import Warehouse

if TYPE_CHECKING:
    from datetime import date

    from jostler.format.names import Place
    from loader.bigquery.warehouse import Json

_ROWS_SQL = """\
SELECT CAST(`date` AS STRING) AS day, archiver.Filename AS filename, archiver.ArchiveURL AS object
FROM `{table}` WHERE `date` >= '{start}' AND `date` <= '{end}' AND EXISTS
  (SELECT 1 FROM UNNEST(@tails) AS tail WHERE ENDS_WITH(CONCAT('/', archiver.Filename), tail))"""
_REJECTED_SQL = """\
SELECT CAST(`date` AS STRING) AS day, raw.Filename AS filename, archiver.ArchiveURL AS object,
  raw.TimeAdded AS read, raw.Reason AS reason, raw.Field AS field, raw.Detail AS detail
FROM `{table}` WHERE `date` >= '{start}' AND `date` <= '{end}'
AND raw.Datatype IN UNNEST(@datatypes) AND EXISTS
  (SELECT 1 FROM UNNEST(@tails) AS tail WHERE ENDS_WITH(CONCAT('/', raw.Filename), tail))"""
_REFUSED_SQL = """\
SELECT CAST(`date` AS STRING) AS day, Filename AS filename, ArchiveURL AS object, Line AS line,
  Reason AS reason, Field AS field, Detail AS detail, JobID AS job
FROM `{table}` WHERE `date` >= '{start}' AND `date` <= '{end}'
AND `table` IN UNNEST(@tables) AND EXISTS
  (SELECT 1 FROM UNNEST(@tails) AS tail WHERE ENDS_WITH(CONCAT('/', Filename), tail))"""
_LEDGER_SQL = """\
SELECT CAST(`date` AS STRING) AS day, Status AS status, Finished AS finished, JobID AS job,
  RowsLoaded AS rows_loaded, RowsRejected AS rows_rejected, ErrorText AS error
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY `date` ORDER BY Finished DESC) AS nth
  FROM `{table}` WHERE `date` >= '{start}' AND `date` <= '{end}' AND `table` IN UNNEST(@tables)
) WHERE nth = 1 ORDER BY day"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A file to look for.

    Attributes:
        place: the experiment's.
        datatype: the file's own.
        filename: as rows have it, or the end of it from a slash on.
        start: first day to look at.
        end: last day to look at.
    """

    place: Place
    datatype: str
    filename: str
    start: date
    end: date


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What BigQuery has on a file; each row with `day`, `filename` and `object`.

    Attributes:
        table: where its row belongs.
        there: whether there is such a table.
        rows: of the table.
        rejected: rows of the table of rejected1: the agent refused the file.
        refused: rows of rejects: the loader refused the row.
        ledger: for each day the newest line of the ledger.
    """

    table: str
    there: bool
    rows: list[Json]
    rejected: list[Json]
    refused: list[Json]
    ledger: list[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whom to ask: as the loader's options of these names; `patience_s` bounds each request."""

    project: str
    location: str
    naming: Naming
    meta_dataset: str
    patience_s: float


def find(sought: Sought, account: Account) -> Told:
    """Ask BigQuery for a file.

    Raises:
        RunError: there are no credentials.
        WarehouseError: BigQuery cannot be asked.
    """
    warehouse = Warehouse(account.project, account.location, account.patience_s)
    try:
        place, project = sought.place, account.project
        name = table_name(account.naming, project, place, sought.datatype)
        own = table_name(account.naming, project, place, REJECTED)
        meta = Meta(warehouse, account.meta_dataset)
        ask = _Asking(warehouse, sought, str(name))
        return Told(
            table=str(name),
            there=warehouse.get_table(name) is not None,
            rows=ask.rows(name, _ROWS_SQL),
            rejected=ask.rows(own, _REJECTED_SQL),
            refused=ask.rows(meta.name("rejects"), _REFUSED_SQL),
            ledger=ask.rows(meta.name(LOADS), _LEDGER_SQL),
        )
    finally:
        warehouse.close()


class _Asking:
    """Queries that share their parameters."""

    def __init__(self, warehouse: Warehouse, sought: Sought, table: str) -> None:
        self._warehouse = warehouse
        self._sought = sought
        self._parameters = {
            "tails": [f"/{sought.filename}"],
            "datatypes": [sought.datatype],
            "tables": [table],
        }

    def rows(self, name: TableName, sql: str) -> list[Json]:
        """Return the rows of a query over one table; none if there is no such table."""
        if self._warehouse.get_table(name) is None:
            return []
        query = sql.format(table=name, start=self._sought.start, end=self._sought.end)
        used = {key: value for key, value in self._parameters.items() if f"@{key}" in query}
        return self._warehouse.rows(query, **used)
