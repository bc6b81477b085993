"""What an agent remembers of a file between reading and unlinking it.

**Invariant:** an entry is never changed; what cannot be told from the file's own state on disk is
not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os

# A time stamp of a file is one of the kernel's ticks, 10 ms at the longest (CONFIG_HZ=100): a
# second change within the tick leaves it as it is.
RACY_NS = 20_000_000


class FileState(NamedTuple):
    """What tells one state of a file from another without reading it."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Take the state from what stat(2) returned."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class Entry(NamedTuple):
    """One file of a bundle.

    Attributes:
        path: below the experiment's spool, `ndt7/2022/09/29/<name>.json`.
        state: the file's, when it was read.
        added_us: when it was read, microseconds since 1970, UTC.
        hash: BLAKE2b of the file's bytes; empty when they could not be read whole, and then the
            file is never unlinked.
    """

    path: str
    state: FileState
    added_us: int
    hash: bytes

    @property
    def filename(self) -> str:
        """The path below the datatype's directory, as rows have it."""
        return self.path.partition("/")[2]

    def unchanged(self, status: os.stat_result) -> bool:
        """Say whether the file certainly still is what was read.

        False means "read it again to know": a state that is equal proves nothing when the file
        had been touched in the same tick of the kernel's clock in which it was read.
        """
        touched_ns = max(self.state.mtime_ns, self.state.ctime_ns)
        racy = self.added_us * 1000 - touched_ns < RACY_NS
        return not racy and FileState.of(status) == self.state
