"""What is told of a day: to the ledger as a row, to the operator as an outcome.

**Invariant:** each row adds up: read = loaded + rejected + repeated + withheld, and only a day that
did not succeed withholds anything.

Pure, but for the time of day in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.plan.due import Status, object_digest

if TYPE_CHECKING:
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Json
    from loader.plan.due import Day, Known
    from loader.spark.wave import Place, Verified

STARTED = "%Y%m%dt%H%M%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a day in this run."""

    day: Day
    status: Status
    attempt: int = 0
    rows: int = 0
    loaded: int = 0
    rejected: int = 0
    repeated: int = 0
    why: str = ""
    spent_s: float = 0.0
    overtaken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What all days of a run share.

    Attributes:
        id: begins with when it began.
        host: of the driver.
        version: of loader, Python and Spark.
        max_bad: largest part of bad rows in a day.
        patience_s: how long a request to a bucket is tried again.
        place: for what is written.
    """

    id: str
    host: str
    version: str
    max_bad: float
    patience_s: float
    place: Place


@dataclass(frozen=True, slots=True)
class Telling:
    """Writes the rows of the ledger for one day."""

    run: Run
    found: Verified
    ready: Ready
    known: Known
    started: datetime

    def row(
        self,
        status: Status,
        attempt: int,
        *,
        job: str = "",
        loaded: int = 0,
        why: tuple[str, str] = ("", ""),
    ) -> Json:
        """Return a row that adds up.

        The rejects of a failed day are not told, for it will be read again: all of its rows are
        withheld.
        """
        found, day, now = self.found, self.found.day, datetime.now(UTC)
        rejected = 0 if status is Status.FAILED else found.rejected
        buckets = {bundle.bucket for bundle in day.bundles}
        if status is not Status.SUCCESS:
            buckets |= self.known.buckets  # their rows are still in the table
        return {
            "table": str(day.table.name),
            "date": day.date.isoformat(),
            "Status": str(status),
            "Attempt": attempt,
            "Started": self.started.isoformat(),
            "Finished": now.isoformat(),
            "Seconds": round((now - self.started).total_seconds(), 3),
            "Reason": day.reason,
            "Bundles": len(day.bundles),
            "Rewritten": found.rewritten,
            "Corrupt": found.corrupt,
            "PackedBytes": day.size_bytes,
            "PlainBytes": found.plain_bytes,
            "RowsRead": found.rows,
            "RowsLoaded": loaded,
            "RowsRejected": rejected,
            "RowsRepeated": found.repeated,
            "RowsWithheld": found.rows - loaded - rejected - found.repeated,
            "RowsRenewed": found.renewed,
            "Fingerprint": day.fingerprint,
            "Buckets": " ".join(sorted(buckets)),
            "Objects": "".join(sorted(map(object_digest, day.bundles))),
            "TableMade": self.ready.made_ms,
            "JobID": job,
            "ErrorClass": why[0],
            "ErrorText": why[1],
            "Errors": "",
            "RunID": self.run.id,
            "Host": self.run.host,
            "Version": self.run.version,
        }

    def outcome(self, row: Json) -> Outcome:
        """Return the same for the operator."""
        return Outcome(
            day=self.found.day,
            status=Status(row["Status"]),
            attempt=row["Attempt"],
            rows=row["RowsRead"],
            loaded=row["RowsLoaded"],
            rejected=row["RowsRejected"],
            repeated=row["RowsRepeated"],
            why=row["ErrorText"],
            spent_s=row["Seconds"],
        )
