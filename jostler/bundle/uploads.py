"""The uploads: a few threads that store bundles, fed and emptied by the one that owns them.

**Invariant:** what goes in comes out exactly once, or is still in the journal when the agent ends.
Threads never touch the agent's state; they hand outcomes to a queue and wake it.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.bundle.retry import StoppedError, Tries
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.bundle import Bundle
    from jostler.bundle.cleanup import Outcome, Stored
    from jostler.bundle.commit import Commit
    from jostler.bundle.record import Record

log = Log("jostler.uploads")


@dataclass(frozen=True, slots=True)
class Crash:
    """A commit ended in an error that nobody foresaw; its journal entry is still there.

    Attributes:
        job: what to try again later.
        error: what was raised.
    """

    job: Bundle | Record
    error: Exception


class Uploads:
    """The pool of threads.

    Args:
        commit: what a thread does with a job.
        tries: says whether uploads are failing at the moment.
        stop: set to end all waiting.
        threads: how many commits run at once.
        wake: called after each outcome, from the thread.
    """

    def __init__(
        self,
        commit: Commit,
        tries: Tries,
        stop: threading.Event,
        *,
        threads: int,
        wake: Callable[[], None],
    ) -> None:
        self._commit = commit
        self._tries = tries
        self._stop = stop
        self._wake = wake
        self._jobs: queue.SimpleQueue[Bundle | Record | None] = queue.SimpleQueue()
        self._outcomes: queue.SimpleQueue[Stored | Outcome | Crash] = queue.SimpleQueue()
        self._pending = 0
        self._threads = [
            threading.Thread(target=self._run, name=f"upload-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pending(self) -> int:
        """Jobs whose outcome the owner has not yet taken."""
        return self._pending

    @property
    def failing(self) -> bool:
        """Whether the bucket or the journal fails at the moment."""
        return self._tries.failing > 0

    def put(self, job: Bundle | Record) -> None:
        """Hand in a sealed bundle, or an entry of the journal to go on with."""
        self._pending += 1
        self._jobs.put(job)

    def take(self) -> list[Stored | Outcome | Crash]:
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
        while self._carry_out(self._jobs.get()):
            pass

    def _carry_out(self, job: Bundle | Record | None) -> bool:
        """Commit one job; say whether there may be another."""
        if job is None:
            return False
        try:
            outcome: Stored | Outcome | Crash = self._commit.store(job)
        except StoppedError:
            return True
        except Exception as exc:  # a thread that dies would be a silent loss
            log.exception("upload.crashed", bundle=str(job.header.name))
            outcome = Crash(job, exc)
        self._outcomes.put(outcome)
        self._wake()
        return True
