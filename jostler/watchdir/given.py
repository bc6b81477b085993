"""Arrivals that somebody names: files that were just written, and no others.

**Invariant:** nothing is watched and no directory is read; each path is given once, as closed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from jostler.watchdir.arrivals import Arrival, How, Pace
from jostler.watchdir.gatherer import ScanArrivals
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.watchdir.arrivals import ScanReason


class GivenArrivals(ScanArrivals):
    """Arrivals of some files.

    Args:
        paths: absolute.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        super().__init__((), Wanted(()), Pace(scan_every_s=math.inf), "the files are given")
        self._left = list(paths)
        self._left.reverse()

    @property
    def scanning(self) -> bool:
        """Whether there are more paths to take."""
        return bool(self._left)

    @property
    def waiting(self) -> int:
        """How many paths are left to take."""
        return len(self._left)

    def take(self, most: int) -> list[Arrival]:
        """Return at most `most` of the paths."""
        taken = [self._left.pop() for _ in range(min(most, len(self._left)))]
        return [Arrival(path, How.EVENT) for path in taken if self._is_file(path)]

    def scan(self, reason: ScanReason) -> None:
        """Do nothing: no other file is looked for."""
        del reason
