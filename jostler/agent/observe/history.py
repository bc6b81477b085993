"""The last hours minute by minute, in bounded memory.

**Invariant:** a value belongs to the minute in which it was recorded.  At most `MINUTES_KEPT` whole
minutes are kept, whatever changes of the system time occur.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from msgspec import Struct

STEP_S = 60
MINUTES_KEPT = 360


class Totals(NamedTuple):
    """Sums since the start; `stored_s` is the sum of seconds from close to stored of all files."""

    arrived: int = 0
    archived: int = 0
    file_bytes: int = 0
    stored_files: int = 0
    stored_s: float = 0.0


class Minute(NamedTuple):
    """One minute; `stored_s` is a mean, None if nothing was stored; an unknown backlog is None."""

    arrived: int
    archived: int
    file_bytes: int
    backlog: int | None
    stored_s: float | None


class Minutes(Struct, frozen=True):
    """Whole minutes, oldest first; `end_s` is the Unix time at which the last one ended."""

    end_s: float
    minutes: tuple[Minute, ...] = ()


class History:
    """Collects the minutes.

    Args:
        now_s: monotonic seconds.
        wall_s: Unix time.
    """

    def __init__(self, now_s: float, wall_s: float) -> None:
        self._next_s = now_s + STEP_S
        self._before = Totals()
        self._minutes: deque[Minute] = deque(maxlen=MINUTES_KEPT)
        self._kept = Minutes(wall_s)

    def note(self, now_s: float, wall_s: float, totals: Totals, backlog: int | None) -> Minutes:
        """Record the current sums; return the whole minutes so far.

        If several minutes passed since the last call, the first of them gets the whole increase.
        """
        if now_s < self._next_s:
            return self._kept
        while now_s >= self._next_s:
            self._next_s += STEP_S
            self._minutes.append(_between(self._before, totals, backlog))
            self._before = totals
            if now_s - self._next_s > MINUTES_KEPT * STEP_S:  # the machine was suspended
                self._next_s = now_s + STEP_S
        self._kept = Minutes(wall_s, tuple(self._minutes))
        return self._kept


def _between(before: Totals, after: Totals, backlog: int | None) -> Minute:
    files = after.stored_files - before.stored_files
    return Minute(
        arrived=after.arrived - before.arrived,
        archived=after.archived - before.archived,
        file_bytes=after.file_bytes - before.file_bytes,
        backlog=backlog,
        stored_s=(after.stored_s - before.stored_s) / files if files else None,
    )
