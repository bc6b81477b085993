"""The two runners of the loop: until the agent is stopped, or (`-once`) until all files are done.

**Invariant:** a drain takes at most `-flush-timeout`; with `-once`, at most that long without any
success.  Files that are left stay on the disk for the next start.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from jostler.agent.left import LeftFiles
    from jostler.agent.loop import Loop
    from jostler.bundle import Delivery
    from jostler.config import Config
    from jostler.watchdir import Arrivals

DRAIN_TICK_S = 0.1


class Daemon:
    """Runs until it is stopped.

    Args:
        config: what to do.
        loop: its steps.
        stop: set to stop taking files and drain.
        abort: set to end at once.
        show: called between two rounds.
    """

    def __init__(
        self,
        config: Config,
        loop: Loop,
        stop: threading.Event,
        abort: threading.Event,
        show: Callable[[], None],
    ) -> None:
        self._flush_timeout_s = config.flush_timeout_s
        self._loop = loop
        self._stop = stop
        self._abort = abort
        self._show = show

    def run(self) -> None:
        """Turn the loop until it is time to drain."""
        while not self._stop.is_set():
            self._show()
            if not self._loop.step():
                self._loop.rest()

    def drain(self, delivery: Delivery, arrivals: Arrivals) -> None:
        """Seal what is open and upload until it is done or the time is up."""
        self._loop.seal_all()
        delivery.hurry()
        started_s = time.monotonic()
        while delivery.busy and not self._is_over(started_s):
            self._show()
            if self._loop.deliver():
                started_s = self._go_on() or started_s
            else:
                arrivals.pause(min(DRAIN_TICK_S, max(0.001, delivery.next_s())))

    def leaves_nothing(self, _delivery: Delivery, _left: LeftFiles) -> bool:
        """Return whether no file is left that should have been archived."""
        return True

    def _go_on(self) -> float | None:
        """Go on after something was delivered; return when the time begins anew, if it does."""
        return None

    def _is_over(self, started_s: float) -> bool:
        return self._abort.is_set() or time.monotonic() - started_s >= self._flush_timeout_s


class Once(Daemon):
    """Runs until everything that is there was looked at, or uploads fail for too long."""

    def run(self) -> None:
        """Turn the loop until it is time to drain."""
        failing_since_s = None
        while not self._stop.is_set() and not self._loop.looked_at_all:
            self._show()
            if not self._loop.step() and not self._loop.looked_at_all:
                self._loop.rest()
            now_s = time.monotonic()
            if not self._loop.fails:
                failing_since_s = None
            elif failing_since_s is None:
                failing_since_s = now_s
            elif now_s - failing_since_s >= self._flush_timeout_s:
                return

    def leaves_nothing(self, delivery: Delivery, left: LeftFiles) -> bool:
        """Return whether no file is left that should have been archived."""
        return not (delivery.unfinished or left.overdue) and self._loop.looked_at_all

    def _go_on(self) -> float | None:
        """Take what a commit gave back, so that nothing which should go is left."""
        if not self._stop.is_set():
            while self._loop.todo and self._loop.read():
                pass
            self._loop.seal_all()
        return time.monotonic()
