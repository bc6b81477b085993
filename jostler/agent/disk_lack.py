"""When the spool's disk lacks space, and what is due then.

**Invariant:** a lack begins below `-min-free-disk` and ends only when a quarter more than that is
free, so free space that wavers around the limit changes nothing.  Bundles that are sealed early
are sealed at most once a minute, whatever the disk does.

Pure: the free space and the clock are arguments.
"""

from __future__ import annotations

from math import inf

from msgspec import Struct
from msgspec.structs import replace

from jostler.words import size

END_SHARE = 4
"""A lack ends when a quarter (1 / 4) more than the limit is free."""
FLUSH_S = 60.0
"""The least time between two flushes."""
FLUSH_SELDOM_S = 600.0
"""The time between two flushes that would free little."""
WORTH_SHARE = 100
"""What is less than a hundredth of the limit is little."""
PATIENCE_S = 60.0
"""How long files are kept although nothing is sent and no space comes back."""


class Space(Struct, frozen=True, kw_only=True):
    """The space of a disk at one moment, in bytes.

    A file takes an inode, too.  If a smaller share of these is free than of the bytes, they are
    what counts: each as many bytes as the disk has for one.

    Attributes:
        free_bytes: what a service that is not root can still write.
        size_bytes: of the whole disk.
        limit_bytes: below this, space lacks.
        inode_bytes: what an inode counts for; 0 if bytes are the scarcer.
    """

    free_bytes: int
    size_bytes: int
    limit_bytes: int
    inode_bytes: int = 0

    @property
    def enough_bytes(self) -> int:
        """The free space that ends a lack; on a disk that is hardly larger than the limit, less."""
        above_bytes = max(0, self.size_bytes - self.limit_bytes)
        return self.limit_bytes + min(self.limit_bytes // END_SHARE, above_bytes // 2)

    @property
    def little_bytes(self) -> int:
        """The space that is too little to matter."""
        return self.limit_bytes // WORTH_SHARE

    def of_file(self, size_bytes: int) -> int:
        """The space that a file of this size takes, of that which is scarce."""
        return self.inode_bytes or size_bytes

    def shown(self, space_bytes: int) -> str:
        """Write some space for people: as bytes, or as the inodes that it counts for."""
        if self.inode_bytes:
            return f"{space_bytes // self.inode_bytes:,} inodes"
        return size(space_bytes)


class Lack(Struct, frozen=True, kw_only=True):
    """Whether space lacks now, and what was done about it; times are monotonic seconds.

    Attributes:
        lacks: whether it does.
        gives_up: whether files must be given up to make space, if the action is remove-oldest.
        best_bytes: the most free space since the lack began, or since it last grew by more than
            a little.
        best_s: when that was seen.
        flushed_s: when open bundles were last sealed for lack of space, in this lack or before.
    """

    lacks: bool = False
    gives_up: bool = False
    best_bytes: int = 0
    best_s: float = 0.0
    flushed_s: float = -inf

    def seen(self, space: Space, now_s: float, *, held_up: bool) -> Lack:
        """Return the state after a look at the disk.

        Args:
            space: what was seen.
            now_s: the time.
            held_up: whether files cannot be sent at the moment, or not as fast as they arrive.
        """
        below = space.enough_bytes if self.lacks else space.limit_bytes
        if space.free_bytes >= below:
            return Lack(flushed_s=self.flushed_s)
        best_bytes, best_s = self.best_bytes, self.best_s
        # More than a little, or else single bytes that come free would put off the giving up for
        # ever.
        if not self.lacks or space.free_bytes > best_bytes + space.little_bytes:
            best_bytes, best_s = space.free_bytes, now_s
        # Files that can be sent are sent: to give them up would lose them for nothing.
        urgent = space.free_bytes < space.limit_bytes // 2 or now_s - best_s >= PATIENCE_S
        return Lack(
            lacks=True,
            gives_up=held_up and (self.gives_up or urgent),
            best_bytes=best_bytes,
            best_s=best_s,
            flushed_s=self.flushed_s,
        )

    def flush_due(self, space: Space, open_bytes: int, now_s: float) -> bool:
        """Return whether the open bundles are to be sealed now.

        Args:
            space: what was seen last.
            open_bytes: of the rows in them, which are about the bytes of their files.
            now_s: the time.
        """
        wait_s = FLUSH_S if open_bytes > space.little_bytes else FLUSH_SELDOM_S
        return self.lacks and open_bytes > 0 and now_s - self.flushed_s >= wait_s

    def flushed(self, now_s: float) -> Lack:
        """Return the state after the open bundles were sealed."""
        return replace(self, flushed_s=now_s)
