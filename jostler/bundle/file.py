"""A file of the spool: read it once, know later whether it still is what was read.

**Invariant:** no link is followed, nothing but a regular file is opened for reading, and no open
blocks on a pipe.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import NamedTuple

from jostler.bundle.entry import Entry, FileState

HASH_BYTES = 16
_CHUNK = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NotAFileError(OSError):
    """The path is a link, a directory, a pipe or the like."""


class Read(NamedTuple):
    """What was read of a file.

    Attributes:
        content: its bytes, all of them unless the file is longer than was asked for.
        state: the file's when it was opened.
    """

    content: bytes
    state: FileState

    @property
    def whole(self) -> bool:
        """Whether the content is the file's every byte and was not cut or growing."""
        return len(self.content) == self.state.size


def read_file(path: str, most: int) -> Read:
    """Read a file, `most` bytes of it at the most.

    Raises:
        NotAFileError: it is no regular file.
        OSError: it cannot be opened or read.
    """
    fd = os.open(path, _FLAGS)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise NotAFileError(f"{path} is not a regular file")
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
    return Read(content, FileState.of(status))


def content_hash(content: bytes) -> bytes:
    """Return the hash of a file's bytes that index rows carry."""
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def hash_file(path: str) -> bytes:
    """Return the hash of a file of any size.

    Raises:
        OSError: it cannot be opened or read, or is a link.
    """
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    with os.fdopen(os.open(path, _FLAGS), "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.digest()


def still_stored(path: str, entry: Entry) -> bool:
    """Say whether a file's bytes are the ones that its entry, which must have a hash, stands for.

    Raises:
        OSError: the file is gone or cannot be read.
    """
    return entry.unchanged(os.lstat(path)) or hash_file(path) == entry.hash
