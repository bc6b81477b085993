"""The paths that were reported and not yet taken.

**Invariant:** no path is held twice, and never more than `limit` of either kind; what does not fit
is refused, and the caller must then ask for a scan.  Nothing here reads a file or a clock.
"""

from __future__ import annotations

from collections import OrderedDict

from jostler.watchdir.arrivals import Arrival, How


class Inbox:
    """Arrivals in the order in which they came, and files created that nobody has closed yet.

    link(2) and O_TMPFILE make a file with a CREATE event and no other.  Every ordinary file begins
    with one too, so a creation is kept aside until its close comes or it is `hint_after_s` old.
    """

    def __init__(self, limit: int, hint_after_s: float) -> None:
        self._limit = limit
        self._hint_after_s = hint_after_s
        self._held: OrderedDict[str, How] = OrderedDict()
        self._created: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def is_closed(self, path: str) -> bool:
        """Say whether a path is held that was closed or renamed in."""
        return self._held.get(path) is How.EVENT

    def closed(self, path: str) -> bool:
        """Hold a file that was closed or renamed in; False when there is no room."""
        self._created.pop(path, None)
        if len(self._held) >= self._limit and path not in self._held:
            return False
        self._held[path] = How.EVENT
        return True

    def met(self, path: str) -> bool:
        """Hold a file that may still be open; False when there is no room."""
        if path in self._held:
            return True
        if len(self._held) >= self._limit:
            return False
        self._held[path] = How.SCAN
        return True

    def created(self, path: str, now_s: float) -> bool:
        """Note a file that is new under its name; False when there is no room.

        What was held under the name is another file, and gone.
        """
        self._held.pop(path, None)
        self._created.setdefault(path, now_s)
        if len(self._created) <= self._limit:
            return True
        return self.met(self._created.popitem(last=False)[0])

    def hint_due_s(self) -> float | None:
        """Tell when the oldest creation without a close is to be reported."""
        oldest = next(iter(self._created.values()), None)
        return None if oldest is None else oldest + self._hint_after_s

    def release(self, now_s: float) -> bool:
        """Hold the creations that are due; False when there was no room for one."""
        fits = True
        while (due_s := self.hint_due_s()) is not None and due_s <= now_s:
            fits = self.met(self._created.popitem(last=False)[0]) and fits
        return fits

    def pop(self) -> Arrival:
        """Give away the oldest."""
        return Arrival(*self._held.popitem(last=False))
