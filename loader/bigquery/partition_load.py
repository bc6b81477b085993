"""Load a verified day: first its rows, then its rejects, then its row in the ledger.

**Invariant:** the ledger says success only after rows and rejects are durable.  After a crash, the
next run finds the finished job by its id and writes the missing ledger row.  In each ledger row the
numbers of rows add up.

A day with too many bad rows is not loaded: its partition stays as it was.
"""

from __future__ import annotations

import io
import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from loader.bigquery import attempts
from loader.bigquery.appends import BadRows
from loader.bigquery.batches import URIS_MAX
from loader.bigquery.record import MISMATCH, DayReport, Outcome, Run
from loader.bucket import open_bucket, split_url
from loader.errors import GONE, BucketError, MissingError, WarehouseError
from loader.plan.due import EPOCH, Asked, Status, loss_message
from loader.plan.losses import has_merged, left_out, merged_since, too_few
from loader.spark.wave import refused_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from loader.bigquery.attempts import Ended
    from loader.bigquery.batches import Batches
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Job, Json, Warehouse
    from loader.cli.console import Console
    from loader.plan.due import Known, TableDay
    from loader.spark.wave import Verified

CLEANERS = 4
MANIFEST = "manifest.txt"
_NOT_FOUND = "notFound"
_COPY = len("000000-")
"""The length of what `Wave.copy_name` puts before a bundle's name."""
_MANIFEST = "FILE_SET_SPEC_TYPE_NEW_LINE_DELIMITED_MANIFEST"


class PartitionLoader:
    """Loads verified days; may be called from several threads at once.

    Args:
        warehouse: the BigQuery project.
        batches: writes rows to ledger and rejects.
        run: the values that all days of the run share.
        console: shows errors that do not fail the day.
        still: lists a day again and returns its fingerprint.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        batches: Batches,
        run: Run,
        console: Console,
        still: Callable[[TableDay], str],
    ) -> None:
        self._still = still
        self._warehouse = warehouse
        self._ledger = batches.ledger
        self._batches = batches
        self._run = run
        self._console = console
        self._cleaners = ThreadPoolExecutor(CLEANERS, thread_name_prefix="clean")

    def close(self) -> None:
        """Finish removing objects from staging."""
        self._cleaners.shutdown()

    def load(
        self, found: Verified, ready: Ready, known: Known, started: datetime
    ) -> Future[Outcome]:
        """Load a day.  A failure of the day is an outcome, never an exception.

        Returns:
            A future that ends when the ledger row is durable.
        """
        report = DayReport(self._run, found, ready, known, started)
        try:
            outcome = self._load(found, ready, report)
        except (WarehouseError, BucketError) as exc:
            found.staged.clear()  # a job may be running although BigQuery did not answer: keep
            outcome = self._failed(report, type(exc).__name__, str(exc))
        outcome.add_done_callback(lambda _: self._cleaners.submit(self._clean, found))
        return outcome

    def _load(self, found: Verified, ready: Ready, report: DayReport) -> Future[Outcome]:
        day = found.day
        if found.error:
            kind = found.error.partition(":")[0]
            if kind == MissingError.__name__ and self._still(day) != day.fingerprint:
                return _ended(_changed(day, day.attempt))  # compaction, say: look again
            return self._failed(report, kind, found.error)
        if merged_since(day):
            return _ended(_changed(day, day.attempt))
        if found.good < day.owed:
            return self._failed(report, GONE, too_few(found.good, day.owed))
        max_bad = day.max_bad(self._run.max_bad)
        if found.bad_fraction > max_bad:
            why = f"{found.rejected} of {found.rows} rows are bad, more than {max_bad:g}"
            # An id of this run only: another run may refuse the same day at the same time.
            name = refused_id(job_id(day, ready, day.attempt + 1), self._run.id)
            row = report.row(Status.REJECTED, day.attempt, job=name, why=("TooManyBad", why))
            return self._record(report, row)
        jobs = DayJobs(self._warehouse, found, ready, self._run, self._ledger.label)
        ended = attempts.load(
            jobs,
            day.fingerprint,
            day.attempt,
            is_unchanged=lambda: self._still(day) == day.fingerprint,
            pause=attempts.pause,
        )
        return self._record_end(found, report, ended)

    def _record_end(self, found: Verified, report: DayReport, ended: Ended) -> Future[Outcome]:
        day, job = found.day, ended.job
        recorded: Future[Outcome] = Future()
        for attempt, failed in ended.failed.items():
            row = report.row(Status.FAILED, attempt, job=failed.id, why=_reason(failed))
            row["Errors"] = json.dumps(failed.errors)
            recorded = self._record(report, row, failed)
        if ended.lost:  # with the day's old number, so that the next run meets the same job again
            return self._failed(report, GONE, ended.lost)
        if ended.overtaken or job is None:
            return _ended(_changed(day, ended.attempt))
        if job.reason:  # the last attempt failed, too
            # Compaction removed an object between the listing and the job: the day is listed again.
            if job.reason == _NOT_FOUND and self._still(day) != day.fingerprint:
                return _ended(_changed(day, ended.attempt))
            return recorded
        # A URI names no generation ("Batch loading data"), so BigQuery loads what is there when the
        # job runs.  Another number of rows shows that it was not what was verified.
        if job.rows != found.good:
            why = f"job {job.id} wrote {job.rows} rows, {found.good} were expected"
            return self._failed(report, MISMATCH, why, attempt=ended.attempt)
        row = report.row(
            Status.SUCCESS,
            ended.attempt,
            job=job.id,
            loaded=job.rows,
            asked=_asked(job, day.requested),
        )
        return self._record(report, row, job)

    def _failed(
        self,
        report: DayReport,
        kind: str,
        why: str,
        *,
        attempt: int | None = None,
    ) -> Future[Outcome]:
        """Record a failure for which there is no load job."""
        attempt = report.found.day.attempt if attempt is None else attempt
        return self._record(report, report.row(Status.FAILED, attempt, why=(kind, why)))

    def _record(self, report: DayReport, row: Json, job: Job | None = None) -> Future[Outcome]:
        """Write the day's ledger row; if that fails, the day has failed.

        Raises:
            BucketError: the manifest that lists many objects of bad rows cannot be written.
        """
        outcome: Future[Outcome] = Future()
        run = job.labels.get(attempts.RUN_LABEL, "") if job else ""

        def done(written: Future[None]) -> None:
            exc = written.exception()
            if exc is None:
                outcome.set_result(report.outcome(row))
            elif row["Status"] == Status.FAILED:
                day = str(report.found.day.key)
                self._console.event("ledger.not_written", "error", day=day, error=str(exc))
                outcome.set_result(report.outcome(row))
            else:
                report.found.staged.clear()  # the job that appends bad rows may still read them
                failed = self._failed(report, type(exc).__name__, str(exc))
                failed.add_done_callback(lambda ended: outcome.set_result(ended.result()))

        self._batches.add(row, run, self._bad_rows(report.found, row)).add_done_callback(done)
        return outcome

    def _bad_rows(self, found: Verified, row: Json) -> BadRows | None:
        """Return the bad rows that a ledger row counts; the row of a failed day counts none."""
        if not found.rejects or not row["RowsRejected"]:
            return None
        return BadRows(*few_uris(self._run, found, found.rejects, "rejects.txt"))

    def _clean(self, found: Verified) -> None:
        """Remove the day's objects from staging."""
        for bucket, name in found.staged:
            self._remove(bucket, name)

    def _remove(self, bucket: str, name: str) -> None:
        try:
            open_bucket(bucket, self._run.patience_s).remove(name)
        except BucketError as exc:
            self._console.event("staging.not_removed", "warning", object=name, error=str(exc))


@dataclass(frozen=True, slots=True)
class DayJobs:
    """The load jobs of one day; each replaces the day's partition."""

    warehouse: Warehouse
    found: Verified
    ready: Ready
    run: Run
    ledger: str

    def submit(self, attempt: int) -> tuple[Job, bool]:
        """Load the objects; load an empty file if no good row is left."""
        day = self.found.day
        # Without the partition in its name, WRITE_TRUNCATE would replace the whole table.
        target = f"{day.table.name}${day.date:%Y%m%d}"
        name = job_id(day, self.ready, attempt)
        config = load_config(day.fingerprint, self.run.id, self.ledger, day.requested)
        uris = self.found.uris
        if not uris:
            # A load job needs a source; an empty upload empties the partition, in one atomic step
            # like any load.
            return self.warehouse.load_file(target, io.BytesIO(), name, config)
        uris, more = few_uris(self.run, self.found, uris, MANIFEST)
        return self.warehouse.load_uris(target, uris, name, config | more)

    def look(self, attempt: int) -> Job | None:
        """Wait for a job of this day; return None if there is none."""
        return self.warehouse.job(job_id(self.found.day, self.ready, attempt))

    def counts(self, job: Job) -> bool:
        """Return whether a job that was found makes a new job unnecessary.

        A job of this run does.  A job of an interrupted run of the same ledger does if all its rows
        are still in the table; a person or an expiring partition may have removed them.  (A run
        that was not interrupted has written its ledger row, so the day would not be due.)
        """
        day = self.found.day
        if job.labels.get(attempts.RUN_LABEL) == self.run.id:
            return True
        if day.forced or job.labels.get(attempts.LEDGER_LABEL) != self.ledger:
            return False
        if day.requested and _requested_us(job) < int(day.requested.label):
            return False  # it was loaded before somebody asked for it, or without knowing of it
        return bool(job.reason) or self.warehouse.count(day.table.name, day.date) == job.rows

    def lost(self, job: Job) -> str:
        """Return which objects are gone from which a job loaded the day.

        It is needed for the jobs of killed runs, which have no row in the ledger.
        """
        if job.reason or self.run.accept_deletions:
            return ""
        there = {_base(bundle.name) for bundle in self.found.day.bundles}
        loaded = [_base(uri) for uri in self._listed(job)]
        gone = [name for name in loaded if name not in there and name[_COPY:] not in there]
        if not gone:
            return ""
        if not has_merged(self.found.day):
            return loss_message(len(gone), len(loaded))
        least = job.rows - left_out(self.found.day)
        return too_few(self.found.good, least) if self.found.good < least else ""

    def _listed(self, job: Job) -> Sequence[str]:
        """Return the URIs that a job loaded; a manifest's lines, if it still exists."""
        manifest = job.uris[0] if len(job.uris) == 1 else ""
        if _base(manifest) != MANIFEST:
            return job.uris
        bucket, name = split_url(manifest)
        try:
            return open_bucket(bucket, self.run.patience_s).read(name, "").decode().split()
        except MissingError:  # removed by the run that wrote it, or after two days
            return ()


def few_uris(run: Run, found: Verified, uris: list[str], manifest: str) -> tuple[list[str], Json]:
    """Return URIs for a load job, and its settings: many URIs are replaced by one manifest.

    Raises:
        BucketError: the manifest cannot be written.
    """
    if len(uris) <= URIS_MAX:
        return uris, {}
    bucket, name = run.staging.of(found.day, manifest)
    content = "".join(f"{uri}\n" for uri in uris).encode()
    open_bucket(bucket, run.patience_s).write(name, content)
    found.staged.append((bucket, name))
    return [f"{bucket}/{name}"], {"fileSetSpecType": _MANIFEST}


def job_id(day: TableDay, ready: Ready, attempt: int) -> str:
    """Return the id of a day's load job; a table created anew has other ids (see `attempts`)."""
    name = day.table.name
    return f"jostler-{name.dataset}-{name.table}-{day.date:%Y%m%d}-{ready.made_ms}-{attempt}"


def load_config(fingerprint: str, run_id: str, ledger: str, requested: Asked | None = None) -> Json:
    """Return the settings of a load job besides source and destination.

    It has no schema: with WRITE_TRUNCATE the job's schema would replace the table's, which is as it
    should be already.  Unknown values can be ignored because the judge refuses all that are not
    null.
    """
    return {
        "sourceFormat": "NEWLINE_DELIMITED_JSON",
        "writeDisposition": "WRITE_TRUNCATE",
        # A table that a person removed must not come back without partitions and labels.
        "createDisposition": "CREATE_NEVER",
        "ignoreUnknownValues": True,
        "maxBadRecords": 0,
        "labels": {
            attempts.LABEL: fingerprint,
            attempts.RUN_LABEL: run_id,
            attempts.LEDGER_LABEL: ledger,
            **({attempts.REQUEST_LABEL: requested.label} if requested else {}),
        },
    }


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _changed(day: TableDay, attempt: int) -> Outcome:
    """Return the outcome of a day that lost objects while it was read or loaded."""
    return Outcome(day=day, status=Status.SKIPPED, attempt=attempt, overtaken=True)


def _ended(outcome: Outcome) -> Future[Outcome]:
    ended: Future[Outcome] = Future()
    ended.set_result(outcome)
    return ended


def _asked(job: Job, requested: Asked | None) -> Asked | None:
    """Return the newer of a day's request and the one that a job was submitted for."""
    at = EPOCH + timedelta(microseconds=_requested_us(job))
    if at == EPOCH or (requested and requested.at >= at):
        return requested
    return Asked(id="", at=at)


def _requested_us(job: Job) -> int:
    """Return the time of the request that a job was submitted for; 0 if it was for none."""
    label = job.labels.get(attempts.REQUEST_LABEL, "")
    return int(label) if label.isdecimal() else 0


def _reason(job: Job) -> tuple[str, str]:
    messages = "; ".join(str(error.get("message")) for error in job.errors)
    return job.reason, f"job {job.id}: {messages}"
