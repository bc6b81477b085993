"""Histograms that count many values in one call.

**Invariant:** one thread adds values; a copy that `copy` returned is never changed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BUNDLE_BYTES = (1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8)
"""The buckets of the Go agent's `jostler_bytes_per_bundle`: existing alerts use them."""
UPLOAD_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
STORED_S = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0, 86400.0)


class Histogram:
    """Counts of values by size.

    Args:
        bounds: upper bounds of the buckets, ascending; each belongs to its bucket.
    """

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, values: Iterable[float]) -> None:
        """Count values; thousands at once cost little more than sorting them."""
        ordered = sorted(values)  # then one binary search per bucket, not one per value
        below = 0
        for place, bound in enumerate(self._bounds):
            end = bisect_right(ordered, bound)
            self._counts[place] += end - below
            below = end
        self._counts[-1] += len(ordered) - below
        self.sum += sum(ordered)

    def add_since(self, now_ns: int, moments_ns: Iterable[int]) -> None:
        """Count the seconds since each of many moments, 0 for those that are yet to come.

        Without a step in Python for each: a backlog has twenty thousand files a second.

        Args:
            now_ns: nanoseconds since 1970.
            moments_ns: in the same unit.
        """
        ordered = sorted(moments_ns)
        below = 0
        for place, bound in enumerate(self._bounds):
            end = len(ordered) - bisect_left(ordered, now_ns - round(bound * 1e9))
            self._counts[place] += end - below
            below = end
        self._counts[-1] += len(ordered) - below
        past = bisect_right(ordered, now_ns)
        self.sum += (past * now_ns - sum(ordered[:past])) / 1e9

    def copy(self) -> Histogram:
        """Return a copy of the current counts."""
        made = Histogram(self._bounds)
        made._counts = self._counts.copy()
        made.sum = self.sum
        return made

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Return each bound as text and how many values do not exceed it; the last is `+Inf`."""
        bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))
