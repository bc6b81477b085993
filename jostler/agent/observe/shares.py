"""The share of bad files of each datatype, in the last hour and in the hours before it.

**Invariant:** the input is sums since the start, the output differences of them.  Memory is
bounded, whatever the clock does.  Pure: the current time is an argument.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP_S = 300.0
RECENT_S = 3600.0
KEPT_S = 6 * 3600.0


class Share(NamedTuple):
    """The numbers of good and bad files in a period."""

    good: int = 0
    bad: int = 0

    @property
    def files(self) -> int:
        """The number of all files."""
        return self.good + self.bad

    @property
    def of_bad(self) -> float:
        """The share of bad files, 0 to 1."""
        return self.bad / self.files if self.files else 0.0

    def __sub__(self, other: Share) -> Share:
        return Share(self.good - other.good, self.bad - other.bad)


class Shares(NamedTuple):
    """For one datatype: the last hour, and the five hours before it as far as known."""

    recent: Share = Share()
    before: Share = Share()


class ShareHistory:
    """Keeps one set of sums for every five minutes."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, Mapping[str, Share]]] = deque()

    def note(self, now_s: float, sums: Mapping[str, Share]) -> dict[str, Shares]:
        """Record the sums since the start, by datatype; return the shares of the last hours.

        Args:
            now_s: monotonic seconds.
            sums: grow only.
        """
        if not self._kept or now_s - self._kept[-1][0] >= STEP_S:
            self._kept.append((now_s, dict(sums)))
        while now_s - self._kept[0][0] > KEPT_S:
            self._kept.popleft()
        # The last hour begins at the oldest sums that are at most an hour old.
        recently = [kept for at_s, kept in self._kept if now_s - at_s <= RECENT_S]
        edge = recently[0] if recently else sums
        first = self._kept[0][1]
        return {name: _between(name, first, edge, sums) for name in sums}


def _between(
    name: str, first: Mapping[str, Share], edge: Mapping[str, Share], now: Mapping[str, Share]
) -> Shares:
    zero = Share()
    middle = edge.get(name, zero)
    return Shares(recent=now[name] - middle, before=middle - first.get(name, zero))
