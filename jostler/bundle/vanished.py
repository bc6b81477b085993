"""Stored files whose path was gone when they were to be unlinked.

A service may have deleted such a file, or moved its directory away; a directory that comes back
brings files that are stored already.  So they are remembered on disk, too: the agent may be killed
in between.

**Invariant:** `append` returns when what it wrote survives a crash; a line that is cut off or of
another kind is passed over by `read`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REMEMBERED_MOST = 50_000
"""Files remembered at the most, the latest ones; about 100 bytes each, in memory and on disk."""


def append(file: Path, hashes: Mapping[str, bytes]) -> None:
    """Remember files.

    Args:
        file: where they are remembered.
        hashes: of the stored contents, by path below the spool.

    Raises:
        OSError: they could not be written.
    """
    lines = []
    for path, digest in hashes.items():
        with suppress(TypeError):  # a name that is no UTF-8 is forgotten with the process
            lines.append(orjson.dumps([path, digest.hex()]) + b"\n")
    with file.open("ab") as out:
        out.writelines(lines)
        out.flush()
        os.fsync(out.fileno())


def read(file: Path) -> dict[str, bytes]:
    """Return the hashes of the files that are remembered, and shorten a file that grew long.

    Raises:
        OSError: the file is there and cannot be read.
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
        file.unlink()
        append(file, found)
    return found
