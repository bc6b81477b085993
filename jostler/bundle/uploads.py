"""A pool of threads that commit bundles; one thread hands in jobs and takes the outcomes.

**Invariant:** what goes in comes out exactly once, or is still in the journal when the agent ends.
Threads never touch the agent's state; they hand outcomes to a queue and wake it.  No job is carried
out before `begin`, so until then nothing is written, neither to the journal nor to the bucket.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct

from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.commit import Commit
    from jostler.bundle.job import Halt, UploadJob

log = Log("jostler.uploads")


class Crash(Struct, frozen=True):
    """The outcome of a commit that raised an unforeseen error; the journal is still right.

    Attributes:
        job: what to try again later.
        error: what was raised.
    """

    job: UploadJob
    error: Exception


class Uploads:
    """The pool of threads; all methods are called by its owner's thread.

    Args:
        commit: what a thread does with a job.
        threads: how many commits run at once.
        wake: called after each outcome, from the thread.
    """

    def __init__(self, commit: Commit, *, threads: int, wake: Callable[[], None]) -> None:
        self._commit = commit
        self._stop = threading.Event()
        self._wake = wake
        self._jobs: queue.SimpleQueue[UploadJob | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[UploadJob | Halt | Crash] = queue.SimpleQueue()
        self._pending = 0
        self._threads = [
            # Daemons: a request that hangs at the end must not keep the process; the journal has
            # the bundle.
            threading.Thread(target=self._run, name=f"upload-{n}", daemon=True)
            for n in range(threads)
        ]

    def begin(self) -> None:
        """Carry out what was handed in, and what will be."""
        for thread in self._threads:
            thread.start()

    def give_back(self) -> int:
        """Give back the files of all that was handed in before `begin`; return how many jobs."""
        jobs = 0
        while not self._jobs.empty():
            job = self._jobs.get()
            assert job
            self._outcomes.put(job.given_back())
            jobs += 1
        return jobs

    @property
    def pending(self) -> int:
        """How many jobs were handed in whose outcome was not yet taken."""
        return self._pending

    def put(self, job: UploadJob) -> None:
        """Hand in a job."""
        self._pending += 1
        self._jobs.put(job)

    def take(self) -> list[UploadJob | Halt | Crash]:
        """Return the outcomes that have come since the last call."""
        outcomes = []
        while not self._outcomes.empty():
            outcomes.append(self._outcomes.get())
        self._pending -= len(outcomes)
        return outcomes

    def close(self, timeout_s: float) -> bool:
        """End the threads; say whether all of them ended in time."""
        self._stop.set()
        for _ in self._threads:
            self._jobs.put(None)
        until_s = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, until_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self) -> None:
        # No variable of the loop holds a job: it would keep a bundle's bytes until the next one.
        while self._carry_out(self._jobs.get()):
            pass

    def _carry_out(self, job: UploadJob | None) -> bool:
        """Carry out one job; say whether there may be another."""
        if job is None:
            return False
        try:
            outcome: UploadJob | Halt | Crash = self._commit.advance(job, self._stop.is_set)
        except Exception as exc:  # a thread that dies would be a silent loss
            log.exception("upload.crashed", bundle=str(job.header.name))
            outcome = Crash(job, exc)
        # The outcome first, then the wake: the other way round, the owner could look too early and
        # sleep.
        self._outcomes.put(outcome)
        self._wake()
        return True
