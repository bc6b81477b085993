"""A file of the spool: read it once, know later whether it still is what was read, unlink it.

**Invariant:** no link is followed, nothing but a regular file is opened for reading, and no open
blocks on a pipe.  A file is unlinked only in the call that has just found it to be the one that
was read.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from typing import TYPE_CHECKING, NamedTuple

from jostler.bundle.confined import NotAFileError
from jostler.bundle.entry import Entry, FileState, is_racy
from jostler.bundle.lease import has_writer
from jostler.format.row import BOM, BREAKS, HASH_BYTES

if TYPE_CHECKING:
    from jostler.bundle.confined import Confined, Directories
    from jostler.bundle.entry import EntryRow

_CHUNK = 1 << 20
READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class Read(NamedTuple):
    """What was read of a file.

    Attributes:
        content: its bytes, all of them unless the file is longer than was asked for.
        state: the file's when it was opened.
        at_us: microseconds since 1970 just before it was opened.  A change after that instant
            shows in the file's state, unless it falls into the same tick of the kernel's clock.
        writer: whether somebody had it open for writing; None: not asked, or the system cannot say.
    """

    content: bytes
    state: FileState
    at_us: int
    writer: bool | None = None

    @property
    def whole(self) -> bool:
        """Whether the content is the file's every byte and was not cut or growing."""
        return len(self.content) == self.state.size


def read_file(
    spool: Confined | Directories, path: str, most: int, *, ask_writer: bool = False
) -> Read:
    """Read a file of the spool, `most` bytes of it at the most.

    With `ask_writer` a file that somebody has open for writing is not read: `content` is empty.

    Raises:
        NotAFileError: it is no regular file, or a link stands in its path.
        OSError: it cannot be opened or read.
    """
    at_us = time.time_ns() // 1000
    fd = spool.open(path, READ_FLAGS)
    try:
        status = _regular(fd, path)
        writer = has_writer(fd) if ask_writer else None
        if writer:
            return Read(b"", FileState.of(status), at_us, writer)
        # One byte more than the size shows a file that grows while it is read.
        wanted = min(status.st_size + 1, most)
        content = os.read(fd, wanted)
        while len(content) < min(status.st_size, most):  # a read may return less than asked
            more = os.read(fd, wanted - len(content))
            if not more:
                break
            content += more
    finally:
        os.close(fd)
    return Read(content, FileState.of(status), at_us, writer)


def hash_file(spool: Confined, path: str) -> bytes:
    """Return the hash that a file of any size has in an index if it is archived as data.

    Raises:
        NotAFileError: as `read_file`.
        OSError: it cannot be opened or read.
    """
    fd = spool.open(path, READ_FLAGS)
    try:
        return _hash(fd, on_one_line=True)
    finally:
        os.close(fd)


def unlink_unchanged(directories: Directories, row: EntryRow) -> bool:
    """Unlink a file whose state alone proves that it is the one that was read.

    Returns:
        Whether it was unlinked; False if `unlink_stored` has to compare the bytes.

    Raises:
        NotAFileError: a link stands in its path.
        OSError: the file is gone, or cannot be unlinked.
    """
    path, inode, size, mtime_ns, ctime_ns, added_us, _ = row
    directory, name = directories.of(path)
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if (
        status.st_ctime_ns != ctime_ns
        or status.st_mtime_ns != mtime_ns
        or status.st_ino != inode
        or status.st_size != size
        or is_racy(max(mtime_ns, ctime_ns), added_us)
    ):
        return False
    os.unlink(name, dir_fd=directory)
    return True


def unlink_in_state(directories: Directories, path: str, state: FileState) -> bool:
    """Unlink a file that still is in this state; return whether it was unlinked.

    The state must have been old when it was seen: a change within a tick of the kernel's clock
    does not show in it.

    Raises:
        NotAFileError: a link stands in its path.
        OSError: the file is gone, or cannot be unlinked.
    """
    directory, name = directories.of(path)
    if FileState.of(os.stat(name, dir_fd=directory, follow_symlinks=False)) != state:
        return False
    os.unlink(name, dir_fd=directory)
    return True


def unlink_stored(directories: Directories, entry: Entry) -> bool:
    """Unlink a file if its bytes are the ones that its entry, which must have a hash, stands for.

    A rename over the path in the few microseconds between the last look and the unlink takes the
    new file away unread.  No system call compares and unlinks in one; so the look comes last.

    Returns:
        Whether it was unlinked; False: it is another file now, or has other bytes.

    Raises:
        NotAFileError: something else than a regular file is there now.
        OSError: the file is gone, cannot be read or cannot be unlinked.
    """
    directory, name = directories.of(entry.path)
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not entry.unchanged(status):
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(f"{entry.path} is not a regular file")
        if not _is_still(directory, name, entry):
            return False
    os.unlink(name, dir_fd=directory)
    return True


def _is_still(directory: int, name: str, entry: Entry) -> bool:
    """Compare a file's bytes; a file that was put in its place meanwhile is another one."""
    fd = os.open(name, READ_FLAGS, dir_fd=directory)
    try:
        state = FileState.of(_regular(fd, entry.path))
        equal = state.size == entry.state.size and _has_hash(fd, entry.hash)
    finally:
        os.close(fd)
    return equal and FileState.of(os.stat(name, dir_fd=directory, follow_symlinks=False)) == state


def _regular(fd: int, path: str) -> os.stat_result:
    """Return the status of an open file.

    Raises:
        NotAFileError: it is no regular file.
    """
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise NotAFileError(f"{path} is not a regular file")
    return status


def _has_hash(fd: int, digest: bytes) -> bool:
    """Do for an open file what `jostler.format.row.has_hash` does for its bytes."""
    if _hash(fd, on_one_line=True) == digest:
        return True
    os.lseek(fd, 0, os.SEEK_SET)
    return _hash(fd, on_one_line=False) == digest


def _hash(fd: int, *, on_one_line: bool) -> bytes:
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    bom = BOM if on_one_line else b""
    while chunk := os.read(fd, _CHUNK):
        chunk = chunk.removeprefix(bom)
        digest.update(chunk.translate(None, BREAKS) if on_one_line else chunk)
        bom = b""
    return digest.digest()
