"""How the loads of each datatype stand, by the loader's ledger: what a person asks first.

**Invariant:** it only reads.  A ledger of an older loader, without the newest columns, and one
without requests give the same summary with what they have.

Pure, except that queries are asked through a function.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from jostler.format.urls import is_bucket_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Json = dict[str, Any]
DAYS = 7
"""The fraction of rejected rows is that of the days of data of so long."""
GOOD = frozenset({"success", "deleted"})
_OLDER = ("Experiment", "Datatype", "FailureClass", "RequestID")
"""Columns that a ledger of an older loader lacks."""

_SUMS_SQL = """\
SELECT `table` AS table_name, {Experiment} AS experiment, {Datatype} AS datatype,
  MAX(IF(Status = 'success', Finished, NULL)) AS success,
  MAX(IF(Status = 'success', `date`, NULL)) AS newest
FROM `{loads}` GROUP BY 1, 2, 3"""
_FRACTION_SQL = """\
SELECT `table` AS table_name, SUM(RowsRead) AS n, SUM(RowsRejected) AS bad FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY `table`, `date` ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth
  FROM `{loads}` WHERE `date` >= '{since}' AND Status IN ('success', 'rejected', 'deleted')
) WHERE nth = 1 AND Status != 'deleted' GROUP BY 1"""
# Of a table as a whole, any later row of one of its days says that it could be used again, and a
# later row without a day that says skipped: that nothing was wrong with the table, or the bucket.
_FAILING_SQL = """\
SELECT * EXCEPT (nth, later) FROM (
  SELECT `table`, `date`, Status, Attempt, Finished, RowsRead, RowsRejected, JobID, RunID,
    ErrorClass, ErrorText, Errors, {FailureClass} AS FailureClass,
    ROW_NUMBER() OVER (
      PARTITION BY `table`, `date` ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth,
    MAX(IF(`date` IS NULL, NULL, Finished)) OVER (PARTITION BY `table`) AS later
  FROM `{loads}` WHERE Status != 'skipped' OR `date` IS NULL
) WHERE nth = 1 AND Status NOT IN ('success', 'deleted', 'skipped')
  AND (`date` IS NOT NULL OR later IS NULL OR Finished > later)
ORDER BY `table`, `date`"""
_SINCE_SQL = """\
SELECT l.`table`, l.`date`, MIN(l.Finished) AS since, COUNT(*) AS times FROM `{loads}` AS l
LEFT JOIN (
  SELECT `table`, `date`, MAX(Finished) AS good FROM `{loads}`
  WHERE Status IN ('success', 'deleted') OR (Status = 'skipped' AND `date` IS NULL) GROUP BY 1, 2
) AS g ON g.`table` = l.`table`
  AND IFNULL(g.`date`, DATE '0001-01-01') = IFNULL(l.`date`, DATE '0001-01-01')
WHERE l.Status = 'failed' AND (g.good IS NULL OR l.Finished > g.good) GROUP BY 1, 2"""
_REQUESTS_SQL = "SELECT * FROM `{requests}`"
ENDED = frozenset({"done", "failed", "given up"})
"""States of a request for which nothing is done any more."""


class Ask(Protocol):
    """Runs a query and returns its rows."""

    def __call__(self, sql: str, /) -> list[Json]:
        """Return the rows.

        Raises:
            Exception: of the caller's own; it passes through.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A day that is not loaded as it should be.

    Attributes:
        row: the newest row of the ledger about it; its date is null for a table as a whole.
        since: when it first failed since its last success; None if it was refused at once.
        times: how often it failed since then.
    """

    row: Json
    since: datetime | None
    times: int

    @property
    def is_waiting(self) -> bool:
        """Whether the next run tries it again."""
        return bool(self.row["Status"] == "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """How the loads of one table stand, or that a bucket cannot be listed.

    Attributes:
        table: as project.dataset.table; or the URL of a bucket that failed in the last week, which
            is no longer shown when it was listed again.
        experiment: as in the bucket; empty of a bucket, or if an older loader wrote all its rows.
        datatype: as in the bucket, or the table's name; empty of a bucket.
        success: when a day was last loaded.
        newest: the newest day that was loaded.
        rejected: the fraction of bad rows in the days of data of the last week; None without rows.
        failing: the days that failed, were refused or were given up, the earliest first.
    """

    table: str
    experiment: str
    datatype: str
    success: datetime | None = None
    newest: date | None = None
    rejected: float | None = None
    failing: tuple[Failing, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """How all loads stand.

    Attributes:
        tables: in the order of their names.
        requests: the rows of `request_status` that are open, running or waiting; None if nobody
            can ask for days, because there is no such view.
    """

    tables: tuple[TableStatus, ...] = ()
    requests: tuple[Json, ...] | None = None
    problems: tuple[str, ...] = field(default=())


def load_status(
    ask: Ask, *, loads: str, columns: Collection[str], requests: str, experiment: str, today: date
) -> LoadStatus:
    """Ask the ledger.

    Args:
        ask: runs a query.
        loads: the ledger's table.
        columns: that it has.
        requests: the view of requests; empty if there is none.
        experiment: only this one; all if empty.
        today: the day in UTC.

    Raises:
        Exception: what `ask` raises.
    """
    named = {name: name if name in columns else "CAST(NULL AS STRING)" for name in _OLDER}
    since = today - timedelta(days=DAYS)
    sums = _merged(ask(_SUMS_SQL.format(loads=loads, **named)))
    bad = {
        row["table_name"]: (row["bad"] or 0) / row["n"]
        for row in ask(_FRACTION_SQL.format(loads=loads, since=since))
        if row["n"]
    }
    times = {
        (row["table"], row["date"]): (row["since"], row["times"])
        for row in ask(_SINCE_SQL.format(loads=loads))
    }
    failing: dict[str, list[Failing]] = defaultdict(list)
    for row in ask(_FAILING_SQL.format(loads=loads, **named)):
        if is_bucket_url(row["table"]) and row["Finished"].date() < since:
            continue
        began, count = times.get((row["table"], row["date"]), (None, 0))
        failing[row["table"]].append(Failing(row=row, since=began, times=count))
    tables = [
        TableStatus(
            table=table,
            experiment=one["experiment"] or "",
            datatype=one["datatype"] or ("" if is_bucket_url(table) else table.rpartition(".")[2]),
            success=one["success"],
            newest=one["newest"],
            rejected=bad.get(table),
            failing=tuple(failing[table]),
        )
        for table, one in sorted(sums.items())
        if (failing[table] if is_bucket_url(table) else _is_asked(experiment, table, one))
    ]
    asked = None
    if requests:
        rows = ask(_REQUESTS_SQL.format(requests=requests))
        asked = tuple(
            row for row in rows if not experiment or row["Experiment"] in {None, "", experiment}
        )
    return LoadStatus(tuple(tables), asked)


def _merged(rows: Iterable[Json]) -> dict[str, Json]:
    """Return one row for each table, though an older loader's rows have no experiment."""
    found: dict[str, Json] = {}
    for row in rows:
        one = found.setdefault(row["table_name"], dict(row))
        for key in ("experiment", "datatype"):
            one[key] = one[key] or row[key]
        for key in ("success", "newest"):
            one[key] = max(filter(None, (one[key], row[key])), default=None)
    return found


def _is_asked(experiment: str, table: str, one: Json) -> bool:
    return not experiment or is_of(experiment, table, one["experiment"] or "")


def is_of(experiment: str, table: str, noted: str) -> bool:
    """Return whether a table is an experiment's: as its rows say, else by its name.

    Names of datasets have an underscore for each character that BigQuery refuses.
    """
    if noted:
        return noted == experiment
    dataset = table.split(".")[-2]
    safe = "".join(char if char.isalnum() else "_" for char in experiment)
    if dataset in {safe, f"raw_{safe}"}:
        return True
    return dataset.startswith("autoload_v2_") and dataset.endswith(f"_{safe}")


def open_requests(status: LoadStatus) -> list[Json]:
    """Return the requests of which something is still to be done."""
    return [row for row in status.requests or () if str(row.get("State")) not in ENDED]
