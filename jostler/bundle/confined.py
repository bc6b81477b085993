"""Open the spool's files so that no link or path made by a service leads out of the spool.

**Invariant:** below the root no symbolic link is followed at any component of a path, and no path
goes up.  Where the kernel has openat2(2), it walks the path itself and refuses links; elsewhere
each directory on the way is opened in turn without following a link.

Above the root links are the operator's own and are followed.  What they lead to is looked up again
every second, so that a path that was remounted or relinked is found.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from functools import cache
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    Opener = Callable[[str, str, int], int]

ROOT_VALID_S = 1.0

# Linux: one number on all architectures, see include/uapi/asm-generic/unistd.h.
_OPENAT2 = 437
_AT_FDCWD = -100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
# A directory is opened only to name files in it: that needs no permission to list it.
_NO_FILE = frozenset({"", ".", ".."})
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotAFileError(OSError):
    """The path is a directory, a pipe or the like, or a symbolic link stands in it."""


class Confined:
    """The files below one directory; used by several threads at once.

    Args:
        root: an absolute path, which need not exist yet.
        valid_s: seconds for which the links above the root are taken to be as they were.
        opener: opens a path below a root that has no link in its own path.
    """

    def __init__(
        self, root: str, *, valid_s: float = ROOT_VALID_S, opener: Opener | None = None
    ) -> None:
        self.root = root
        self._real = os.path.realpath(root)
        self._looked_s = time.monotonic()
        self._valid_s = valid_s
        self._open = opener or best_opener()

    def open(self, path: str, flags: int) -> int:
        """Open a file for reading and return its descriptor.

        Args:
            path: below the root.
            flags: of open(2).

        Raises:
            NotAFileError: the path has a symbolic link in it, or goes up.
            OSError: the file is gone or cannot be opened.
        """
        if _goes_up(path):
            raise NotAFileError(errno.ELOOP, "the path leads out of the spool", path)
        try:
            return self._open(self._root(), path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise NotAFileError(exc.errno, "a symbolic link stands in the path", path) from exc
            raise

    def directories(self) -> Directories:
        """Return what holds a directory open while several of its files are dealt with."""
        return Directories(self)

    def status(self, path: str) -> os.stat_result:
        """Return what lstat(2) says of a file.

        Raises:
            NotAFileError: as `open`.
            OSError: it is gone.
        """
        with self.directories() as directories:
            directory, name = directories.of(path)
            return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def _root(self) -> str:
        now_s = time.monotonic()
        if now_s - self._looked_s >= self._valid_s:
            # Threads may do this at the same time: both then store the same answer, and reads of
            # one attribute are atomic.
            self._real = os.path.realpath(self.root)
            self._looked_s = now_s
        return self._real


class Directories:
    """Holds the directory that was used last, for files come in the order of directories.

    A directory that is renamed away keeps its descriptor.  So this lives only as long as one slice
    of work, and what happens to the directory in that time is taken for having happened after it.
    """

    def __init__(self, confined: Confined) -> None:
        self._confined = confined
        self._path: str | None = None
        self._descriptor = -1

    def of(self, path: str) -> tuple[int, str]:
        """Return the descriptor of a file's directory, and the file's name in it.

        Raises:
            NotAFileError: a symbolic link stands in the path, or it goes up.
            OSError: the directory is gone or cannot be opened.
        """
        directory, _, name = path.rpartition("/")
        if name in _NO_FILE:
            raise NotAFileError(errno.EISDIR, "the path names no file", path)
        if directory != self._path:
            self.close()
            if path.startswith("/"):
                raise NotAFileError(errno.ELOOP, "the path leads out of the spool", path)
            self._descriptor = self._confined.open(directory or ".", _DIRECTORY)
            self._path = directory
        return self._descriptor, name

    def open(self, path: str, flags: int) -> int:
        """Open a file for reading and return its descriptor.

        Args:
            path: below the root.
            flags: of open(2), O_NOFOLLOW among them.

        Raises:
            NotAFileError: as `of`, or the file itself is a symbolic link.
            OSError: the file is gone or cannot be opened.
        """
        directory, name = self.of(path)
        try:
            return os.open(name, flags, dir_fd=directory)
        except OSError as exc:
            if exc.errno == errno.ELOOP:
                raise NotAFileError(exc.errno, "a symbolic link stands in the path", path) from exc
            raise

    def close(self) -> None:
        """Let go of the directory."""
        if self._path is not None:
            os.close(self._descriptor)
            self._path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _goes_up(path: str) -> bool:
    """Say whether a path is absolute or has `..` in it."""
    return path.startswith("/") or (".." in path and ".." in path.split("/"))


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@cache
def best_opener() -> Opener:
    """Return the fastest way to open a file that this system offers."""
    if sys.platform != "linux":
        return open_by_components
    try:
        os.close(open_by_kernel("/", ".", _DIRECTORY))
    except OSError:  # ENOSYS before Linux 5.6; EPERM where a sandbox does not know the call
        return open_by_components
    return open_by_kernel


_HOW_BYTES = ctypes.sizeof(_How)
_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.POINTER(_How),
    ctypes.c_size_t,
)
_syscall.restype = ctypes.c_long


def open_by_kernel(root: str, path: str, flags: int) -> int:
    """Open a path that the kernel walks in one call, without following any link in it.

    Raises:
        OSError: ELOOP for a link; else as open(2).
    """
    full = f"{root}/{path}".encode("utf-8", "surrogateescape")
    while True:
        # glibc has no function for openat2(2); syscall(2) returns -1 and sets errno.
        descriptor: int = _syscall(_OPENAT2, _AT_FDCWD, full, _how(flags), _HOW_BYTES)
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number), path)


@cache
def _how(flags: int) -> ctypes._Pointer[_How]:
    """Return how to open: without O_NOFOLLOW, which would turn ELOOP for a link into ENOTDIR."""
    resolve = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    return ctypes.pointer(_How(flags & ~os.O_NOFOLLOW, 0, resolve))


def open_by_components(root: str, path: str, flags: int) -> int:
    """Open a path by opening each directory on the way in turn.

    Raises:
        OSError: ELOOP for a link; else as open(2).
    """
    *above, name = path.split("/")
    directory = os.open(root, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for part in above:
            below = _step(directory, part, path)
            os.close(directory)
            directory = below
        if flags & os.O_DIRECTORY:
            return _step(directory, name, path)
        return os.open(name, flags, dir_fd=directory)
    finally:
        os.close(directory)


def _step(directory: int, name: str, path: str) -> int:
    """Open a directory in a directory; the kernel calls a link there ENOTDIR, as it does a file."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except NotADirectoryError as exc:
        try:
            os.readlink(name, dir_fd=directory)
        except OSError:
            raise exc from None
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path) from exc
