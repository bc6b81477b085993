"""The reserve: disk space that is kept for the journal, so that a full disk can be emptied.

Files are unlinked only after their record is in the journal.  So if no record could be written on
a full disk, the disk would stay full.

**Invariant:** the reserve's blocks stay allocated to the journal.  On a full disk a record is
written over them in place; when the record is no longer needed, its file becomes the reserve again.
If the blocks were freed in between, the program that fills the disk would get them first.

The reserve holds one record at a time.  File systems that never write in place (btrfs, zfs) need
new blocks for a record; there the reserve helps only against a quota.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jostler.bundle.record import END

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

RESERVE_BYTES = 16 * 1024 * 1024
"""The size of the whole reserve."""
_LEAST_BYTES = 64 * 1024
"""The smallest reserve that is tried when the disk has too little space for the whole."""


class Reserve:
    """The reserve of one state directory; only one thread at a time may use it.

    Args:
        path: the path of the reserve's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._complete = False

    def take(self) -> None:
        """Allocate the reserve, or as much of it as the disk has; keep what is allocated.

        Errors are ignored: the agent works without a reserve until the disk is full.
        """
        if self._complete and self._path.exists():
            return
        self._complete = False
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                self._complete = _grow(fd)
                empty = not os.fstat(fd).st_size
            finally:
                os.close(fd)
            # A reserve of no bytes would make `take_over` refuse the blocks of a record that is
            # done with.
            if empty:
                self._path.unlink()

    def write(self, target: Path, lines: Iterable[bytes]) -> bool:
        """Write a record over the reserve and rename the file; the caller syncs the directory.

        Args:
            target: the path of the record.
            lines: the content of the record; `END` is added.

        Returns:
            Whether it was written; False, with nothing changed, if there is no reserve or the
            record is longer than it.

        Raises:
            OSError: the record cannot be written.
        """
        content = b"".join((*lines, END))
        try:  # without O_TRUNC, which would free the blocks
            fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            if len(content) > os.fstat(fd).st_size:
                return False
            written = 0
            while written < len(content):
                written += os.pwrite(fd, content[written:], written)
            # posix_fallocate(3): writes to the allocated range do not fail for lack of disk space.
            os.fsync(fd)
        finally:
            os.close(fd)
        # Only a whole, durable record gets a record's name.  Old content follows its END; readers
        # stop there.
        self._path.rename(target)
        self._complete = False
        return True

    def give_back(self) -> None:
        """Free the reserve's space; any program may then use it, the next record included."""
        self._path.unlink(missing_ok=True)

    def take_over(self, record: Path) -> bool:
        """Make the file of a record that is no longer needed the reserve.

        A record that was written while the reserve was lent is small.  It becomes the reserve if
        there is none, and gives way to the lent blocks when those come back: a rename frees the
        blocks of the file that it replaces, so the larger one is kept.

        Returns:
            Whether the file was renamed; False if the reserve is as large, or there is no such
            record.

        Raises:
            OSError: the file cannot be renamed.
        """
        try:
            if _size(self._path) >= record.lstat().st_size:
                return False
            record.rename(self._path)
        except FileNotFoundError:
            return False
        self._complete = False
        return True


def holds_blocks(record: Path) -> bool:
    """Say whether a record was written over a reserve, and so holds the blocks of one.

    Raises:
        OSError: the record cannot be looked at.
    """
    return record.lstat().st_size >= _LEAST_BYTES


def _size(path: Path) -> int:
    """Return a file's size; -1 if there is none."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return -1


def _grow(fd: int) -> bool:
    """Allocate the whole reserve, or as much as the disk has; return whether it is the whole.

    A sparse file would not do: its blocks are allocated only when they are written.
    """
    wanted = RESERVE_BYTES
    while wanted >= _LEAST_BYTES:
        held = os.fstat(fd).st_size
        if held >= wanted:
            break
        try:
            os.posix_fallocate(fd, 0, wanted)
        except OSError:
            # posix_fallocate(3) can extend the file and then fail: undo that, try with less.
            os.ftruncate(fd, held)
            wanted //= 2
        else:
            break
    return os.fstat(fd).st_size >= RESERVE_BYTES
