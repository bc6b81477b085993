"""The directories below which everything happens: the same ones still?  Do they give events?

**Invariant:** a root is known by device and inode, so one that was removed, moved, replaced or
mounted over is noticed although none of that need give an event.  A file system whose type cannot
be found out counts as local.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.watchdir.walk import Wanted

Identity = tuple[int, int]
NOBODY: Identity = (-1, -1)


def distinct(roots: Sequence[str | Path], wanted: Wanted) -> tuple[str, ...]:
    """Make roots absolute and leave out those that another one covers."""
    paths = list(dict.fromkeys(os.path.abspath(root) for root in roots))  # noqa: PTH100 - links stay
    return tuple(p for p in paths if not any(_covers(other, p, wanted) for other in paths))


def _covers(other: str, path: str, wanted: Wanted) -> bool:
    return path.startswith(f"{other}/") and wanted.below(path.removeprefix(f"{other}/"))


class Change(NamedTuple):
    """What became of a root between two looks.

    Attributes:
        path: the root.
        was: a directory stood there at the last look.
        now: one stands there now, and it is another.
        again: one has stood there at any earlier look.
    """

    path: str
    was: bool
    now: bool
    again: bool


class Roots:
    """The roots and what stood there at the last look."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        self._known: dict[str, Identity] = {}
        self._seen: set[str] = set()

    def changes(self) -> list[Change]:
        """List what is no longer as it was at the last look."""
        changes = []
        for path in self.paths:
            was, now = self._known.get(path), _identity(path)
            if was != now:
                again = path in self._seen
                changes.append(Change(path, was is not None, now is not None, again))
                self._remember(path, now)
        return changes

    def _remember(self, path: str, identity: Identity | None) -> None:
        if identity is None:
            self._known.pop(path, None)
        else:
            self._known[path] = identity
            self._seen.add(path)

    def of(self, path: str) -> str:
        """Return the root that a path lies below, or is; empty if none."""
        return next((r for r in self.paths if path == r or path.startswith(f"{r}/")), "")

    def exists(self, path: str) -> bool:
        """Say whether a directory stood there at the last look."""
        return path in self._known

    def doubt(self, path: str) -> None:
        """Have the next look list this root: its successor may be given the same inode number."""
        if path in self._known:
            self._known[path] = NOBODY


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - paths are text here, and this runs every second
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


_NETWORK = re.compile(
    r"(9p|afs|beegfs|ceph|cifs|fuse|fuseblk|glusterfs|gfs2|lustre|nfs4?|ocfs2|prl_fs|smb3|smbfs"
    r"|vboxsf|virtiofs|vmhgfs|fuse\..+)"
)
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def network_mounts(roots: Sequence[str]) -> dict[str, str]:
    """Map each root that lies on, or holds, a network file system to that system's type."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return {}  # not Linux
    mounts = parse(mountinfo)
    found = {root: remote_type(mounts, os.path.realpath(root)) for root in roots}
    return {root: kind for root, kind in found.items() if kind}


def parse(mountinfo: bytes) -> dict[str, str]:
    """Map each mount point to the type of what is mounted there last (proc(5))."""
    mounts = {}
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(b" - ")
        fields = before.split(b" ")
        if dash and len(fields) > 4:  # noqa: PLR2004 - the fifth field is the mount point
            point = _ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), fields[4])
            mounts[os.fsdecode(point)] = os.fsdecode(after.split(b" ", 1)[0])
    return mounts


def remote_type(mounts: dict[str, str], path: str) -> str:
    """Name the network file system that `path` lies on or that lies below it; else empty."""
    on = max((point for point in mounts if _within(path, point)), key=len, default="")
    below = sorted(point for point in mounts if _within(point, path))
    kinds = (mounts[point] for point in (on, *below) if point)
    return next((kind for kind in kinds if _NETWORK.fullmatch(kind)), "")


def _within(path: str, point: str) -> bool:
    return path == point or path.startswith(f"{point.rstrip('/')}/")
