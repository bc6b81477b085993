"""Queries for one file in BigQuery: its row, its rejection, and its day in the ledger.

**Invariant:** it only reads, and every query names the days, so that BigQuery bills their
partitions only.  A table that does not exist is an answer, not an error.

This module imports the official client; import it only when BigQuery is queried.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import GoogleAPIError, NotFound
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import bigquery
from google.cloud.bigquery.retry import DEFAULT_JOB_RETRY, DEFAULT_RETRY

from jostler.archive.load_status import LoadStatus, load_status
from jostler.errors import QueryError
from jostler.format.bigquery_names import Naming, TableName, table_name
from jostler.format.names import REJECTED
from jostler.storage.causes import cause

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from jostler.format.names import Place

Json = dict[str, Any]
TIMEOUT_S = 60.0
LOADS, REJECTS, REQUEST_STATUS = "loads", "rejects", "request_status"

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

_LEDGER_ROWS_SQL = """\
SELECT `table` AS table_name, CAST(`date` AS STRING) AS day, Status AS status, Attempt AS attempt,
  Started AS started, Finished AS finished, Reason AS reason, Bundles AS bundles,
  RowsRead AS rows_read, RowsLoaded AS rows_loaded, RowsRejected AS rows_rejected,
  RowsRepeated AS rows_repeated, JobID AS job, ErrorText AS error
FROM `{table}` WHERE `date` >= '{start}' AND `date` <= '{end}' AND `table` IN UNNEST(@tables)
ORDER BY Finished DESC"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The file to search for.

    Attributes:
        place: the experiment's place in the bucket.
        datatype: the file's datatype.
        filename: the Filename of its row, or the end of it after a slash.
        start: the first day to search.
        end: the last day to search.
    """

    place: Place
    datatype: str
    filename: str
    start: date
    end: date


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRows:
    """The rows found for one file; each has `day`, `filename` and `object`.

    Attributes:
        table: the table of the file's datatype.
        there: whether that table exists.
        rows: rows of that table.
        rejected: rows of the table `rejected1`: the agent rejected the file.
        refused: rows of the table `rejects`: the loader rejected the row.
        ledger: the newest ledger row of each day.
    """

    table: str
    there: bool
    rows: list[Json]
    rejected: list[Json]
    refused: list[Json]
    ledger: list[Json]


class TableReader:
    """Reads the tables of one project, with the loader's ledger and rejects.

    Args:
        project: the project of the tables and of the queries.
        location: the location of the datasets.
        naming: the naming rule of v1 tables.
        meta_dataset: the dataset of ledger and rejects.
        patience_s: how long a failing request is retried.

    Raises:
        QueryError: there are no credentials.
    """

    def __init__(
        self, *, project: str, location: str, naming: Naming, meta_dataset: str, patience_s: float
    ) -> None:
        self._project = project
        self._location = location
        self._naming = naming
        self._meta_dataset = meta_dataset
        self._patience_s = patience_s
        self._client = open_client(project, location)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def find(self, sought: Sought) -> FileRows:
        """Return all rows about a file.

        Raises:
            QueryError: a query fails.
        """
        name = table_name(self._naming, self._project, sought.place, sought.datatype)
        own = table_name(self._naming, self._project, sought.place, REJECTED)
        parameters = {
            "tails": [f"/{sought.filename}"],
            "datatypes": [sought.datatype],
            "tables": [str(name)],
        }

        def rows(table: TableName, sql: str) -> list[Json]:
            query = sql.format(table=table, start=sought.start, end=sought.end)
            used = {key: value for key, value in parameters.items() if f"@{key}" in query}
            return self._rows(query, used) if self._is_there(table) else []

        return FileRows(
            table=str(name),
            there=self._is_there(name),
            rows=rows(name, _ROWS_SQL),
            rejected=rows(own, _REJECTED_SQL),
            refused=rows(self._meta(REJECTS), _REFUSED_SQL),
            ledger=rows(self._meta(LOADS), _LEDGER_SQL),
        )

    def ledger(self, tables: Sequence[str], start: date, end: date) -> list[Json]:
        """Return the ledger's rows about some tables, the newest first; none without a ledger.

        Args:
            tables: each as `project.dataset.table`.
            start: the first day.
            end: the last day.

        Raises:
            QueryError: the query fails.
        """
        ledger = self._meta(LOADS)
        if not tables or not self._is_there(ledger):
            return []
        sql = _LEDGER_ROWS_SQL.format(table=ledger, start=start, end=end)
        return self._rows(sql, {"tables": list(tables)})

    def load_status(self, experiment: str, today: date) -> LoadStatus:
        """Return how the loads of an experiment stand; nothing without a ledger.

        Raises:
            QueryError: a query fails.
        """
        ledger, requests = self._meta(LOADS), self._meta(REQUEST_STATUS)
        columns = self._columns(ledger)
        if not columns:
            return LoadStatus()
        return load_status(
            lambda sql: self._rows(sql, {}),
            loads=str(ledger),
            columns=columns,
            requests=str(requests) if self._is_there(requests) else "",
            experiment=experiment,
            today=today,
        )

    def _meta(self, table: str) -> TableName:
        dataset = self._meta_dataset
        return TableName(project=self._project, dataset=dataset, table=table, wanted=dataset)

    def _is_there(self, name: TableName) -> bool:
        return bool(self._columns(name))

    def _columns(self, name: TableName) -> frozenset[str]:
        """Return the columns of a table; none if it does not exist."""
        columns = columns_of(self._client, name, self._patience_s)
        return frozenset(field.name for field in columns)

    def _rows(self, sql: str, parameters: dict[str, list[str]]) -> list[Json]:
        arrays = [
            bigquery.ArrayQueryParameter(key, "STRING", value) for key, value in parameters.items()
        ]
        return list(
            query_rows(
                self._client, sql, arrays, location=self._location, patience_s=self._patience_s
            )
        )


def columns_of(
    client: bigquery.Client, name: TableName, patience_s: float
) -> list[bigquery.SchemaField]:
    """Return the columns of a table; none if it does not exist.

    Raises:
        QueryError: BigQuery cannot be asked.
    """
    retry = DEFAULT_RETRY.with_timeout(patience_s)
    with translated(f"table {name}"):
        try:
            return list(client.get_table(str(name), retry=retry, timeout=TIMEOUT_S).schema)
        except NotFound:
            return []


def query_rows(
    client: bigquery.Client,
    sql: str,
    parameters: Sequence[Any],
    *,
    location: str,
    patience_s: float,
    page_rows: int | None = None,
) -> Iterator[Json]:
    """Run a query, and yield its rows page by page.

    Args:
        client: of the project that pays for it.
        sql: the query.
        parameters: its parameters, as the client has them.
        location: of the datasets.
        patience_s: how long a failing request is retried.
        page_rows: rows of a page; None for as many as BigQuery puts into one.

    Raises:
        QueryError: it fails.
    """
    with translated("query"):
        found = client.query_and_wait(
            sql,
            job_config=bigquery.QueryJobConfig(query_parameters=parameters),
            location=location,
            api_timeout=TIMEOUT_S,
            retry=DEFAULT_RETRY.with_timeout(patience_s),
            job_retry=DEFAULT_JOB_RETRY.with_timeout(patience_s),
            page_size=page_rows,
        )
        for row in found:
            yield dict(row.items())


def open_client(project: str, location: str) -> bigquery.Client:
    """Return a client; BIGQUERY_EMULATOR_HOST (a URL) selects another server.

    Raises:
        QueryError: there are no credentials.
    """
    emulated = bool(os.environ.get("BIGQUERY_EMULATOR_HOST"))
    with translated(f"BigQuery of {project}"):
        return bigquery.Client(
            project=project,
            location=location,
            credentials=AnonymousCredentials() if emulated else None,
        )


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn the client's errors into QueryErrors; `what` says what was tried."""
    try:
        yield
    except GoogleAuthError as exc:
        hint = "set up Workload Identity or GOOGLE_APPLICATION_CREDENTIALS"
        raise QueryError(f"{what}: {' '.join(str(exc).split())}", hint=hint) from exc
    except GoogleAPIError as exc:
        last = getattr(exc, "cause", None) or exc  # RetryError keeps the last failure in `cause`
        reason = cause(last) if isinstance(last, OSError) else " ".join(str(last).split())[:1000]
        raise QueryError(f"{what}: {reason}") from exc
    except OSError as exc:  # the errors of requests are OSErrors
        raise QueryError(f"{what}: {cause(exc)}", hint="check network and DNS") from exc
