"""The file that remembers vanished files: stored files that were gone before the clean-up.

A service may have deleted such a file, or moved its directory away.  If the directory comes back,
its files must not be stored a second time.  They are remembered on disk because the agent may be
restarted in between.

**Invariant:** when `append` returns, its lines survive a crash.  `read` ignores incomplete and
malformed lines.

Behind the last line lie zero bytes: space that was allocated while the disk had some, so that a
full disk does not make the agent forget (see `reserve`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

from jostler.bundle.state_dir import sync

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REMEMBERED_MOST = 50_000
"""How many files are remembered, the latest ones; each takes about 100 bytes of memory and disk."""


ROOM_BYTES = 1 << 20
"""How much space is allocated behind the last line: for some 10,000 files."""
_PIECE_BYTES = 1 << 16
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def append(file: Path, hashes: Mapping[str, bytes]) -> None:
    """Append vanished files, durably, and allocate space for later ones.

    Args:
        file: the file that remembers them.
        hashes: the hash of each file's stored content, by path below the spool.

    Raises:
        OSError: the lines could not be written.
    """
    lines = []
    for path, digest in hashes.items():
        with suppress(TypeError):  # a name that is not UTF-8 is remembered only in memory
            lines.append(orjson.dumps([path, digest.hex()]) + b"\n")
    fd = os.open(file, _FLAGS, 0o600)
    try:
        end = _end(fd)
        # A line feed first: a line that a crash cut off must not spoil the next one.
        content = b"\n" + b"".join(lines)
        written = 0
        while written < len(content):
            written += os.pwrite(fd, content[written:], end + written)
        os.fsync(fd)
        _allocate(fd)
    finally:
        os.close(fd)
    sync(file.parent)  # the file may be new, and its name must survive, too


def take_room(file: Path) -> bool:
    """Allocate space for the next lines; return whether there is enough now."""
    try:
        fd = os.open(file, _FLAGS, 0o600)
    except OSError:
        return False
    try:
        return _allocate(fd)
    finally:
        os.close(fd)


def read(file: Path) -> dict[str, bytes]:
    """Return the hashes of the remembered files by path; shorten the file if it grew too long.

    Raises:
        OSError: the file exists and cannot be read.
    """
    try:
        lines = file.read_bytes().rstrip(b"\0").splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines[-REMEMBERED_MOST:]:
        with suppress(ValueError, TypeError):
            path, digest = orjson.loads(line)
            found[path] = bytes.fromhex(digest)
    if len(lines) > REMEMBERED_MOST:
        short = file.with_name(f"{file.name}.tmp")
        with suppress(OSError):  # no space: it stays as long as it is
            short.unlink(missing_ok=True)
            append(short, found)
            short.rename(file)
    return found


def _end(fd: int) -> int:
    """Return where the last byte that is not zero ends."""
    at = os.fstat(fd).st_size
    while at > 0:
        begin = max(0, at - _PIECE_BYTES)
        if piece := os.pread(fd, at - begin, begin).rstrip(b"\0"):
            return begin + len(piece)
        at = begin
    return 0


def _allocate(fd: int) -> bool:
    wanted = _end(fd) + ROOM_BYTES
    try:
        # posix_fallocate(3) may extend the file and fail then: more zero bytes do no harm.
        if os.fstat(fd).st_blocks * 512 < wanted:
            os.posix_fallocate(fd, 0, wanted)
    except OSError:
        return False
    return True
