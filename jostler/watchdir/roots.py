"""The watched roots: detect that one was replaced, and whether its file system gives events.

**Invariant:** a root is identified by device and inode.  So a root that was removed, moved,
replaced or mounted over is noticed even without an event.  A file system of unknown type counts as
local.
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
    """Make roots absolute, and leave out those that lie below another one."""
    paths = list(dict.fromkeys(os.path.abspath(root) for root in roots))  # noqa: PTH100 - links stay
    return tuple(p for p in paths if not any(_covers(other, p, wanted) for other in paths))


def _covers(other: str, path: str, wanted: Wanted) -> bool:
    return path.startswith(f"{other}/") and wanted.below(path.removeprefix(f"{other}/"))


class Change(NamedTuple):
    """The change of a root between two checks.

    Attributes:
        path: the root.
        was: whether a directory existed there at the last check.
        now: whether another directory exists there now.
        again: whether a directory existed there at any earlier check.
    """

    path: str
    was: bool
    now: bool
    again: bool


class Roots:
    """The roots and the identities of their directories at the last check."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        self._known: dict[str, Identity] = {}
        self._seen: set[str] = set()

    def changes(self) -> list[Change]:
        """List the roots that changed since the last check."""
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
        """Return the root that a path is or lies below; empty if there is none."""
        return next((r for r in self.paths if path == r or path.startswith(f"{r}/")), "")

    def exists(self, path: str) -> bool:
        """Return whether a directory existed there at the last check."""
        return path in self._known

    def doubt(self, path: str) -> None:
        """Report this root as changed at the next check, even if its inode number is the same.

        A file system may give the number of a removed directory to the next one.
        """
        if path in self._known:
            self._known[path] = NOBODY


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - paths are text here, and this runs every second
    except OSError:
        return None
    # The inode alone would not do: numbers repeat between file systems, and a mount hides a
    # directory.
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


_NETWORK = re.compile(
    r"(9p|afs|beegfs|ceph|cifs|fuse|fuseblk|glusterfs|gfs2|lustre|nfs4?|ocfs2|prl_fs|smb3|smbfs"
    r"|vboxsf|virtiofs|vmhgfs|fuse\..+)"
)
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def network_devices() -> frozenset[int]:
    """Return the device numbers (st_dev) of the network file systems that are mounted."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return frozenset()  # not Linux
    return devices_of(mountinfo)


def devices_of(mountinfo: bytes) -> frozenset[int]:
    """Return the device numbers of the network file systems in a mountinfo file (proc(5))."""
    devices = set()
    for line in mountinfo.splitlines():
        before, _, after = line.partition(b" - ")
        if _NETWORK.fullmatch(os.fsdecode(after.split(b" ", 1)[0])):
            major, _, minor = before.split(b" ")[2].partition(b":")
            devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)


def network_mounts(roots: Sequence[str]) -> dict[str, str]:
    """Map each root on a network file system, or with one below it, to that system's type."""
    try:
        mountinfo = Path("/proc/self/mountinfo").read_bytes()
    except OSError:
        return {}  # not Linux
    mounts = parse(mountinfo)
    found = {root: remote_type(mounts, os.path.realpath(root)) for root in roots}
    return {root: kind for root, kind in found.items() if kind}


def parse(mountinfo: bytes) -> dict[str, str]:
    """Map each mount point to the type of the file system mounted there last (proc(5))."""
    mounts = {}
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(b" - ")
        fields = before.split(b" ")
        if dash and len(fields) > 4:  # noqa: PLR2004 - the fifth field is the mount point
            point = _ESCAPED.sub(lambda octal: bytes([int(octal[1], 8)]), fields[4])
            mounts[os.fsdecode(point)] = os.fsdecode(after.split(b" ", 1)[0])
    return mounts


def remote_type(mounts: dict[str, str], path: str) -> str:
    """Return the type of the network file system that `path` is on, or that is below it."""
    on = max((point for point in mounts if _within(path, point)), key=len, default="")
    below = sorted(point for point in mounts if _within(point, path))
    kinds = (mounts[point] for point in (on, *below) if point)
    return next((kind for kind in kinds if _NETWORK.fullmatch(kind)), "")


def _within(path: str, point: str) -> bool:
    return path == point or path.startswith(f"{point.rstrip('/')}/")
