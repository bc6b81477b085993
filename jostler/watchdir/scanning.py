"""Arrivals by scanning alone.

**Invariant:** what exists when a scan begins is met by that scan, and a scan begins every few
seconds.  It is the fallback that always works; it needs no descriptor while it rests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.watchdir.arrivals import ScanReason
from jostler.watchdir.gatherer import Gatherer

if TYPE_CHECKING:
    from jostler.watchdir.arrivals import Pace
    from jostler.watchdir.wanted import Wanted


class ScanArrivals(Gatherer):
    """Arrivals without events.

    Args:
        why: why there are no events, in words.
    """

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace, why: str) -> None:
        super().__init__(roots, wanted, pace)
        self._why = why
        self.scan(ScanReason.START)

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words."""
        return self._why

    def _gather(self) -> None:
        """There is no source."""

    def _look(self) -> None:
        """A root that comes or goes is simply read, or not, by the next scan."""
