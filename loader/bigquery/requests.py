"""The tables `requests` and `request_days`: who asks for days to be loaded, and what was found.

**Invariant:** people insert rows into `requests`, and the loader appends rows to `request_days`;
neither is ever changed.  What became of a request follows from these and the ledger, so two loaders
may take a request at the same time, and one that is killed leaves nothing to mend.

A load answers all requests for its day that were made before the one it was done for: a load job
has that request's time in a label, and the ledger has it in RequestedAt.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.schema import Field, Mode
from loader.bigquery.ledger import LOADS, columns
from loader.plan.due import KEPT, Asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from loader.bigquery.ledger import Ledger
    from loader.bigquery.warehouse import Json, Warehouse
    from loader.plan.due import DayKey

REQUESTS = "requests"
REQUEST_DAYS = "request_days"
STATUS = "request_status"
TAKEN, REFUSED = "taken", "refused"
_NOT_LOADED = (
    f"no run has loaded it for {KEPT.days} days: no loader runs that selects it, or its datatype is"
    " not in the bucket any more"
)
_NOT_TAKEN = (
    f"no run has taken it for {KEPT.days} days: no loader runs that selects all that it asks for,"
    " or no experiment has this name"
)
_REQUIRED = frozenset({"RequestID", "Experiment", "StartDate", "RequestedAt"})
_DEFAULTS = {
    "RequestID": "GENERATE_UUID()",
    "RequestedBy": "SESSION_USER()",
    "RequestedAt": "CURRENT_TIMESTAMP()",
}

REQUEST_FIELDS = tuple(
    Field(
        name=column.name,
        type=column.type,
        mode=Mode.REQUIRED if column.name in _REQUIRED else Mode.NULLABLE,
        description=column.description,
        default_value_expression=_DEFAULTS.get(column.name, ""),
    )
    for column in columns("""
RequestID     STRING    Names the request; generated if it is not given.
Experiment    STRING    The experiment, as in the bucket.
Datatype      STRING    The datatype, as in the bucket; null for all of the experiment.
StartDate     DATE      The first day to load anew.
EndDate       DATE      The last day to load anew, itself included; null for StartDate alone.
Reason        STRING    Why, for people.
RequestedBy   STRING    Who asks; the user of the session if it is not given.
RequestedAt   TIMESTAMP When; now if it is not given.
""")
)

REQUEST_DAYS_FIELDS = columns("""
RequestID     STRING    The request.
table         STRING    Table as project.dataset.table; null when it is about the whole request.
date          DATE      A day of the request that has bundles; null when it is about the table.
State         STRING    taken (it is to be loaded), or refused.
Detail        STRING    Why it was refused.
RunID         STRING    The run of the loader; begins with when it began.
Written       TIMESTAMP When this row was written.
""")

# If somebody gives one id to several requests, the newest counts.
_NEWEST = """(
    SELECT * EXCEPT (nth) FROM (
      SELECT *, ROW_NUMBER() OVER (PARTITION BY RequestID ORDER BY RequestedAt DESC) AS nth
      FROM `{requests}`
    ) WHERE nth = 1
  )"""
_OPEN_SQL = f"""\
SELECT r.RequestID, r.Experiment, r.Datatype, r.StartDate, r.EndDate, r.RequestedAt,
  MAX(d.Detail) AS Refused
FROM {_NEWEST} AS r LEFT JOIN `{{request_days}}` AS d ON d.RequestID = r.RequestID
GROUP BY 1, 2, 3, 4, 5, 6 HAVING COUNTIF(d.`table` IS NOT NULL) = 0"""  # noqa: S608 - names of our own
_PENDING_SQL = f"""\
SELECT r.RequestID, r.RequestedAt, d.`table`, d.`date`
FROM {_NEWEST} AS r JOIN (
  SELECT RequestID, `table`, `date` FROM `{{request_days}}` WHERE `table` IS NOT NULL
  GROUP BY 1, 2, 3 HAVING COUNTIF(State = 'refused') = 0
) AS d ON d.RequestID = r.RequestID
LEFT JOIN (
  SELECT `table`, `date`, MAX(RequestedAt) AS upto FROM `{{loads}}`
  WHERE RequestedAt IS NOT NULL AND Status IN ('success', 'rejected', 'abandoned', 'deleted')
  GROUP BY 1, 2
) AS l ON l.`table` = d.`table` AND l.`date` = d.`date`
WHERE l.upto IS NULL OR l.upto < r.RequestedAt"""  # noqa: S608 - as above
_STATUS_SQL = f"""\
WITH r AS (
  SELECT *,
    RequestedAt < TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {KEPT.days} DAY) AS Late
  FROM {_NEWEST}
),
whole AS (
  SELECT RequestID, MAX(Detail) AS Detail FROM `{{request_days}}` WHERE `table` IS NULL GROUP BY 1
),
d AS (
  SELECT RequestID, `table`, `date`, IFNULL(MAX(Detail), IF(
    MAX(Written) < TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {KEPT.days} DAY),
    '{_NOT_LOADED}', NULL)) AS Refused
  FROM `{{request_days}}` WHERE `table` IS NOT NULL GROUP BY 1, 2, 3
),
l AS (
  SELECT d.RequestID, d.`table`, d.`date`, d.Refused, x.Status, x.ErrorText,
    ROW_NUMBER() OVER (PARTITION BY d.RequestID, d.`table`, d.`date`
      ORDER BY x.TableMade DESC, x.Attempt DESC, x.Finished DESC) AS nth
  FROM d JOIN r ON r.RequestID = d.RequestID
  LEFT JOIN `{{loads}}` AS x ON x.`table` = d.`table` AND x.`date` = d.`date`
    AND x.RequestedAt >= r.RequestedAt AND x.Status != 'skipped'
),
c AS (
  SELECT RequestID, COUNT(*) AS asked, COUNTIF(Status = 'success') AS done,
    COUNTIF(Status = 'abandoned') AS given_up,
    COUNTIF(Status IN ('failed', 'rejected', 'deleted')
      OR (Status IS NULL AND Refused IS NOT NULL)) AS failed,
    MIN(IF(Status = 'success', NULL, CONCAT(
      IFNULL(CONCAT(CAST(`date` AS STRING), ' of '), ''), `table`, ': ',
      IFNULL(ErrorText, Refused)))) AS why
  FROM l WHERE nth = 1 GROUP BY 1
)
SELECT r.RequestID, r.Experiment, r.Datatype, r.StartDate, r.EndDate, r.Reason, r.RequestedBy,
  r.RequestedAt,
  CASE
    WHEN c.asked IS NULL AND whole.Detail IS NULL AND NOT r.Late THEN 'open'
    WHEN c.asked IS NULL THEN 'failed'
    WHEN c.done = c.asked THEN 'done'
    WHEN c.done + c.failed + c.given_up < c.asked THEN 'running'
    WHEN c.failed > 0 THEN 'failed'
    ELSE 'given up'
  END AS State,
  IFNULL(c.asked, 0) AS DaysAsked, IFNULL(c.done, 0) AS DaysDone,
  IF(c.asked IS NULL, IFNULL(whole.Detail, IF(r.Late, '{_NOT_TAKEN}', NULL)), c.why) AS Error
FROM r LEFT JOIN c ON c.RequestID = r.RequestID LEFT JOIN whole ON whole.RequestID = r.RequestID"""  # noqa: S608 - as above


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that no loader has taken yet.

    Attributes:
        id: its RequestID.
        experiment: as in the bucket.
        datatype: as in the bucket; empty for all.
        first: the first day.
        last: the last day, included.
        at: when it was made.
        refused: why a loader refused it; empty if none did.
    """

    id: str
    experiment: str
    datatype: str
    first: date
    last: date
    at: datetime
    refused: str = ""

    @property
    def asked(self) -> Asked:
        """Who asks, for each of its days."""
        return Asked(id=self.id, at=self.at)


class Requests:
    """The tables, as a run of the loader uses them.

    Args:
        warehouse: the BigQuery project.
        ledger: the dataset.
        run: the id of this run.
    """

    def __init__(self, warehouse: Warehouse, ledger: Ledger, run: str) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._run = run
        self._written = 0

    def prepare(self) -> None:
        """Create the tables and the view, or add columns that older tables lack.

        Raises:
            RunError: a table has other columns than these.
        """
        about = "Asks for days to be loaded anew: insert a row; request_status has the answer."
        self._ledger.table(REQUESTS, REQUEST_FIELDS, about, partitioned_by="RequestedAt")
        about = "The days that the loader found for each request."
        self._ledger.table(REQUEST_DAYS, REQUEST_DAYS_FIELDS, about)
        self._ledger.view(STATUS, _STATUS_SQL, "What became of each request.", self._names)

    @property
    def _names(self) -> dict[str, object]:
        return {name: self._ledger.name(name) for name in (LOADS, REQUESTS, REQUEST_DAYS)}

    def are_there(self) -> bool:
        """Return whether anybody has ever asked; it costs no query."""
        found = self._warehouse.get_table(self._ledger.name(REQUESTS))
        return found is not None and bool(found.num_rows or found.streaming_buffer)

    def open(self) -> list[Request]:
        """Return the requests of which no day is known yet, the newest first."""
        found = [
            Request(
                id=row["RequestID"],
                experiment=row["Experiment"],
                datatype=row["Datatype"] or "",
                first=row["StartDate"],
                last=row["EndDate"] or row["StartDate"],
                at=row["RequestedAt"],
                refused=row["Refused"] or "",
            )
            for row in self._warehouse.rows(_OPEN_SQL.format(**self._names))
        ]
        return sorted(found, key=lambda request: request.at, reverse=True)

    def pending(self) -> dict[DayKey, list[Asked]]:
        """Return the days that are asked for and not loaded since, with who asks, newest first."""
        found: dict[DayKey, list[Asked]] = {}
        for row in self._warehouse.rows(_PENDING_SQL.format(**self._names)):
            asked = Asked(id=row["RequestID"], at=row["RequestedAt"])
            found.setdefault((row["table"], row["date"]), []).append(asked)
        for several in found.values():
            several.sort(key=lambda asked: asked.at, reverse=True)
        return found

    def take(self, request: Request, days: Iterable[DayKey]) -> list[Json]:
        """Return the rows that record the days of a request."""
        return [self._row(request.id, day, TAKEN, "") for day in days]

    def refuse(self, request_id: str, day: tuple[str, date | None] | None, why: str) -> Json:
        """Return the row that records why a request, or a table or a day of it, is refused."""
        return self._row(request_id, day, REFUSED, why)

    def _row(
        self, request_id: str, day: tuple[str, date | None] | None, state: str, detail: str
    ) -> Json:
        return {
            "RequestID": request_id,
            "table": day[0] if day else None,
            "date": day[1].isoformat() if day and day[1] else None,
            "State": state,
            "Detail": detail or None,
            "RunID": self._run,
            "Written": datetime.now(UTC).isoformat(),
        }

    def write(self, rows: Sequence[Json]) -> None:
        """Append rows, all or none; one that is written twice does no harm.

        Raises:
            WarehouseError: they could not be written.
        """
        self._written += 1
        made = self._ledger.made_ms(REQUEST_DAYS)
        job_id = f"jostler-{self._run}-{REQUEST_DAYS}-{made}-{self._written}"
        self._ledger.append(REQUEST_DAYS, _lines(rows), job_id)

    def insert(self, request: Json) -> None:
        """Insert a request, in one DML statement.

        Args:
            request: values of columns; the others get their defaults.

        Raises:
            WarehouseError: BigQuery refuses it.
        """
        names = ", ".join(f"`{name}`" for name in request)
        values = ", ".join(f"@{name}" for name in request)
        table = self._ledger.name(REQUESTS)
        sql = f"INSERT INTO `{table}` ({names}) VALUES ({values})"  # noqa: S608 - names of our own
        self._warehouse.execute(sql, request)

    def state(self, request_id: str) -> Json | None:
        """Return a row of the view `request_status`; None if there is no such request."""
        name = self._ledger.name(STATUS)
        sql = f"SELECT * FROM `{name}` WHERE RequestID IN UNNEST(@ids)"  # noqa: S608 - as above
        return next(iter(self._warehouse.rows(sql, ids=[request_id])), None)


def _lines(rows: Sequence[Json]) -> io.BytesIO:
    return io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
