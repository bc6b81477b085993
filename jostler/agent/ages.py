"""When a file that a scan merely met is old enough to be taken.

**Invariant:** a step of the clock makes no file older than it is.  A file's age is the least that
any clock gives which this process has seen: the present one, and those from before each step.  So
a file that was written before a step is late by the step at the most.  A time in the future means
that the clock was set back, not that the file was just written: the distance counts.

`Ages` is pure: now is an argument.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle import FileState

STEP_NS = 2_000_000_000
_CLOCKS_MAX = 8
_SIGHTINGS_MAX = 100_000


class Ages(Struct, frozen=True):
    """The two ages of `-settle-age` and `-missed-age`, in seconds.

    Attributes:
        settle_s: after the last change.
        missed_s: after the last change of the content.
        others_ns: what other clocks would show, less what the present one does.
    """

    settle_s: float
    missed_s: float
    others_ns: tuple[int, ...] = ()

    def until_missed_s(self, state: FileState, now_ns: int) -> float:
        """Return the seconds until a file is taken, good or bad; 0 or less: it is old enough."""
        return self.missed_s - self._age_s(state.mtime_ns, now_ns)

    def until_settled_s(self, state: FileState, now_ns: int) -> float:
        """Return the seconds until a file is taken if it is good; 0 or less: it is old enough."""
        touched_ns = max(state.mtime_ns, state.ctime_ns)
        if not self.others_ns:  # nearly always, and asked of every file that a scan meets
            settled_s = self.settle_s - abs(now_ns - touched_ns) / 1e9
            return min(settled_s, self.missed_s - abs(now_ns - state.mtime_ns) / 1e9)
        settled_s = self.settle_s - self._age_s(touched_ns, now_ns)
        return min(settled_s, self.until_missed_s(state, now_ns))

    def _age_s(self, then_ns: int, now_ns: int) -> float:
        age_ns = abs(now_ns - then_ns)
        for other_ns in self.others_ns:
            age_ns = min(age_ns, abs(now_ns + other_ns - then_ns))
        return age_ns / 1e9


# A clock that nobody sets, and that goes on while the machine sleeps.
_steady_ns = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic_ns
)


class Clock:
    """Notices steps of the system's clock, by one that has none.

    Args:
        wall_ns: the system's clock, nanoseconds since 1970.
        steady_ns: a clock that nobody sets.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = _steady_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._steady_ns = steady_ns
        self._ahead_ns = [wall_ns() - steady_ns()]

    def others_ns(self) -> tuple[int, ...]:
        """Return what clocks from before each step would show, less what the present one does."""
        ahead_ns = self._wall_ns() - self._steady_ns()
        known = self._ahead_ns
        if abs(ahead_ns - known[-1]) >= STEP_NS:
            known.append(ahead_ns)
            del known[1:-_CLOCKS_MAX]  # of a clock that steps all the time, its first is kept
        else:
            known[-1] = ahead_ns  # it is slowed or hastened a little, as NTP does
            if len(known) == 1:
                return ()
        return tuple(other_ns - ahead_ns for other_ns in known[:-1])


class Sightings:
    """Since when a file has been as it is, as far as this process has seen."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[FileState, float]] = {}

    def unchanged_s(self, path: str, state: FileState, now_s: float) -> float:
        """Return for how many seconds a file has been seen in this state; now counts as seen.

        Args:
            path: of the file.
            state: in which it is now.
            now_s: monotonic seconds.
        """
        first = self._first.get(path)
        if first is not None and first[0] == state:
            return now_s - first[1]
        while len(self._first) >= _SIGHTINGS_MAX:
            del self._first[next(iter(self._first))]
        self._first[path] = (state, now_s)
        return 0.0

    def forget(self, path: str) -> None:
        """Forget a file."""
        self._first.pop(path, None)
