"""The report of a day: its row in the ledger, and its outcome for the operator.

**Invariant:** in each ledger row, rows read = loaded + rejected + repeated + withheld, and a day
that succeeded has no withheld rows.

Pure, except that a row contains the current time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.errors import TRANSIENT, FailureClass, failure_class
from loader.plan.due import Status, object_digest

if TYPE_CHECKING:
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Json
    from loader.errors import LoaderError, UnlistedError
    from loader.plan.discover import Table
    from loader.plan.due import Asked, Known, TableDay
    from loader.spark.wave import StagingPaths, Verified

WELL_AGAIN = "well again"
"""The Reason of a row that ends the failure of a table or bucket as a whole."""

STARTED = "%Y%m%dt%H%M%S"
_NUMBERS = (
    *("Bundles", "Rewritten", "Corrupt", "PackedBytes"),
    *("RowsRead", "RowsLoaded", "RowsRejected", "RowsRepeated", "RowsWithheld", "RowsRenewed"),
)
VERIFIED = ("trusted", "sampled", "full")
"""The ways in which bundles are verified, as `Outcome` counts them."""
MISMATCH = "CountMismatch"
"""The ErrorClass of a day whose load job wrote another number of rows than were verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a day in this run.

    `overtaken`: another loader has changed it; `misled`: its index was wrong, so it must be
    verified in full; `error`: its ErrorClass; `failure`: the class of its failure.  The last three
    are numbers of bundles, as in `Verified`.
    """

    day: TableDay
    status: Status
    attempt: int = 0
    rows: int = 0
    loaded: int = 0
    rejected: int = 0
    repeated: int = 0
    why: str = ""
    error: str = ""
    failure: FailureClass | None = None
    spent_s: float = 0.0
    overtaken: bool = False
    misled: bool = False
    trusted: int = 0
    sampled: int = 0
    full: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The values that all days of a run share.

    Attributes:
        id: the run's id; it begins with the time of its start.
        host: the driver's host.
        version: the versions of loader, Python and Spark.
        max_bad: the largest fraction of bad rows with which a day is loaded.
        patience_s: how long a failing request to a bucket is retried.
        staging: the names of objects that the run writes.
        accept_deletions: whether days are loaded although objects are gone that they were loaded
            from.
    """

    id: str
    host: str
    version: str
    max_bad: float
    patience_s: float
    staging: StagingPaths
    accept_deletions: bool = False


@dataclass(frozen=True, slots=True)
class DayReport:
    """Builds the ledger rows and the outcome of one day."""

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
        asked: Asked | None = None,
    ) -> Json:
        """Return a ledger row whose numbers add up.

        All rows of a failed day count as withheld.  Its rejects are not recorded, because a later
        run reads the day again.

        Args:
            status: how the day ended.
            attempt: the day's load jobs so far.
            job: the id of the load job.
            loaded: how many rows it wrote.
            why: ErrorClass and ErrorText.
            asked: the request that the job was for, if that is newer than the day's.
        """
        day, now = self.found.day, datetime.now(UTC)
        buckets = {bundle.bucket for bundle in day.bundles}
        if status is not Status.SUCCESS:
            buckets |= self.known.buckets  # the table still has the rows of the last success
        return {
            **_table_columns(day.table),
            "date": day.date.isoformat(),
            "Status": str(status),
            "Attempt": attempt,
            "Started": self.started.isoformat(),
            "Finished": now.isoformat(),
            "Seconds": round((now - self.started).total_seconds(), 3),
            "Reason": day.reason,
            **request_columns(asked or day.requested),
            **self._counts(loaded, 0 if status is Status.FAILED else self.found.rejected),
            "Fingerprint": day.fingerprint,
            "Buckets": " ".join(sorted(buckets)),
            "Objects": "".join(sorted(map(object_digest, day.bundles))),
            "TableMade": self.ready.made_ms,
            "JobID": job,
            **_error_columns(*why),
            "Errors": "",
            **_run_columns(self.run),
        }

    def _counts(self, loaded: int, rejected: int) -> Json:
        """Return the columns that count bundles, bytes and rows; what is left is withheld."""
        found, day = self.found, self.found.day
        return {
            "Bundles": len(day.bundles),
            "Rewritten": found.rewritten,
            "Corrupt": found.corrupt,
            "PackedBytes": day.size_bytes,
            "PlainBytes": None if found.trusted else found.plain_bytes,
            "RowsRead": found.rows,
            "RowsLoaded": loaded,
            "RowsRejected": rejected,
            "RowsRepeated": found.repeated,
            "RowsWithheld": found.rows - loaded - rejected - found.repeated,
            "RowsRenewed": found.renewed,
            "Trusted": found.trusted,
            "Sampled": found.sampled,
            "Verified": found.full,
            "Distrusted": found.distrusted,
        }

    def outcome(self, row: Json) -> Outcome:
        """Return the outcome that belongs to a ledger row."""
        found = self.found
        return Outcome(
            misled=bool(found.trusted) and _refutes(row),
            trusted=found.trusted,
            sampled=found.sampled,
            full=found.full,
            day=self.found.day,
            status=Status(row["Status"]),
            attempt=row["Attempt"],
            rows=row["RowsRead"],
            loaded=row["RowsLoaded"],
            rejected=row["RowsRejected"],
            repeated=row["RowsRepeated"],
            why=row["ErrorText"],
            error=row["ErrorClass"],
            failure=FailureClass(row["FailureClass"]) if row["FailureClass"] else None,
            spent_s=row["Seconds"],
        )


def row_of_unread(
    day: TableDay,
    status: Status,
    known: Known,
    run: Run,
    *,
    made_ms: int,
    why: tuple[str, str],
    attempt: int | None = None,
) -> Json:
    """Return the ledger row of a day that was not read now; it counts no rows.

    Args:
        day: the day.
        status: how it ended.
        known: its newest ledger row, which has the buckets that it was loaded from.
        run: the values that all days of the run share.
        made_ms: when its table was made.
        why: ErrorClass and ErrorText.
        attempt: the day's load jobs so far; None for those that the ledger knew.
    """
    now = datetime.now(UTC).isoformat()
    return {
        **dict.fromkeys(_NUMBERS, 0),
        **_table_columns(day.table),
        "date": day.date.isoformat(),
        "Status": str(status),
        "Attempt": day.attempt if attempt is None else attempt,
        "Started": now,
        "Finished": now,
        "Seconds": 0.0,
        "Reason": day.reason,
        **request_columns(day.requested),
        "Fingerprint": day.fingerprint,
        "Buckets": " ".join(sorted(known.buckets)),
        "TableMade": made_ms,
        "JobID": "",
        **_error_columns(*why),
        "Errors": "",
        **_run_columns(run),
    }


def row_of_failure(table: Table, error: LoaderError, run: Run) -> Json:
    """Return the ledger row of a datatype that failed as a whole, without a date."""
    why = _error_columns(type(error).__name__, str(error))
    return _row_of_whole(_table_columns(table), Status.FAILED, run) | why


def row_of_bucket(error: UnlistedError, run: Run) -> Json:
    """Return the ledger row of a bucket that cannot be listed: its URL stands for a table."""
    why = _error_columns(error.label, str(error))
    return _row_of_whole({"table": error.bucket}, Status.FAILED, run) | why


def row_of_return(name: str, run: Run) -> Json:
    """Return the ledger row of a table or bucket that can be used after it had failed as a whole.

    Other rows would say that only when a day is due again, which may never be.
    """
    why = _error_columns("", "")
    return _row_of_whole({"table": name, "Reason": WELL_AGAIN}, Status.SKIPPED, run) | why


def _row_of_whole(about: Json, status: Status, run: Run) -> Json:
    now = datetime.now(UTC).isoformat()
    return {
        **about,
        "Status": str(status),
        "Started": now,
        "Finished": now,
        **dict.fromkeys(("RowsRead", "RowsLoaded", "RowsRejected"), 0),
        **dict.fromkeys(("RowsRepeated", "RowsWithheld"), 0),
        **_run_columns(run),
    }


def request_columns(asked: Asked | None) -> Json:
    """Return the columns of the ledger that name a request."""
    at = asked.at.isoformat() if asked else None
    return {"RequestID": asked.id or None if asked else None, "RequestedAt": at}


def _table_columns(table: Table) -> Json:
    return {
        "table": str(table.name),
        "Experiment": table.experiment,
        "Datatype": table.sources[0].datatype,
    }


def _error_columns(name: str, text: str) -> Json:
    kind = str(failure_class(name, text)) if name else ""
    return {"ErrorClass": name, "ErrorText": text, "FailureClass": kind}


def _run_columns(run: Run) -> Json:
    return {"RunID": run.id, "Host": run.host, "Version": run.version}


def _refutes(row: Json) -> bool:
    """Return whether a ledger row shows that bundles differ from their index."""
    failed = bool(row["JobID"]) and row["ErrorClass"] not in TRANSIENT
    return row["Status"] == Status.FAILED and (failed or row["ErrorClass"] == MISMATCH)
