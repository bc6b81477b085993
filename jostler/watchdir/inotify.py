"""Arrivals told by the Linux kernel.

**Invariant:** every directory below a root is watched, or counted as unwatched and scanned often.
A new one is watched and then read; an overflow, a root that was away and a full buffer are each
followed by a scan.  No file is opened, and no thread is started.
"""

from __future__ import annotations

import errno
import select
import time
from typing import TYPE_CHECKING

from inotify_simple import flags

from jostler.watchdir.arrivals import ScanReason
from jostler.watchdir.gatherer import Gatherer
from jostler.watchdir.mounts import network_mounts
from jostler.watchdir.walk import GONE, walk
from jostler.watchdir.watches import Watches

if TYPE_CHECKING:
    from jostler.watchdir.arrivals import Pace
    from jostler.watchdir.wanted import Wanted
    from jostler.watchdir.watches import Kernel

# Plain integers: `&` on an IntEnum makes a new one, at ten times the price, for every event.
ARRIVED = int(flags.CLOSE_WRITE | flags.MOVED_TO)
CREATED = int(flags.CREATE)
MOVED_FROM = int(flags.MOVED_FROM)
IS_DIR = int(flags.ISDIR)
OVERFLOWED = int(flags.Q_OVERFLOW)
ABOUT_SELF = int(flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT)
IGNORED = int(flags.IGNORED)
RARE = IS_DIR | OVERFLOWED | ABOUT_SELF


class InotifyArrivals(Gatherer):
    """Arrivals by one inotify instance, which it owns and closes, over all roots."""

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace, inotify: Kernel) -> None:
        super().__init__(roots, wanted, pace)
        self._inotify = inotify
        self._held.callback(inotify.close)
        self._watched = Watches(inotify)
        self._poller.register(inotify.fileno(), select.POLLIN)
        self._network = network_mounts(roots)
        self._roots.changes()
        self._watch_everything()
        self.scan(ScanReason.START)

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words; empty when events cover everything."""
        reasons = [f"{root} is on {kind}" for root, kind in self._network.items()]
        if self._unwatched:
            reasons.append(f"{self._unwatched} directories without a watch")
        return "; ".join(reasons)

    def _watches(self) -> int:
        return len(self._watched)

    def _watch_everything(self) -> None:
        """Watch all directories now, so that what comes during the first scan is an event."""
        for root in self._roots.paths:
            for _ in walk(
                root,
                self._wanted,
                enter=self._enter,
                failed=self._not_read,
                follow_top=True,
            ):
                pass

    def _gather(self) -> None:
        paths, wanted, inbox = self._watched.paths, self._wanted.file, self._inbox
        now_s = time.monotonic()
        for watch, mask, _, name in self._inotify.read(timeout=0):
            if mask & RARE:
                self._on_rare(watch, mask, name)
            elif wanted(name) and watch in paths:
                path = f"{paths[watch]}/{name}"
                if mask & ARRIVED:
                    self._take_closed(path)
                elif mask & CREATED and not inbox.created(path, now_s):
                    self._fit(fits=False)
            elif mask & ARRIVED and name[:1] != "." and watch in paths:
                self._ignore(paths[watch], "extension")

    def _on_rare(self, watch: int, mask: int, name: str) -> None:
        if mask & OVERFLOWED:
            self._overflows += 1
            self._notices.warn("watch.overflowed", next="scan")
            self.scan(ScanReason.OVERFLOW)
        elif mask & ABOUT_SELF:
            self._on_self(watch, mask)
        elif self._wanted.directory(name) and watch in self._watched.paths:
            path = f"{self._watched.paths[watch]}/{name}"
            if mask & MOVED_FROM:
                self._watched.remove(path)
            self._take_in(path)  # after MOVED_FROM too: something else may stand there already

    def _on_self(self, watch: int, mask: int) -> None:
        """Answer for a watched directory that was moved, removed or unmounted."""
        path = self._watched.paths.get(watch)
        if path in self._roots.paths:
            self._look_s = time.monotonic()
        if path is None or not mask & IGNORED:
            return
        self._watched.forget(watch)
        if path in self._roots.paths:
            self._roots.doubt(path)  # its successor may have the same inode number
        else:
            self._take_in(path)  # an unmount uncovers the directory below

    def _look(self) -> None:
        changes = self._roots.changes()
        for root, was, now, again in changes:
            self._watched.remove(root)
            if was:
                self._lost += 1
                self._notices.warn("watch.lost", root=root, next="scan when it is there")
            if now:
                self.scan(ScanReason.LOST_WATCH if again else ScanReason.APPEARED)
        if changes:
            self._network = network_mounts(self._roots.paths)

    def _enter(self, path: str) -> bool:
        try:
            self._watched.add(path, follow=path in self._roots.paths)
        except OSError as exc:
            if exc.errno in GONE:
                return False
            self._uncovered("watch.degraded", path, exc)
            return exc.errno != errno.EACCES  # which says that it cannot be read either
        return True
