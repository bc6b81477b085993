"""Which directory each inotify watch stands for.

**Invariant:** a watch has one path and a path one watch.  The kernel watches inodes and goes on
reporting a directory that was moved away, so the paths are ours to keep true.  No event is read
here.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Protocol

from inotify_simple import Event, flags

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
