"""The folders of days below a datatype's directory, to which staged files are moved.

**Invariant:** a file is moved only to a name that nothing has; a folder made here is durable
before a file is moved to it, or is synced with all names at the end.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from jostler.producer.system import rename_new, sync_all

if TYPE_CHECKING:
    from pathlib import Path

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folders:
    """The folders of days that files are moved to; each is opened once, and synced at the end.

    Args:
        top: the directory above them.
        at_once: whether all of the file system is synced at the end, in place of each folder: a
            thousand folders of as many datatypes would take seconds.
    """

    def __init__(self, top: Path, *, at_once: bool) -> None:
        self._top = top
        self._at_once = at_once
        self._open: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()

    def take(self, source: int, temporary: str, filename: str) -> None:
        """Move a file from the open directory `source` to its name, which must be free."""
        folder, _, name = filename.rpartition("/")
        target = self._open.get(folder)
        if target is None:
            target = self._open[folder] = self._made(folder)
        rename_new(temporary, name, source=source, target=target)

    def sync(self) -> None:
        """Make the names durable, and the folders above them."""
        for fd in self._open.values():
            if self._at_once:
                # All folders are on one file system, which one syncfs(2) covers.
                sync_all(fd)
                return
            os.fsync(fd)

    def forget(self) -> None:
        """Close all folders."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _made(self, folder: str) -> int:
        """Open a folder; make it first if it does not exist."""
        path = self._top
        for part in folder.split("/"):
            above, path = path, path / part
            try:
                path.mkdir()
            except FileExistsError:
                continue
            if self._at_once:
                continue
            # fsync(2) of a folder does not cover its own name, which is in the folder above.
            fd = os.open(above, DIRECTORY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        return os.open(path, DIRECTORY)
