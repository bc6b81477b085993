"""Disk space held back for the journal: a full disk can only drain if records can be written.

**Invariant:** the blocks of the reserve stay the journal's.  On a full disk a record is written
over them, in place, and when the record is done its blocks are the reserve again.  Were they given
back to the disk instead, whoever fills it would have them first.

The reserve holds one record at a time.  File systems that never write in place (btrfs, zfs) need
new blocks all the same; there it helps only as far as quotas go.
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
_LEAST_BYTES = 64 * 1024


class Reserve:
    """The reserve of one directory; the caller sees that one thread at a time uses it.

    Args:
        path: its file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._complete = False

    def take(self) -> None:
        """Hold as much as there is, up to the whole; what is held already stays so."""
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
            if empty:
                self._path.unlink()

    def write(self, target: Path, lines: Iterable[bytes]) -> bool:
        """Write a record over the reserve and give it its name; the caller syncs the directory.

        Returns:
            False when there is no reserve or the record is longer; then nothing is changed.

        Raises:
            OSError: it cannot be written.
        """
        content = b"".join((*lines, END))
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            if len(content) > os.fstat(fd).st_size:
                return False
            written = 0
            while written < len(content):
                written += os.pwrite(fd, content[written:], written)
            os.fsync(fd)
        finally:
            os.close(fd)
        self._path.rename(target)
        return True

    def give_back(self) -> None:
        """Leave the space to whoever comes first, in the hope that it is the next record."""
        self._path.unlink(missing_ok=True)

    def take_over(self, record: Path) -> bool:
        """Make the file of a record that is done the reserve; say whether it was needed and there.

        Raises:
            OSError: it cannot be renamed.
        """
        if self._path.exists():
            return False
        try:
            record.rename(self._path)
        except FileNotFoundError:
            return False
        return True


def _grow(fd: int) -> bool:
    """Allocate the whole, or else as much of it as can be had; say whether it is the whole."""
    wanted = RESERVE_BYTES
    while wanted >= _LEAST_BYTES:
        held = os.fstat(fd).st_size
        if held >= wanted:
            break
        try:
            os.posix_fallocate(fd, 0, wanted)
        except OSError:
            os.ftruncate(fd, held)  # what was allocated before the disk was full
            wanted //= 2
        else:
            break
    return os.fstat(fd).st_size >= RESERVE_BYTES
