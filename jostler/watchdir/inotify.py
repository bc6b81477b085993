"""Arrivals told by the Linux kernel.

**Invariant:** every directory below a root is watched, or counted as unwatched and scanned often.
A new one is watched and then read; an overflow, a root that was away and a full buffer are each
followed by a scan.  No file is opened, and no thread is started.
"""

from __future__ import annotations

import errno
import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from inotify_simple import Event, flags

from jostler.watchdir.arrivals import ScanReason
from jostler.watchdir.gatherer import Gatherer
from jostler.watchdir.roots import network_mounts
from jostler.watchdir.walk import GONE, walk

if TYPE_CHECKING:
    from jostler.watchdir.arrivals import Pace
    from jostler.watchdir.walk import Wanted

# Plain integers: `&` on an IntEnum makes a new one, at ten times the price, for every event.
ARRIVED = int(flags.CLOSE_WRITE | flags.MOVED_TO)
CREATED = int(flags.CREATE)
MOVED_FROM = int(flags.MOVED_FROM)
IS_DIR = int(flags.ISDIR)
OVERFLOWED = int(flags.Q_OVERFLOW)
ABOUT_SELF = int(flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT)
IGNORED = int(flags.IGNORED)
RARE = IS_DIR | OVERFLOWED | ABOUT_SELF


MASK = (
    flags.CLOSE_WRITE
    | flags.MOVED_TO
    | flags.MOVED_FROM
    | flags.CREATE
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
)


class Kernel(Protocol):
    """An inotify instance, as `inotify_simple.INotify` is one."""

    def fileno(self) -> int:
        """Give the descriptor, readable when there are events."""
        ...

    def add_watch(self, path: str, mask: int) -> int:
        """Watch a directory and give the watch's number, the same for the same inode."""
        ...

    def rm_watch(self, wd: int) -> None:
        """End a watch; its IGNORED event still follows."""
        ...

    def read(self, timeout: int) -> list[Event]:
        """Give the events in the queue, waiting at most `timeout` milliseconds for one."""
        ...

    def close(self) -> None:
        """End all watches."""
        ...


class Watches:
    """The watches of one inotify instance.

    Attributes:
        paths: the directory of each watch; for reading.
    """

    def __init__(self, inotify: Kernel) -> None:
        self._inotify = inotify
        self.paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._below: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self.paths)

    def add(self, path: str, *, follow: bool) -> None:
        """Watch a directory; harmless when it is watched.

        Raises:
            OSError: what inotify_add_watch(2) says.
        """
        mask = MASK if follow else MASK | flags.DONT_FOLLOW
        watch = self._inotify.add_watch(path, mask)
        if self._watches.get(path) == watch:
            return
        self._drop(path)  # another directory stood there
        moved_from = self.paths.get(watch)
        if moved_from is not None:
            self._unlist(moved_from)
        self.paths[watch] = path
        self._watches[path] = watch
        self._below.setdefault(os.path.dirname(path), set()).add(path)  # noqa: PTH120 - text

    def forget(self, watch: int) -> str | None:
        """Strike out a watch that the kernel removed; tell its path unless we removed it."""
        path = self.paths.get(watch)
        if path is not None:
            self._unlist(path)
        return path

    def remove(self, path: str) -> None:
        """Watch neither `path` nor anything below it."""
        doomed = [path]
        while doomed:
            path = doomed.pop()
            doomed.extend(self._below.get(path, ()))
            self._drop(path)

    def _drop(self, path: str) -> None:
        watch = self._watches.get(path)
        if watch is not None:
            self._unlist(path)
            with suppress(OSError):  # EINVAL: it went with its directory
                self._inotify.rm_watch(watch)

    def _unlist(self, path: str) -> None:
        del self.paths[self._watches.pop(path)]
        siblings = self._below[os.path.dirname(path)]  # noqa: PTH120 - text
        siblings.discard(path)
        if not siblings:
            del self._below[os.path.dirname(path)]  # noqa: PTH120 - text


class InotifyArrivals(Gatherer):
    """Arrivals by one inotify instance, which it owns and closes, over all roots."""

    source = "inotify"

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
            self._notices.warning("watch.overflowed", next="scan")
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
                self._notices.warning("watch.lost", root=root, next="scan when it is there")
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
