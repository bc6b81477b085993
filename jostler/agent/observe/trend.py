"""When the spool's disk is full, if it goes on as in the last hour.

**Invariant:** memory is bounded; less than five minutes say nothing.  Pure: the present is an
argument.
"""

from __future__ import annotations

import math
from collections import deque

STEP_S = 30.0
KEPT_S = 3600.0
KNOWN_AFTER_S = 300.0
NEVER_S = 100 * 86400.0
"""So far off that it is none: what else happens on a disk in this time is more than the trend."""


class Trend:
    """Free bytes over the last hour, one value in half a minute."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, int]] = deque()

    def full_in_s(self, now_s: float, free_bytes: int) -> float:
        """Learn how much is free; return in how many seconds nothing is, infinity for never.

        Args:
            now_s: monotonic seconds.
            free_bytes: of the file system.
        """
        if not self._kept or now_s - self._kept[-1][0] >= STEP_S:
            self._kept.append((now_s, free_bytes))
        while now_s - self._kept[0][0] > KEPT_S:
            self._kept.popleft()
        if not self._kept or now_s - self._kept[0][0] < KNOWN_AFTER_S:
            return math.inf
        shrinks = -_slope(self._kept)
        left_s = free_bytes / shrinks if shrinks > 0 else math.inf
        return left_s if left_s < NEVER_S else math.inf


def _slope(points: deque[tuple[float, int]]) -> float:
    """Return the slope of the line through points that is nearest to them: bytes per second."""
    count = len(points)
    mean_s = sum(at_s for at_s, _ in points) / count
    mean_bytes = sum(free for _, free in points) / count
    spread = sum((at_s - mean_s) ** 2 for at_s, _ in points)
    both = sum((at_s - mean_s) * (free - mean_bytes) for at_s, free in points)
    return both / spread if spread else 0.0
