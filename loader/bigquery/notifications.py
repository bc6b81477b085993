"""The table `notifications`, and the days of the ledger that receivers are yet to be told of.

**Invariant:** the ledger is the list of what is to be told, and rows of `notifications` are only
appended.  So a run that is killed loses no event: the next one finds the ledger's row, and no row
that says delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loader.bigquery.appends import LedgerAppender, LedgerRow
from loader.bigquery.ledger import LOADS, NOTIFICATIONS, REJECT_ROWS
from loader.errors import REFUSALS
from loader.explain import MARKED, PASSING, Flaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from jostler.format.bigquery_names import TableName
    from loader.bigquery.ledger import Ledger
    from loader.bigquery.warehouse import Json, Warehouse

Flaws = dict[tuple[Any, ...], Flaw]
TIMES = 3
"""A day that fails is told once, when it has failed so often since it last ended otherwise."""
SUBSCRIBED, DELIVERED, WAITING, EXPIRED = "subscribed", "delivered", "waiting", "expired"

# The column Objects is left out: it has eight characters for each object of the day, which would
# make events of hundreds of KB.
# What is told once ends when the day ends otherwise; of a table as a whole, with the first day that
# a run records which does not find the table wrong; of table or bucket, with a row without a day
# that says skipped: nothing is wrong with it any more.
_DUE_SQL = """\
SELECT * EXCEPT (refused, fine, ended, failures, nth) FROM (
  SELECT *,
    COUNTIF(Status = 'failed' AND NOT refused AND IFNULL(ErrorClass, '') != '{marked}') OVER (
      PARTITION BY `table`, `date`, ended ORDER BY Finished, Attempt
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS failures,
    ROW_NUMBER() OVER (
      PARTITION BY `table`, `date`, ended, Fingerprint, ErrorClass, ErrorText
      ORDER BY Finished, Attempt) AS nth
  FROM (
    SELECT *, IF(`date` IS NULL,
      COUNTIF(fine) OVER (
        PARTITION BY `table` ORDER BY Finished, Attempt
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
      COUNTIF(Status IN ('success', 'rejected', 'abandoned', 'deleted')) OVER (
        PARTITION BY `table`, `date` ORDER BY Finished, Attempt
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) AS ended
    FROM (
      SELECT * EXCEPT (Objects),
        IF(`date` IS NULL, Status = 'skipped',
          COUNTIF(`date` IS NULL AND Status != 'skipped') OVER (
            PARTITION BY `table`, RunID) = 0) AS fine,
        Status = 'failed' AND (IFNULL(ErrorClass, '') IN ({refusals})
          OR (`date` IS NULL AND IFNULL(FailureClass, '') NOT IN ({passing}))) AS refused
      FROM `{loads}` WHERE Status != 'skipped' OR `date` IS NULL
    )
  )
)
WHERE Finished >= TIMESTAMP '{since}' AND (Status IN ('success', 'rejected', 'abandoned')
  OR (refused AND nth = 1)
  OR (Status = 'failed' AND NOT refused AND IFNULL(ErrorClass, '') != '{marked}'
    AND failures = {times}))
ORDER BY Finished, `table`, `date`"""
_STATES_SQL = """\
SELECT EventID, Receiver, State, Tries, Written FROM `{notifications}`
WHERE State = 'subscribed' OR Recorded >= TIMESTAMP '{since}'"""
_FLAWS_SQL = """\
SELECT * EXCEPT (nth) FROM (
  SELECT RunID, `table`, `date`, ArchiveURL, Line, Filename, Field, Reason, Detail,
    ROW_NUMBER() OVER (PARTITION BY RunID, `table`, `date` ORDER BY ArchiveURL, Line) AS nth
  FROM `{rejects}` WHERE RunID IN UNNEST(@runs) AND `table` IN UNNEST(@tables)
) WHERE nth = 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What `notifications` says.

    Attributes:
        since: by receiver, from when on it is told.
        done: pairs of event and receiver that need nothing more: delivered or expired.
        tries: how often other pairs were tried.
    """

    since: dict[str, datetime]
    done: frozenset[tuple[str, str]]
    tries: dict[tuple[str, str], int]


class Notifications:
    """The table, used by one thread.

    Args:
        warehouse: the BigQuery project.
        ledger: the dataset of ledger and notifications.
        run: the id of this run.
    """

    def __init__(self, warehouse: Warehouse, ledger: Ledger, run: str) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._appender = LedgerAppender(warehouse, ledger, NOTIFICATIONS, run)
        self._run = run

    @property
    def source(self) -> TableName:
        """The ledger's table."""
        return self._ledger.name(LOADS)

    def prepare(self) -> None:
        """Create the table, or add columns that an older one lacks.

        Raises:
            RunError, WarehouseError: it cannot be used.
        """
        self._ledger.prepare_notifications()

    def known(self, since: datetime) -> Known:
        """Return what the table says of events recorded since an instant.

        Raises:
            WarehouseError: BigQuery cannot be asked.
        """
        name = self._ledger.name(NOTIFICATIONS)
        sql = _STATES_SQL.format(notifications=name, since=since.isoformat())
        begun: dict[str, datetime] = {}
        done = set()
        tries: dict[tuple[str, str], int] = {}
        for row in self._warehouse.rows(sql):
            pair = (row["EventID"], row["Receiver"])
            if row["State"] == SUBSCRIBED:
                first = begun.get(row["Receiver"])
                begun[row["Receiver"]] = min(first or row["Written"], row["Written"])
            elif row["State"] == WAITING:
                tries[pair] = max(tries.get(pair, 0), row["Tries"])
            else:
                done.add(pair)
        left = {pair: count for pair, count in tries.items() if pair not in done}
        return Known(since=begun, done=frozenset(done), tries=left)

    def due(self, since: datetime) -> list[Json]:
        """Return the ledger's rows since an instant that receivers are told of, the oldest first.

        Raises:
            WarehouseError: BigQuery cannot be asked.
        """
        sql = _DUE_SQL.format(
            loads=self.source,
            since=since.isoformat(),
            marked=MARKED,
            times=TIMES,
            refusals=_texts(REFUSALS),
            passing=_texts(PASSING),
        )
        return self._warehouse.rows(sql)

    def flaws(self, rows: Iterable[Json]) -> Flaws:
        """Return the first bad rows of days, by `day_key` of their ledger rows.

        Raises:
            WarehouseError: BigQuery cannot be asked.
        """
        wanted = [row for row in rows if row["RowsRejected"]]
        if not wanted:
            return {}
        sql = _FLAWS_SQL.format(rejects=self._ledger.name(REJECT_ROWS))
        runs, tables = ({row[key] for row in wanted} for key in ("RunID", "table"))
        return {
            day_key(row): Flaw(
                url=row["ArchiveURL"] or "",
                line=row["Line"] or 0,
                filename=row["Filename"] or "",
                field=row["Field"] or "",
                reason=row["Reason"] or "",
                detail=row["Detail"] or "",
            )
            for row in self._warehouse.rows(sql, runs=sorted(runs), tables=sorted(tables))
        }

    def append(self, rows: Sequence[Json]) -> None:
        """Append rows to the table.

        Raises:
            WarehouseError: none was written; the events are sent again, with the same ids.
        """
        parts = [LedgerRow("", row.get("date") or "", row) for row in rows]
        if parts:
            self._appender.append(self._run, parts)


def _texts(labels: Iterable[str]) -> str:
    """Return labels of our own as literals of SQL."""
    return ", ".join(f"'{label}'" for label in sorted(labels))


def day_key(row: Json) -> tuple[Any, ...]:
    """Return what a ledger row and its bad rows have in common."""
    return row["RunID"], row["table"], row["date"]
