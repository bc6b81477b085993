"""The file that remembers vanished files: stored files that were gone before the clean-up.

A service may have deleted such a file, or moved its directory away.  If the directory comes back,
its files must not be stored a second time.  They are remembered on disk because the agent may be
restarted in between.

**Invariant:** when `append` returns, its lines survive a crash.  `read` ignores incomplete and
malformed lines.
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


def append(file: Path, hashes: Mapping[str, bytes]) -> None:
    """Append vanished files, durably.

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
    with file.open("ab") as out:
        out.writelines(lines)
        out.flush()
        os.fsync(out.fileno())
    sync(file.parent)  # the file may be new, and its name must survive, too


def read(file: Path) -> dict[str, bytes]:
    """Return the hashes of the remembered files by path; shorten the file if it grew too long.

    Raises:
        OSError: the file exists and cannot be read, or cannot be shortened.
    """
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines[-REMEMBERED_MOST:]:
        with suppress(ValueError, TypeError):
            path, digest = orjson.loads(line)
            found[path] = bytes.fromhex(digest)
    if len(lines) > REMEMBERED_MOST:
        # A crash between the two forgets all.  Files that come back are then stored twice, and the
        # loader drops the second row.
        file.unlink()
        append(file, found)
    return found
