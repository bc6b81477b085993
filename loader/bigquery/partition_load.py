"""A verified day becomes rows in BigQuery, rejects, and a line in the ledger, in this order.

**Invariant:** the ledger says success only after rows and rejects are there; whoever comes after a
crash finds the job by its id, and tells the ledger what the dead could not.  Each row of the
ledger adds up.

It refuses a day with too many bad rows: its partition stays as it was.
"""

from __future__ import annotations

import io
import json
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.bigquery import attempts
from loader.bigquery.record import STARTED, Outcome, Run, Telling
from loader.bucket import open_bucket
from loader.errors import BucketError, WarehouseError
from loader.plan.due import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.bigquery.attempts import Ended
    from loader.bigquery.ledger import Meta
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Job, Json, Warehouse
    from loader.cli.console import Tell
    from loader.plan.due import Day, Known
    from loader.spark.wave import Verified

URIS_MAX = 10_000
"""A load job takes so many URIs ("Quotas and limits"); beyond, they stand in a manifest."""
STALE_S = 2 * 86_400
_MANIFEST = "FILE_SET_SPEC_TYPE_NEW_LINE_DELIMITED_MANIFEST"


class Finisher:
    """Finishes days; may be called from several threads at once.

    Args:
        warehouse: where the tables are.
        meta: where ledger and rejects are.
        run: the run.
        tell: where to say what did not matter for the day.
        still: lists a day anew and returns its fingerprint.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        meta: Meta,
        run: Run,
        tell: Tell,
        still: Callable[[Day], str],
    ) -> None:
        self._still = still
        self._warehouse = warehouse
        self._meta = meta
        self._run = run
        self._tell = tell

    def finish(self, found: Verified, ready: Ready, known: Known, started: datetime) -> Outcome:
        """Load a day, or say why not; never raises for what may befall a day."""
        telling = Telling(self._run, found, ready, known, started)
        try:
            outcome = self._finish(found, ready, telling)
        except (WarehouseError, BucketError) as exc:
            outcome = self._failed(telling, type(exc).__name__, str(exc), leave_staged=True)
        finally:
            if found.rejects:
                found.rejects.close()
        return outcome

    def _finish(self, found: Verified, ready: Ready, telling: Telling) -> Outcome:
        day = found.day
        if found.error:
            return self._failed(telling, found.error.partition(":")[0], found.error)
        if found.bad_fraction > self._run.max_bad:
            why = f"{found.rejected} of {found.rows} rows are bad, more than {self._run.max_bad:g}"
            told_id = f"{job_id(day, ready, day.attempt + 1)}-refused-{day.fingerprint[:12]}"
            self._reject(found, told_id)
            row = telling.row(Status.REJECTED, day.attempt, job=told_id, why=("TooManyBad", why))
            self._meta.tell(row, told_id)
            return telling.outcome(row)
        jobs = DayJobs(self._warehouse, found, ready, self._run, self._meta.label)
        ended = attempts.load(
            jobs,
            day.fingerprint,
            day.attempt,
            still_so=lambda: self._still(day) == day.fingerprint,
            pause=attempts.pause,
        )
        outcome = self._tell_ended(found, telling, ended)
        self._clean(found)
        return outcome

    def _tell_ended(self, found: Verified, telling: Telling, ended: Ended) -> Outcome:
        day, job, row = found.day, ended.job, {}
        for attempt, failed in ended.failed.items():
            row = telling.row(Status.FAILED, attempt, job=failed.id, why=_reason(failed))
            row["Errors"] = json.dumps(failed.errors)
            self._meta.tell(row, failed.id)
        if ended.overtaken or job is None:
            return Outcome(day=day, status=Status.SKIPPED, attempt=ended.attempt, overtaken=True)
        if job.reason:  # it is the last of the failed ones
            return telling.outcome(row)
        if job.rows != found.good:
            why = f"job {job.id} wrote {job.rows} rows, {found.good} were expected"
            return self._failed(telling, "CountMismatch", why, attempt=ended.attempt)
        self._reject(found, job.id)
        row = telling.row(Status.SUCCESS, ended.attempt, job=job.id, loaded=job.rows)
        self._meta.tell(row, job.id)
        return telling.outcome(row)

    def _failed(
        self,
        telling: Telling,
        kind: str,
        why: str,
        *,
        attempt: int | None = None,
        leave_staged: bool = False,
    ) -> Outcome:
        """Tell of a failure that no load job stands for."""
        day = telling.found.day
        row = telling.row(
            Status.FAILED, day.attempt if attempt is None else attempt, why=(kind, why)
        )
        try:
            self._meta.tell(row, f"{job_id(day, telling.ready, 0)}-failed-{self._run.id}")
        except WarehouseError as exc:
            self._tell.event("ledger.not_written", "error", day=str(day.key), error=str(exc))
        if not leave_staged:  # a job that nobody could ask about may still read it
            self._clean(telling.found)
        return telling.outcome(row)

    def _reject(self, found: Verified, told_id: str) -> None:
        if found.rejects is None:
            return
        with tempfile.TemporaryFile() as out:
            found.rejects.seek(0)
            last = b',"JobID":%b}\n' % json.dumps(told_id).encode()
            for line in found.rejects:
                out.write(line[:-2] + last)
            self._meta.reject(out, told_id)

    def _clean(self, found: Verified) -> None:
        """Remove what was written for the day, and what runs of days ago left behind."""
        for bucket, name in found.staged:
            self._remove(bucket, name)
        if not found.staged:
            return
        bucket, name = found.staged[0]
        folder = name.split(f"/{self._run.id}/")[0] + "/"
        oldest = datetime.fromtimestamp(time.time() - STALE_S, UTC).strftime(STARTED)
        try:
            left = list(open_bucket(bucket, self._run.patience_s).list(folder))
        except BucketError:
            return
        for entry in left:
            if entry.name.removeprefix(folder) < oldest:
                self._remove(bucket, entry.name)

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
        if len(uris) > URIS_MAX:
            bucket, manifest = self.run.place.of(day, "manifest.txt")
            content = "".join(f"{uri}\n" for uri in uris).encode()
            open_bucket(bucket, self.run.patience_s).write(manifest, content)
            self.found.staged.append((bucket, manifest))
            uris = [f"{bucket}/{manifest}"]
            config = {**config, "fileSetSpecType": _MANIFEST}
        return self.warehouse.load_uris(target, uris, name, config)

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


def _reason(job: Job) -> tuple[str, str]:
    told = "; ".join(str(error.get("message")) for error in job.errors)
    return job.reason, f"job {job.id}: {told}"
