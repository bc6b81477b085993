"""The forecast when the spool's disk is full, by the trend of the last hour.

**Invariant:** memory is bounded; there is no forecast from less than five minutes.  Pure: the
current time is an argument.
"""

from __future__ import annotations

import math
from collections import deque

STEP_S = 30.0
KEPT_S = 3600.0
KNOWN_AFTER_S = 300.0
NEVER_S = 100 * 86400.0
"""Beyond this time there is no forecast: other changes on the disk outweigh the trend."""


class Trend:
    """The free bytes over the last hour, one value per half minute."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, int]] = deque()

    def full_in_s(self, now_s: float, free_bytes: int) -> float:
        """Record the free bytes; return in how many seconds the disk is full, or infinity.

        Args:
            now_s: monotonic seconds.
            free_bytes: the free bytes of the file system.
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
    """Return the slope of the least-squares line through the points, in bytes per second."""
    count = len(points)
    mean_s = sum(at_s for at_s, _ in points) / count
    mean_bytes = sum(free for _, free in points) / count
    spread = sum((at_s - mean_s) ** 2 for at_s, _ in points)
    both = sum((at_s - mean_s) * (free - mean_bytes) for at_s, free in points)
    return both / spread if spread else 0.0
