"""Bounds for requests: how many are worked on at once, and for how long.

**Invariant:** each piece of work runs in a thread and holds a place until the thread has ended,
even if nobody waits for it any more.  So a bucket that does not answer costs threads, but never
more than there are places, and pages that need no bucket are answered meanwhile.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = 32
REQUEST_S = 30.0
T = TypeVar("T")


class BusyError(Exception):
    """All places are taken."""


class SlowError(Exception):
    """The work takes too long."""


class Workers:
    """Runs work in threads.

    Args:
        places: how much work runs at once.
        timeout_s: after how long a request is given up.
    """

    def __init__(self, places: int = PLACES, timeout_s: float = REQUEST_S) -> None:
        self._places = threading.BoundedSemaphore(places)
        self._most = places
        self._timeout_s = timeout_s
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of work.

        Raises:
            BusyError: all places are taken.
            SlowError: it takes longer than a request may.
        """
        if not self._places.acquire(blocking=False):
            raise BusyError
        # Abandoned threads give their tokens back early, so the semaphore is what counts.
        self._limiter = self._limiter or anyio.CapacityLimiter(2 * self._most)
        try:
            with anyio.fail_after(self._timeout_s):
                return await anyio.to_thread.run_sync(
                    self._placed(work), limiter=self._limiter, abandon_on_cancel=True
                )
        except TimeoutError:
            raise SlowError from None

    def _placed(self, work: Callable[[], T]) -> Callable[[], T]:
        def run() -> T:
            try:
                return work()
            finally:
                self._places.release()

        return run
