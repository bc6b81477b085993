"""Arrivals by inotify, the Linux kernel's file events.

**Invariant:** every directory below a root is watched, or counted as unwatched and scanned often.
A new directory is first watched and then read, so that no file in it is missed.  A scan follows an
overflow of the kernel's queue, the return of a root, and a full buffer.  No file is opened and no
thread is started.
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

# Plain integers: `&` on an IntEnum creates a new member for every event and is ten times slower.
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
    """An inotify instance; `inotify_simple.INotify` is the real one."""

    def fileno(self) -> int:
        """Return the descriptor; it is readable when there are events."""
        ...

    def add_watch(self, path: str, mask: int) -> int:
        """Watch a directory; return the watch's number, which is the same for the same inode."""
        ...

    def rm_watch(self, wd: int) -> None:
        """End a watch; the kernel still sends its IGNORED event."""
        ...

    def read(self, timeout: int) -> list[Event]:
        """Return the events in the queue; wait at most `timeout` milliseconds for the first."""
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
        """Watch a directory; do nothing if it is already watched.

        Raises:
            OSError: inotify_add_watch(2) fails.
        """
        mask = MASK if follow else MASK | flags.DONT_FOLLOW
        watch = self._inotify.add_watch(path, mask)
        # inotify_add_watch(2) returns the number that the inode already has, whatever the path is.
        # So an equal number means the same directory, and another one a new directory of this name.
        if self._watches.get(path) == watch:
            return
        self._drop(path)  # an earlier directory of this path had another watch
        # The same inode under another path: the directory was renamed, and its MOVED_FROM is still
        # to come.
        moved_from = self.paths.get(watch)
        if moved_from is not None:
            self._unlist(moved_from)
        self.paths[watch] = path
        self._watches[path] = watch
        self._below.setdefault(os.path.dirname(path), set()).add(path)  # noqa: PTH120 - text

    def forget(self, watch: int) -> str | None:
        """Forget a watch that the kernel removed; return its path, or None if we removed it."""
        path = self.paths.get(watch)
        if path is not None:
            self._unlist(path)
        return path

    def remove(self, path: str) -> None:
        """End the watches of `path` and of everything below it."""
        doomed = [path]
        while doomed:
            path = doomed.pop()
            doomed.extend(self._below.get(path, ()))
            self._drop(path)

    def _drop(self, path: str) -> None:
        watch = self._watches.get(path)
        if watch is not None:
            self._unlist(path)
            with suppress(OSError):  # EINVAL: the kernel removed it with its directory
                self._inotify.rm_watch(watch)

    def _unlist(self, path: str) -> None:
        del self.paths[self._watches.pop(path)]
        siblings = self._below[os.path.dirname(path)]  # noqa: PTH120 - text
        siblings.discard(path)
        if not siblings:
            del self._below[os.path.dirname(path)]  # noqa: PTH120 - text


class InotifyArrivals(Gatherer):
    """Arrivals by one inotify instance for all roots; it owns and closes the instance."""

    source = "inotify"

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace, inotify: Kernel) -> None:
        super().__init__(roots, wanted, pace)
        self._inotify = inotify
        self._held.callback(inotify.close)
        self._watched = Watches(inotify)
        self._poller.register(inotify.fileno(), select.POLLIN)
        self._network = network_mounts(roots)
        self._roots.changes()
        # Watches first, then the scan: a file that arrives in between is seen twice, which is
        # harmless; in the other order it would be missed until the periodic scan.
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
        """Watch all directories now, so that arrivals during the first scan give events."""
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
        # The kernel dropped events because its queue was full; it does not say which: inotify(7).
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
            self._take_in(path)  # after MOVED_FROM too: another directory may have the path now

    def _on_self(self, watch: int, mask: int) -> None:
        """Handle the move, removal or unmount of a watched directory."""
        path = self._watched.paths.get(watch)
        if path in self._roots.paths:
            self._look_s, self._looks = time.monotonic(), True
        # The kernel sends IGNORED when it has removed a watch; a directory that was only renamed
        # (MOVE_SELF) keeps its watch: inotify(7).
        if path is None or not mask & IGNORED:
            return
        self._watched.forget(watch)
        if path in self._roots.paths:
            self._roots.doubt(path)  # a new directory there may get the same inode number
        else:
            self._take_in(path)  # an unmount makes the directory below it visible again

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
            self.wake()  # the owner may want to make a directory again that was removed
        # A root that is there gives an event when it goes.  Only what happens above it gives none,
        # a mount or another directory of that name: an idle agent is not woken every second for it.
        self._looks = not all(map(self._roots.exists, self._roots.paths))

    def _enter(self, path: str) -> bool:
        try:
            self._watched.add(path, follow=path in self._roots.paths)
        except OSError as exc:
            if exc.errno in GONE:
                return False
            self._uncovered("watch.degraded", path, exc)
            return exc.errno != errno.EACCES  # without permission it cannot be read either
        return True
