"""Jobs: accept them once, run them in threads, keep them for ever.

**Invariant:** an id of a project and location is used at most once in the life of the data
directory.  A job's rows and its state DONE are written in one transaction.

A job is not run again after a restart: an interrupted job ends with `backendError`, and its id
stays used, as in BigQuery.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import duckdb
import orjson

from embedded.jobs.joblog import end_interrupted, find, record, with_end
from embedded.jobs.messages import bigquery_message
from embedded.model.errors import ApiError, already_exists, invalid, not_found, unsupported
from embedded.model.names import JobRef, new_job
from embedded.model.wire import Call, Json, Reply, page
from embedded.store.datasets import DEFAULT_LOCATION, etag_of, now_ms

if TYPE_CHECKING:
    from pathlib import Path

    from embedded.jobs.faults import Faults
    from embedded.store.database import Store

THREADS = 200
"""So many jobs are taken up at once: one that a fault holds up keeps no other waiting."""
WORKERS = 6
GET_WAIT_S = 0.5  # how long a GET waits for the job's end: clients poll again only a second later
INTEGERS = frozenset({"skipLeadingRows", "maxBadRecords"})
KINDS = ("load", "query", "copy")

Effect = Callable[[duckdb.DuckDBPyConnection], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A running job; `media` is the file that was uploaded with it, if any."""

    ref: JobRef
    kind: str
    config: Json
    media: Path | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Check whether the job was cancelled.

        Raises:
            ApiError: it was.
        """
        if self.cancelled.is_set():
            raise ApiError("stopped", "Job execution was cancelled: User requested cancellation")


class Work(Protocol):
    """Runs the jobs of one kind."""

    def check(self, project: str, config: Json) -> str:
        """Check a job before it gets an id; return its location, or "" for any.

        Raises:
            ApiError: the configuration is not valid.
        """
        ...

    def dry_run(self, project: str, config: Json) -> Json:
        """Return the statistics of a dry run.

        Raises:
            ApiError: the job would fail, or its kind has no dry run.
        """
        ...

    def run(self, job: Job) -> Effect:
        """Do the part of a job that needs no transaction; return its effect.

        The effect is then applied in the transaction that records the job's end; it returns the
        job's statistics.

        Raises:
            ApiError: the job fails.
        """
        ...


class Jobs:
    """The `jobs` collection, and the threads that run jobs."""

    def __init__(self, store: Store, work: dict[str, Work], faults: Faults) -> None:
        self._store = store
        self._work = work
        self._faults = faults
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="job")
        self._at_work = threading.BoundedSemaphore(WORKERS)
        self._running: dict[JobRef, tuple[Job, Future[None]]] = {}
        self._lock = threading.Lock()
        with store.writing() as cursor:
            end_interrupted(cursor)

    def close(self) -> None:
        """Wait for running jobs; the next start ends jobs that have not begun."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def insert(self, call: Call) -> Reply:
        """Handle jobs.insert: start a job and return its resource."""
        return Reply(self.submit(call.names["project"], call.json()))

    def submit(self, project: str, given: Json, media: Path | None = None) -> Json:
        """Accept a job and start it; return its resource.

        Raises:
            ApiError: the id is used, or the configuration is not valid.
        """
        config = dict(given.get("configuration") or {})
        kinds = [kind for kind in ("load", "query", "copy", "extract") if kind in config]
        if len(kinds) != 1:
            raise invalid("Required parameter is missing: configuration")
        kind = kinds[0]
        if kind not in KINDS:
            raise unsupported(f"An {kind} job")
        api = given.get("jobReference") or {}
        ref = self._place(project, kind, api, config)
        config = {**config, kind: _with_integers(config[kind]), "jobType": kind.upper()}
        if config.get("dryRun"):
            statistics = self._work[kind].dry_run(project, config)
            seen: Json = {"configuration": config, "status": {"state": "DONE"}}
            return self._shown(ref, {**seen, "statistics": statistics})
        job = Job(ref=ref, kind=kind, config=config, media=media)
        body: Json = {
            "configuration": config,
            "status": {"state": "PENDING"},
            "statistics": {"creationTime": now_ms()},
        }
        self._record_new(ref, body)
        with self._lock:
            future = self._pool.submit(self._work_on, job, body)
            self._running[ref] = (job, future)
        return self._shown(ref, body)

    def _place(self, project: str, kind: str, api: Json, config: Json) -> JobRef:
        wanted = str(api.get("location") or "")
        name = str(api.get("jobId") or f"job_{uuid.uuid4().hex}")
        known = self.find(project, name, wanted or DEFAULT_LOCATION)
        if known is not None:
            raise already_exists("Job", f"{project}:{known[0].location}.{name}")
        found = self._work[kind].check(project, config)
        if found and wanted and found.lower() != wanted.lower():
            raise not_found("Job", f"{name}: the data is in location {found}, not {wanted}")
        return new_job(project, found or wanted or DEFAULT_LOCATION, name)

    def get(self, call: Call) -> Reply:
        """Return a job; wait a moment for its end."""
        ref, _ = self.named(call)
        self.wait(ref, GET_WAIT_S)
        _, body = self.named(call)
        return Reply(self._shown(ref, body))

    def list(self, call: Call) -> Reply:
        """Return a page of a project's jobs, newest first."""
        with self._store.reading() as cursor:
            rows = cursor.execute(
                "SELECT location, id, body FROM meta.jobs WHERE project = ? ORDER BY rowid DESC",
                [call.names["project"]],
            ).fetchall()
        shown = [
            self._shown(JobRef(call.names["project"], row[0], row[1]), orjson.loads(row[2]))
            for row in rows
        ]
        state = call.query.get("stateFilter", "").upper()
        wanted = [job for job in shown if state in {"", job["status"]["state"]}]
        items, more = page([{**job, "state": job["status"]["state"]} for job in wanted], call)
        return Reply({"kind": "bigquery#jobList", "jobs": items, **more})

    def cancel(self, call: Call) -> Reply:
        """Cancel a job; one that has ended does not change."""
        ref, _ = self.named(call)
        with self._lock:
            running = self._running.get(ref)
        if running:
            running[0].cancelled.set()
        _, body = self.named(call)
        return Reply({"kind": "bigquery#jobCancelResponse", "job": self._shown(ref, body)})

    def named(self, call: Call) -> tuple[JobRef, Json]:
        """Return the job in a request's path.

        Raises:
            ApiError: it does not exist in that location.
        """
        project, name = call.names["project"], call.names["job"]
        location = call.query.get("location") or ""
        found = self.find(project, name, location)
        if found is None:
            raise not_found(
                "Job", f"{project}:{location}.{name}" if location else f"{project}:{name}"
            )
        return found

    def find(self, project: str, name: str, location: str) -> tuple[JobRef, Json] | None:
        """Return a job and its resource; None if there is none.  The location "" means any."""
        with self._store.reading() as cursor:
            return find(cursor, project, name, location)

    def wait(self, ref: JobRef, timeout_s: float) -> bool:
        """Wait for a job's end, at most `timeout_s` seconds; return whether the job has ended."""
        with self._lock:
            running = self._running.get(ref)
        if running is None:
            return True
        done = threading.Event()
        running[1].add_done_callback(lambda _: done.set())
        return done.wait(timeout_s)

    def _record_new(self, ref: JobRef, body: Json) -> None:
        with self._store.writing() as cursor:
            if find(cursor, ref.project, ref.job, ref.location) is not None:
                raise already_exists("Job", str(ref))
            cursor.execute(
                "INSERT INTO meta.jobs VALUES (?, ?, ?, ?)",
                [ref.project, ref.location, ref.job, orjson.dumps(body).decode()],
            )

    def _work_on(self, job: Job, body: Json) -> None:
        """Run a job and record its end, also if it fails in an unforeseen way."""
        body = {**body, "statistics": {**body["statistics"], "startTime": now_ms()}}
        try:
            self._run(job, body)
        except ApiError as exc:
            self._record_failure(job, body, exc)
        except duckdb.Error as exc:
            reason = "invalidQuery" if job.kind == "query" else "invalid"
            self._record_failure(job, body, ApiError(reason, bigquery_message(str(exc))))
        except Exception as exc:
            self._record_failure(job, body, ApiError("internalError", f"{exc!r}"))
            raise
        finally:
            if job.media is not None:
                job.media.unlink(missing_ok=True)
            with self._lock:
                del self._running[job.ref]

    def _run(self, job: Job, body: Json) -> None:
        self._faults.hold_job(job.ref.job, job.cancelled)
        job.check()
        with self._at_work:
            effect = self._work[job.kind].run(job)
        with self._store.writing() as cursor:
            job.check()
            statistics = effect(cursor)
            self._faults.fail_job(job.ref.job)
            warnings = statistics.pop("errors", [])
            status = {"state": "DONE", **({"errors": warnings} if warnings else {})}
            record(cursor, job.ref, with_end(body, status, statistics))

    def _record_failure(self, job: Job, body: Json, error: ApiError) -> None:
        proto = error.proto()
        status = {"state": "DONE", "errorResult": proto, "errors": [proto, *error.more]}
        with self._store.writing() as cursor:
            record(cursor, job.ref, with_end(body, status, {}))

    def _shown(self, ref: JobRef, body: Json) -> Json:
        with self._lock:
            running = self._running.get(ref)
        status = body["status"]
        if running and running[1].running() and status["state"] == "PENDING":
            status = {**status, "state": "RUNNING"}
        link = f"/bigquery/v2/projects/{ref.project}/jobs/{ref.job}?location={ref.location}"
        return {
            **body,
            "kind": "bigquery#job",
            "etag": etag_of(body),
            "id": str(ref),
            "selfLink": link,
            "jobReference": ref.to_api(),
            "status": status,
            "user_email": "nobody@embedded.invalid",
        }


def _with_integers(settings: Json) -> Json:
    """Return settings with integers as BigQuery returns them; the Python client sends strings."""
    return {
        name: int(value) if name in INTEGERS and str(value).isdecimal() else value
        for name, value in settings.items()
    }
