"""Find the oldest files of a spool: of the oldest day, those that have waited longest.

**Invariant:** it reads directories until one day gives files, and no more; it opens no file.
"""

from __future__ import annotations

import heapq
import os
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system's own (stat(2))."""


class Found(Struct, frozen=True, order=True):
    """A file on the disk.

    Attributes:
        since_s: since when it waits, Unix time: its last change, or when it was moved here.
        path: below the spool.
        size_bytes: that the disk gets back when it goes.
    """

    since_s: float
    path: str
    size_bytes: int


def oldest(
    spool: str, datatypes: Sequence[str], may_go: Callable[[str, str], bool], most: int
) -> list[Found]:
    """Return the oldest files of the oldest day that has any which may go, the oldest first.

    Args:
        spool: the experiment's directory.
        datatypes: the directories below it.
        may_go: called with a path below the spool and its last part; returns whether the file
            may be given up.
        most: how many to return at the most.
    """
    # By the path below the datatype, which begins with the day: all datatypes' files of a day are
    # looked at together, and a day of today is not read while there are older ones.
    waiting: list[tuple[str, str]] = [("", datatype) for datatype in datatypes]
    heapq.heapify(waiting)
    while waiting:
        day = waiting[0][0]
        found: list[Iterator[Found]] = []
        while waiting and waiting[0][0] == day:
            _, datatype = heapq.heappop(waiting)
            files, below = _look(spool, datatype, day, may_go)
            found.append(iter(files))
            for name in below:
                heapq.heappush(waiting, (f"{day}/{name}" if day else name, datatype))
        if oldest_files := heapq.nsmallest(most, chain.from_iterable(found)):
            return oldest_files
    return []


def _look(
    spool: str, datatype: str, day: str, may_go: Callable[[str, str], bool]
) -> tuple[list[Found], list[str]]:
    """Return the files of one directory that may go, and the names of its subdirectories."""
    files: list[Found] = []
    below: list[str] = []
    directory = f"{datatype}/{day}" if day else datatype
    try:
        with os.scandir(f"{spool}/{directory}") as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    path = f"{directory}/{entry.name}"
                    if may_go(path, entry.name):
                        status = entry.stat(follow_symlinks=False)
                        since_s = max(status.st_mtime, status.st_ctime)
                        # A file of 300 bytes takes a block, mostly of 4 KiB.
                        size_bytes = status.st_blocks * BLOCK_BYTES or status.st_size
                        files.append(Found(since_s, path, size_bytes))
    except OSError:
        pass  # the directory, or a file in it, is gone or cannot be read
    return files, below
