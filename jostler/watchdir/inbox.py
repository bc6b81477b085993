"""The buffer of paths that were reported and not yet taken.

**Invariant:** no path is buffered twice, and never more than `limit` arrivals or creations.  A path
that does not fit is refused, and the caller must then request a scan.  Nothing here reads a file or
a clock.
"""

from __future__ import annotations

from collections import OrderedDict

from jostler.watchdir.arrivals import Arrival, How


class Inbox:
    """Arrivals in their order, and created files that have not been closed yet.

    A file made by link(2) or O_TMPFILE gets a CREATE event and no CLOSE_WRITE event.  Every other
    new file gets a CREATE event too, so a creation is kept separately until the file is closed or
    `hint_after_s` has passed.
    """

    def __init__(self, limit: int, hint_after_s: float) -> None:
        self._limit = limit
        self._hint_after_s = hint_after_s
        self._held: OrderedDict[str, How] = OrderedDict()
        self._created: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def is_closed(self, path: str) -> bool:
        """Return whether the path is buffered as closed or renamed in."""
        return self._held.get(path) is How.EVENT

    def closed(self, path: str) -> bool:
        """Buffer a file that was closed or renamed in; return False if there is no room."""
        self._created.pop(path, None)
        if len(self._held) >= self._limit and path not in self._held:
            return False
        self._held[path] = How.EVENT
        return True

    def met(self, path: str) -> bool:
        """Buffer a file that may still be open; return False if there is no room."""
        if path in self._held:  # perhaps as closed, which says more than a scan
            return True
        if len(self._held) >= self._limit:
            return False
        self._held[path] = How.SCAN
        return True

    def created(self, path: str, now_s: float) -> bool:
        """Record the creation of a file; return False if there is no room.

        A path buffered under this name belonged to an earlier file, which is gone.
        """
        self._held.pop(path, None)
        # setdefault: the first creation counts, so that a name that is created again and again is
        # reported.
        self._created.setdefault(path, now_s)
        if len(self._created) <= self._limit:
            return True
        # Too many open files: the oldest one is reported early, as one that may still be written.
        return self.met(self._created.popitem(last=False)[0])

    def hint_due_s(self) -> float | None:
        """Return when the oldest creation without a close is to be reported; None if none is."""
        oldest = next(iter(self._created.values()), None)
        return None if oldest is None else oldest + self._hint_after_s

    def release(self, now_s: float) -> bool:
        """Buffer the creations that are due; return False if there was no room for one."""
        fits = True
        while (due_s := self.hint_due_s()) is not None and due_s <= now_s:
            # `met` stands first: after `fits and` nothing more would be removed once a file had no
            # room, and the loop would not end.
            fits = self.met(self._created.popitem(last=False)[0]) and fits
        return fits

    def pop(self) -> Arrival:
        """Remove and return the oldest arrival."""
        return Arrival(*self._held.popitem(last=False))
