"""Two system calls that Python does not have: rename without replacing, and sync a file system.

**Invariant:** where the kernel or the file system lacks one of them, something slower does the
same, and no file is ever replaced.

Linux; elsewhere the slower ways are used.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_RENAME_NOREPLACE = 1
# The file system, the kernel or a seccomp filter does not know renameat2 or this flag.
_UNKNOWN = frozenset({errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP})
# Since Linux 5.8 syncfs(2) reports a failed write; before, it returned success.
_SYNCFS_TELLS = (5, 8)


def rename_new(name: str, new: str, *, source: int, target: int) -> None:
    """Rename a file from one open directory into another, unless the new name is taken.

    Raises:
        FileExistsError: the new name is taken.
        OSError: the file cannot be renamed.
    """
    renameat2 = _function("renameat2")
    if renameat2 is not None:
        if not renameat2(source, os.fsencode(name), target, os.fsencode(new), _RENAME_NOREPLACE):
            return
        code = ctypes.get_errno()
        if code not in _UNKNOWN:
            raise OSError(code, os.strerror(code), name, None, new)
    # link(2) never replaces, either.  The agent then gets no event of a close or a rename, and
    # takes the file about a second later.
    os.link(name, new, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    os.unlink(name, dir_fd=source)


def can_sync_all() -> bool:
    """Return whether `sync_all` can be trusted here."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    new = found is not None and (int(found[1]), int(found[2])) >= _SYNCFS_TELLS
    return new and _function("syncfs") is not None


def sync_all(fd: int) -> None:
    """Make durable everything that was written to the file system of an open file.

    Raises:
        OSError: something was not written.
    """
    syncfs = _function("syncfs")
    assert syncfs
    if syncfs(fd):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@cache
def _function(name: str) -> Callable[..., Any] | None:
    found: Callable[..., Any] | None = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    return found
