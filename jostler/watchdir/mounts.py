"""File systems on which changes made elsewhere give no events.

**Invariant:** what cannot be found out counts as local.  It reads `/proc/self/mountinfo`, writes
nothing and keeps nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
