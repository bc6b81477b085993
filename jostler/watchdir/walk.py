"""Reading a tree of directories, lazily, and which names in it matter.

**Invariant:** each directory is entered (watched) *before* it is read, so a file in it is met here
or reported by the watch, never neither.  One directory is open at a time, no file is held in
memory, symbolic links are not followed, and nothing is asked of a file that `readdir` tells.  A
name that starts with a dot never matters; that also hides what the agent itself keeps below a root.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BREATH_ENTRIES = 1_000
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What the system says of a directory that was removed, or replaced by a file or a link."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Wanted:
    """The names to report and the directories to enter.

    Attributes:
        extensions: what a file's name may end with, such as `(".json",)`.
    """

    extensions: tuple[str, ...]

    def file(self, name: str) -> bool:
        """Say whether a file of this name is reported."""
        return name.endswith(self.extensions) and not name.startswith(".")

    def directory(self, name: str) -> bool:
        """Say whether a directory of this name is entered."""
        return not name.startswith(".")

    def below(self, relative: str) -> bool:
        """Say whether no part of a path below a root is hidden."""
        return not any(part.startswith(".") for part in relative.split("/"))


def walk(
    top: str,
    wanted: Wanted,
    *,
    enter: Callable[[str], bool],
    failed: Callable[[str, OSError], None],
    follow_top: bool = False,
) -> Generator[str | None]:
    """Yield the wanted files below `top`, directories by name, so older days come first.

    Args:
        top: an absolute path; it may be a symbolic link only if `follow_top`.
        wanted: the names to yield and to enter.
        enter: called with each directory before it is read; False leaves it out.
        failed: called with each directory that cannot be read, except one that is gone.
        follow_top: whether `top` may be a symbolic link.

    Yields:
        A file's path; or None now and then, so that a caller is never held up by a directory
        full of files that nobody wants.
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
                if exc.errno not in GONE:  # else the parent's watch tells what became of it
                    failed(path, exc)
        nofollow = os.O_NOFOLLOW
        below.sort(reverse=True)
        stack.extend(f"{path}/{name}" for name in below)


def _files(path: str, wanted: Wanted, below: list[str], flags: int) -> Generator[str | None]:
    """Yield the files of one directory and gather the names of the directories in it."""
    directory = os.open(path, flags)
    try:
        with os.scandir(directory) as entries:
            for nth, entry in enumerate(entries, 1):
                name = entry.name
                if wanted.file(name) and entry.is_file(follow_symlinks=False):
                    yield f"{path}/{name}"
                elif entry.is_dir(follow_symlinks=False) and wanted.directory(name):
                    below.append(name)
                if nth % BREATH_ENTRIES == 0:
                    yield None
    finally:
        os.close(directory)
