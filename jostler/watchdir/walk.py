"""Walk a directory tree lazily, and decide which names are wanted.

**Invariant:** each directory is watched (`enter`) *before* it is read, so every file in it is found
here or reported by an event.  One directory is open at a time, no list of files is kept, symbolic
links are not followed, and files are not stat(2)ed, as `readdir` gives their type.  Names that
begin with a dot are skipped; this also hides the agent's own files below a root.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BREATH_ENTRIES = 1_000
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""The errors for a directory that was removed, or replaced by a file or a link."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Wanted(Struct, frozen=True):
    """Which files to report and which directories to enter.

    Attributes:
        extensions: the wanted ends of file names, such as `(".json",)`.
    """

    extensions: tuple[str, ...]

    def file(self, name: str) -> bool:
        """Return whether a file of this name is reported."""
        return name.endswith(self.extensions) and not name.startswith(".")

    def directory(self, name: str) -> bool:
        """Return whether a directory of this name is entered."""
        return not name.startswith(".")

    def below(self, relative: str) -> bool:
        """Return whether a path below a root has no hidden part."""
        return not any(part.startswith(".") for part in relative.split("/"))


def walk(
    top: str,
    wanted: Wanted,
    *,
    enter: Callable[[str], bool],
    failed: Callable[[str, OSError], None],
    follow_top: bool = False,
) -> Generator[str | None]:
    """Yield the wanted files below `top`; directories in order of names, so older days come first.

    Args:
        top: an absolute path; it may be a symbolic link only if `follow_top`.
        wanted: the names to yield and to enter.
        enter: called with each directory before it is read; if it returns False, skip it.
        failed: called with each directory that cannot be read, unless it is gone.
        follow_top: whether `top` may be a symbolic link.

    Yields:
        A file's path; or None from time to time, so that a directory full of unwanted files does
        not keep the caller waiting.
    """
    stack = [top]
    nofollow = 0 if follow_top else os.O_NOFOLLOW
    while stack:
        path = stack.pop()
        below: list[str] = []
        if enter(path):
            try:
                yield from _files(path, wanted, below, _FLAGS | nofollow)
            except OSError as exc:
                if exc.errno not in GONE:  # if it is gone, its parent's watch reports that
                    failed(path, exc)
        nofollow = os.O_NOFOLLOW  # below `top`, a directory may be replaced by a link at any time
        below.sort(reverse=True)  # the stack is taken from its end
        stack.extend(f"{path}/{name}" for name in below)


def _files(path: str, wanted: Wanted, below: list[str], flags: int) -> Generator[str | None]:
    """Yield the wanted files of one directory, and add its subdirectories to `below`."""
    directory = os.open(path, flags)
    try:
        with os.scandir(directory) as entries:
            for nth, entry in enumerate(entries, 1):
                name = entry.name
                # d_type of readdir(3) answers both questions without a stat(2), on all usual file
                # systems.
                if wanted.file(name) and entry.is_file(follow_symlinks=False):
                    yield f"{path}/{name}"
                elif entry.is_dir(follow_symlinks=False) and wanted.directory(name):
                    below.append(name)
                if nth % BREATH_ENTRIES == 0:
                    yield None
    finally:
        os.close(directory)
