"""Decide which days begin next, so that no experiment keeps others waiting.

Each experiment has a lane.  Its days are verified in waves, one wave of a lane at a time, and
loaded one by one.  Waves of different lanes run side by side, so a long day holds up its own lane
only.

**Invariant:** both for verifying and for loading there are `most` places.  While a day of another
lane waits for one, a lane holds at most its share of them, and at least one; otherwise it may hold
all.  A free place goes to the lane that holds the smallest part of its share, and among equals to
the one that has had the fewest.

Pure: whoever calls it holds a lock, and says what has ended.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

    from loader.plan.due import TableDay

_Item = TypeVar("_Item")


@dataclass(slots=True)
class Lane(Generic[_Item]):
    """The days of one experiment.

    Attributes:
        each: how many places it may hold while others wait.
        waiting: the days that are not begun, the next one last.
        verifying: how many days its wave still has.
        verified: what is to be loaded, in order.
        loading: how many days are being loaded.
        begun: how many days have begun to be verified.
        sent: how many days have begun to be loaded.
    """

    experiment: str
    each: int
    waiting: list[TableDay]
    verifying: int = 0
    verified: deque[_Item] = field(default_factory=deque)
    loading: int = 0
    begun: int = 0
    sent: int = 0

    @property
    def unloaded(self) -> int:
        """How many days are verified, or to be verified, and not yet being loaded."""
        return len(self.waiting) + self.verifying + len(self.verified)

    @property
    def ahead(self) -> int:
        """How many places for verifying it holds: until loading begins."""
        return self.verifying + len(self.verified)


class Lanes(Generic[_Item]):
    """The lanes of a run.

    Args:
        days: the due days, in any order.
        most: how many days may be verified at a time, and how many loaded.
        share: returns the part of the places that an experiment may hold while others wait.
        most_bytes: the maximum size of a wave's objects, unless one day alone is larger.
    """

    def __init__(
        self,
        days: Iterable[TableDay],
        *,
        most: int,
        share: Callable[[str], float],
        most_bytes: int,
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._lanes: dict[str, Lane[_Item]] = {}
        for day in sorted(days, key=_urgency, reverse=True):
            name = day.table.experiment
            if name not in self._lanes:
                self._lanes[name] = Lane(name, max(1, int(most * share(name))), [])
            self._lanes[name].waiting.append(day)

    @property
    def experiments(self) -> list[str]:
        """The names of all lanes."""
        return sorted(self._lanes)

    @property
    def all_begun(self) -> bool:
        """Whether no day waits to be verified."""
        return not any(lane.waiting for lane in self._lanes.values())

    @property
    def all_loading(self) -> bool:
        """Whether each day is loaded or being loaded."""
        return not any(lane.unloaded for lane in self._lanes.values())

    def next_wave(self) -> list[TableDay]:
        """Take the days of one experiment that are to be verified now; none if all must wait."""
        room = self._most - sum(lane.ahead for lane in self._lanes.values())
        may = [
            (lane.ahead / lane.each, lane.begun, lane.experiment, least)
            for lane in self._lanes.values()
            if lane.waiting and not lane.verifying
            for least in [min(room, self._limit(lane, lambda other: other.waiting) - lane.ahead)]
            if least > 0
        ]
        if not may:
            return []
        *_, name, count = min(may)
        lane = self._lanes[name]
        wave: list[TableDay] = []
        size = 0
        while lane.waiting and len(wave) < count:
            size += lane.waiting[-1].size_bytes
            if wave and size > self._most_bytes:
                break
            wave.append(lane.waiting.pop())
        lane.verifying = len(wave)
        lane.begun += len(wave)
        return wave

    def verified(self, day: TableDay, item: _Item) -> None:
        """Note that a day of a wave is verified, and what is to be loaded."""
        lane = self._lanes[day.table.experiment]
        lane.verifying -= 1
        lane.verified.append(item)

    def ended_wave(self, experiment: str) -> None:
        """Note the end of a wave: its days that were not verified are not loaded."""
        self._lanes[experiment].verifying = 0

    def next_load(self) -> tuple[str, _Item] | None:
        """Take what is to be loaded now, with its experiment; None if all must wait."""
        if sum(lane.loading for lane in self._lanes.values()) >= self._most:
            return None
        may = [
            (lane.loading / lane.each, lane.sent, lane.experiment)
            for lane in self._lanes.values()
            if lane.verified and lane.loading < self._limit(lane, lambda other: other.unloaded > 0)
        ]
        if not may:
            return None
        lane = self._lanes[min(may)[-1]]
        lane.loading += 1
        lane.sent += 1
        return lane.experiment, lane.verified.popleft()

    def loaded(self, experiment: str) -> None:
        """Note that a day is loaded, or could not be."""
        self._lanes[experiment].loading -= 1

    def _limit(self, lane: Lane[_Item], waits: Callable[[Lane[_Item]], object]) -> int:
        """Return how many places a lane may hold now."""
        others = any(waits(other) for other in self._lanes.values() if other is not lane)
        return lane.each if others else self._most


def _urgency(day: TableDay) -> tuple[bool, date, str]:
    """Sort what somebody asked for before the rest, then the oldest first."""
    return day.requested is None, day.date, str(day.table.name)
