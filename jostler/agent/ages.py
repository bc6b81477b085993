"""When a file that a scan merely met is old enough to be taken.

**Invariant:** a time in the future means that the clock was set back, not that the file was just
written: the distance counts, so such a file is late by the step at the most.

Pure: now is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostler.bundle import FileState


@dataclass(frozen=True, slots=True)
class Ages:
    """The two ages of `-settle-age` and `-missed-age`, in seconds."""

    settle_s: float
    missed_s: float

    def until_missed_s(self, state: FileState, now_ns: int) -> float:
        """Return the seconds until a file is taken, good or bad; 0 or less: it is old enough."""
        return self.missed_s - abs(now_ns - state.mtime_ns) / 1e9

    def until_settled_s(self, state: FileState, now_ns: int) -> float:
        """Return the seconds until a file is taken if it is good; 0 or less: it is old enough."""
        touched_ns = max(state.mtime_ns, state.ctime_ns)
        settled_s = self.settle_s - abs(now_ns - touched_ns) / 1e9
        return min(settled_s, self.until_missed_s(state, now_ns))
