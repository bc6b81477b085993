"""Trying again: how long to wait, and when to say so.

**Invariant:** nothing here gives up by itself; only the caller's stop ends the tries.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class StoppedError(Exception):
    """The agent is stopping; what was tried is left to the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between tries: under a ceiling that doubles up to a cap, half of it left to chance.

    The chance spreads a fleet that lost its bucket at one moment; in seconds.
    """

    first_s: float = 0.5
    cap_s: float = 60.0

    def wait_s(self, failures: int, chance: float) -> float:
        """Return the wait after `failures` tries; `chance` is uniform in [0, 1)."""
        ceiling = min(self.cap_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return ceiling / 2 + chance * ceiling / 2


class Tries:
    """Repeats one step until it succeeds or the agent stops.

    Args:
        backoff: how long to wait.
        stop: ends the waiting, and with it the tries.
    """

    def __init__(self, backoff: Backoff, stop: threading.Event) -> None:
        self._backoff = backoff
        self._stop = stop
        self._lock = threading.Lock()
        self._failing = 0

    @property
    def failing(self) -> int:
        """How many steps have failed and not yet succeeded."""
        return self._failing

    def until_done(
        self,
        step: Callable[[], T],
        again: tuple[type[Exception], ...],
        failed: Callable[[Exception, int, float], None],
    ) -> T:
        """Return what `step` returns, calling it again after each exception in `again`.

        Args:
            step: what to do; harmless to repeat.
            again: the exceptions that mean "try again".
            failed: told of each failure: the exception, how many so far, seconds to the next try.

        Raises:
            StoppedError: the agent stopped first.
        """
        failures = 0
        try:
            while True:
                if self._stop.is_set():
                    raise StoppedError
                try:
                    return step()
                except again as exc:
                    failures += 1
                    if failures == 1:
                        self._count(+1)
                    wait_s = self._backoff.wait_s(failures, random.random())  # noqa: S311 - jitter
                    failed(exc, failures, wait_s)
                    self._stop.wait(wait_s)
        finally:
            if failures:
                self._count(-1)

    def _count(self, change: int) -> None:
        with self._lock:
            self._failing += change
