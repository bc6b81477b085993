"""The queue in which threads of the HTTP server wait for a copy of what the agent remembers.

**Invariant:** the agent's own thread makes the copy, between two rounds of its loop, and one copy
serves all that wait.  This module imports little, because every agent has the queue and few are
asked; what searches the copy is in `live`.
"""

from __future__ import annotations

import queue
import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jostler.agent.why.live import Remembered

MOST = 16
"""How many requests may wait for the loop."""


class Questions:
    """A queue of requests from other threads to the agent's thread.

    Args:
        wake: ends a running wait of the agent's loop; any thread may call it.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._line: queue.Queue[Future[Remembered]] = queue.Queue(MOST)
        self._searching = threading.Lock()

    @contextmanager
    def turn(self, patience_s: float) -> Iterator[bool]:
        """Hold the right to ask and search in the `with` block; yields False if it came too late.

        Args:
            patience_s: how long to wait for it, seconds.
        """
        came = self._searching.acquire(timeout=patience_s)
        try:
            yield came
        finally:
            if came:
                self._searching.release()

    def ask(self, patience_s: float) -> Remembered | None:
        """Return a copy of what the agent remembers; None if its loop does not answer in time.

        Args:
            patience_s: how long to wait, seconds.
        """
        answer: Future[Remembered] = Future()
        try:
            self._line.put_nowait(answer)
        except queue.Full:
            return None
        self._wake()
        try:
            return answer.result(patience_s)
        except (FutureTimeoutError, CancelledError):
            # The agent's thread may be answering at this moment.  `cancel` and
            # `set_running_or_notify_cancel` decide between the two; a late answer is dropped.
            answer.cancel()
            return None

    def answer(self, remember: Callable[[], Remembered]) -> None:
        """Answer all waiting requests with the same copy; only the agent's thread calls this."""
        # Only those in line now: requests that arrive meanwhile must not keep the loop here.
        in_line = [self._line.get_nowait() for _ in range(self._line.qsize())]
        waiting = [answer for answer in in_line if answer.set_running_or_notify_cancel()]
        if waiting:
            remembered = remember()
            for answer in waiting:
                answer.set_result(remembered)
