"""A verified day becomes rows in BigQuery, rejects, and a line in the ledger, in this order.

**Invariant:** the ledger says success only after rows and rejects are there; whoever comes after a
crash finds the job by its id, and tells the ledger what the dead could not.  Each row of the
ledger adds up.

It refuses a day with too many bad rows: its partition stays as it was.
"""

from __future__ import annotations

import io
import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.bigquery import attempts
from loader.bigquery.appends import BadRows
from loader.bigquery.batches import URIS_MAX
from loader.bigquery.record import Outcome, Run, Telling
from loader.bucket import open_bucket
from loader.errors import BucketError, WarehouseError
from loader.plan.due import Status
from loader.spark.wave import refused_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from loader.bigquery.attempts import Ended
    from loader.bigquery.batches import Batches
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Job, Json, Warehouse
    from loader.cli.console import Tell
    from loader.plan.due import Day, Known
    from loader.spark.wave import Verified

CLEANERS = 4
_MANIFEST = "FILE_SET_SPEC_TYPE_NEW_LINE_DELIMITED_MANIFEST"


class Finisher:
    """Finishes days; may be called from several threads at once.

    Args:
        warehouse: where the tables are.
        batches: takes what is told to ledger and rejects.
        run: the run.
        tell: where to say what did not matter for the day.
        still: lists a day anew and returns its fingerprint.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        batches: Batches,
        run: Run,
        tell: Tell,
        still: Callable[[Day], str],
    ) -> None:
        self._still = still
        self._warehouse = warehouse
        self._meta = batches.meta
        self._batches = batches
        self._run = run
        self._tell = tell
        self._cleaners = ThreadPoolExecutor(CLEANERS, thread_name_prefix="clean")

    def close(self) -> None:
        """Remove what is still to be removed from staging."""
        self._cleaners.shutdown()

    def finish(
        self, found: Verified, ready: Ready, known: Known, started: datetime
    ) -> Future[Outcome]:
        """Load a day, or say why not; what may befall a day is no exception.

        Returns:
            What ends when the ledger has it.
        """
        telling = Telling(self._run, found, ready, known, started)
        try:
            outcome = self._finish(found, ready, telling)
        except (WarehouseError, BucketError) as exc:
            found.staged.clear()  # a job that nobody could ask about may still read it
            outcome = self._failed(telling, type(exc).__name__, str(exc))
        outcome.add_done_callback(lambda _: self._cleaners.submit(self._clean, found))
        return outcome

    def _finish(self, found: Verified, ready: Ready, telling: Telling) -> Future[Outcome]:
        day = found.day
        if found.error:
            return self._failed(telling, found.error.partition(":")[0], found.error)
        if found.bad_fraction > self._run.max_bad:
            why = f"{found.rejected} of {found.rows} rows are bad, more than {self._run.max_bad:g}"
            # Its rows are this run's alone: another one may refuse the day at the same time.
            name = refused_id(job_id(day, ready, day.attempt + 1), self._run.id)
            row = telling.row(Status.REJECTED, day.attempt, job=name, why=("TooManyBad", why))
            return self._told(telling, row)
        jobs = DayJobs(self._warehouse, found, ready, self._run, self._meta.label)
        ended = attempts.load(
            jobs,
            day.fingerprint,
            day.attempt,
            still_so=lambda: self._still(day) == day.fingerprint,
            pause=attempts.pause,
        )
        return self._tell_ended(found, telling, ended)

    def _tell_ended(self, found: Verified, telling: Telling, ended: Ended) -> Future[Outcome]:
        day, job = found.day, ended.job
        told: Future[Outcome] = Future()
        for attempt, failed in ended.failed.items():
            row = telling.row(Status.FAILED, attempt, job=failed.id, why=_reason(failed))
            row["Errors"] = json.dumps(failed.errors)
            told = self._told(telling, row, failed)
        if ended.overtaken or job is None:
            outcome = Outcome(day=day, status=Status.SKIPPED, attempt=ended.attempt, overtaken=True)
            return _ended(outcome)
        if job.reason:  # it is the last of the failed ones
            return told
        if job.rows != found.good:
            why = f"job {job.id} wrote {job.rows} rows, {found.good} were expected"
            return self._failed(telling, "CountMismatch", why, attempt=ended.attempt)
        row = telling.row(Status.SUCCESS, ended.attempt, job=job.id, loaded=job.rows)
        return self._told(telling, row, job)

    def _failed(
        self,
        telling: Telling,
        kind: str,
        why: str,
        *,
        attempt: int | None = None,
    ) -> Future[Outcome]:
        """Tell of a failure that no load job stands for."""
        attempt = telling.found.day.attempt if attempt is None else attempt
        return self._told(telling, telling.row(Status.FAILED, attempt, why=(kind, why)))

    def _told(self, telling: Telling, row: Json, job: Job | None = None) -> Future[Outcome]:
        """Tell the ledger; a day of which it cannot be told has failed.

        Raises:
            BucketError: there are too many objects of bad rows, and they cannot be listed in one.
        """
        outcome: Future[Outcome] = Future()
        run = job.labels.get(attempts.RUN_LABEL, "") if job else ""

        def done(written: Future[None]) -> None:
            exc = written.exception()
            if exc is None:
                outcome.set_result(telling.outcome(row))
            elif row["Status"] == Status.FAILED:
                day = str(telling.found.day.key)
                self._tell.event("ledger.not_written", "error", day=day, error=str(exc))
                outcome.set_result(telling.outcome(row))
            else:
                telling.found.staged.clear()  # the job that appends bad rows may still read it
                failed = self._failed(telling, type(exc).__name__, str(exc))
                failed.add_done_callback(lambda ended: outcome.set_result(ended.result()))

        self._batches.tell(row, run, self._bad_rows(telling.found, row)).add_done_callback(done)
        return outcome

    def _bad_rows(self, found: Verified, row: Json) -> BadRows | None:
        """Return the bad rows that a row of the ledger counts; one of a failed day counts none."""
        if not found.rejects or not row["RowsRejected"]:
            return None
        return BadRows(*few_uris(self._run, found, found.rejects, "rejects.txt"))

    def _clean(self, found: Verified) -> None:
        """Remove what was written for the day."""
        for bucket, name in found.staged:
            self._remove(bucket, name)

    def _remove(self, bucket: str, name: str) -> None:
        try:
            open_bucket(bucket, self._run.patience_s).remove(name)
        except BucketError as exc:
            self._tell.event("staging.not_removed", "warning", object=name, error=str(exc))


@dataclass(frozen=True, slots=True)
class DayJobs:
    """The load jobs of one day, each of which replaces the day's partition."""

    warehouse: Warehouse
    found: Verified
    ready: Ready
    run: Run
    ledger: str

    def submit(self, attempt: int) -> tuple[Job, bool]:
        """Load from the objects; from nothing when no good row is left."""
        day = self.found.day
        target = f"{day.table.name}${day.date:%Y%m%d}"
        name = job_id(day, self.ready, attempt)
        config = load_config(day.fingerprint, self.run.id, self.ledger)
        uris = self.found.uris
        if not uris:
            return self.warehouse.load_file(target, io.BytesIO(), name, config)
        uris, more = few_uris(self.run, self.found, uris, "manifest.txt")
        return self.warehouse.load_uris(target, uris, name, config | more)

    def look(self, attempt: int) -> Job | None:
        """Wait for a job of this day."""
        return self.warehouse.job(job_id(self.found.day, self.ready, attempt))

    def counts(self, job: Job) -> bool:
        """Say whether a job is ours, or one of a run that was interrupted, with all its rows there.

        A run that was not interrupted has told the same ledger.  Rows may have been lost since:
        by hand, by an expiring partition; so they are counted.
        """
        day = self.found.day
        if job.labels.get(attempts.RUN_LABEL) == self.run.id:
            return True
        if day.forced or job.labels.get(attempts.LEDGER_LABEL) != self.ledger:
            return False
        return bool(job.reason) or self.warehouse.count(day.table.name, day.date) == job.rows


def few_uris(run: Run, found: Verified, uris: list[str], manifest: str) -> tuple[list[str], Json]:
    """Return URIs as a load job takes them, and what it must be told for that.

    Raises:
        BucketError: there are too many, and the manifest that names them cannot be written.
    """
    if len(uris) <= URIS_MAX:
        return uris, {}
    bucket, name = run.place.of(found.day, manifest)
    content = "".join(f"{uri}\n" for uri in uris).encode()
    open_bucket(bucket, run.patience_s).write(name, content)
    found.staged.append((bucket, name))
    return [f"{bucket}/{name}"], {"fileSetSpecType": _MANIFEST}


def job_id(day: Day, ready: Ready, attempt: int) -> str:
    """Name a load job of a day of this very table; see `attempts`."""
    name = day.table.name
    return f"jostler-{name.dataset}-{name.table}-{day.date:%Y%m%d}-{ready.made_ms}-{attempt}"


def load_config(fingerprint: str, run_id: str, ledger: str) -> Json:
    """Return what a load job is told besides where from and where to.

    No schema: the table has the right one, and with WRITE_TRUNCATE a job's own would replace it.
    Unknown values are ignored because the judge has refused all that are not null.
    """
    return {
        "sourceFormat": "NEWLINE_DELIMITED_JSON",
        "writeDisposition": "WRITE_TRUNCATE",
        "createDisposition": "CREATE_NEVER",
        "ignoreUnknownValues": True,
        "maxBadRecords": 0,
        "labels": {
            attempts.LABEL: fingerprint,
            attempts.RUN_LABEL: run_id,
            attempts.LEDGER_LABEL: ledger,
        },
    }


def _ended(outcome: Outcome) -> Future[Outcome]:
    ended: Future[Outcome] = Future()
    ended.set_result(outcome)
    return ended


def _reason(job: Job) -> tuple[str, str]:
    told = "; ".join(str(error.get("message")) for error in job.errors)
    return job.reason, f"job {job.id}: {told}"
