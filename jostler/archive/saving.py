"""Save what was read as files of a directory.

**Invariant:** a file under its final name is complete: it is written under a temporary name and
then linked.  A file that is already there is never overwritten, unless it is empty.  No path leaves
the directory, whatever a stored Filename is.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING
from uuid import uuid4

from jostler.archive.reading import digest
from jostler.errors import JostlerError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_NAME_BYTES = 255


class SaveError(JostlerError):
    """A file cannot be saved, or another file has its name."""


class Saved(Enum):
    """What became of a file."""

    WRITTEN = 1
    ALREADY = 2


class Directory:
    """A directory for files; missing directories are made.

    Args:
        root: the directory.
        alone: whether no other process writes there; a temporary file that a process which died
            has left is then used again.
    """

    def __init__(self, root: Path, *, alone: bool = False) -> None:
        self.root = root
        self._alone = alone
        self._made: set[str] = set()

    def path(self, relative: str) -> Path:
        """Return the path for a name with slashes; what would leave the directory is replaced.

        Raises:
            SaveError: a part of it is too long.
        """
        parts = [_part(part) for part in relative.split("/") if part]
        for part in parts:
            if len(os.fsencode(part)) > _NAME_BYTES:
                raise SaveError(f"{relative}: {part[:40]}… is too long for the name of a file")
        if not parts:
            raise SaveError(f"{relative!r} is no name of a file")
        return self.root.joinpath(*parts)

    def has(self, path: Path, content_hash: str) -> bool:
        """Return whether a file is there with content of this Hash."""
        try:
            return bool(content_hash) and digest(path.read_bytes()) == content_hash
        except OSError:
            return False

    def save(self, path: Path, data: bytes, when: datetime) -> Saved:
        """Save a file with this modification time.

        Raises:
            SaveError: there is another file of that name, or the disk refuses.
        """
        try:
            return self._save(path, data, when)
        except OSError as exc:
            raise SaveError(f"{path}: {exc.strerror or exc}") from exc

    def _save(self, path: Path, data: bytes, when: datetime) -> Saved:
        self._make(path.parent)
        tmp = self._write(path, data, when)
        try:
            try:
                os.link(tmp, path, follow_symlinks=False)
            except FileExistsError:
                return self._beside(path, tmp, data)
            except OSError as exc:
                if exc.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
                    raise
                if path.exists():
                    return self._beside(path, tmp, data)
                tmp.rename(path)  # a file system without hard links
            return Saved.WRITTEN
        finally:
            with suppress(FileNotFoundError):
                tmp.unlink()

    def _beside(self, path: Path, tmp: Path, data: bytes) -> Saved:
        """Deal with a file that has the name already."""
        found = path.read_bytes()
        if found == data:
            return Saved.ALREADY
        if found:
            raise SaveError(f"{path} is there already and has other content")
        tmp.rename(path)  # empty: written before a power failure, but not synced
        return Saved.WRITTEN

    def _write(self, path: Path, data: bytes, when: datetime) -> Path:
        unique = digest(os.fsencode(path.name))[:16] if self._alone else uuid4().hex
        tmp = path.with_name(f".jostler-{unique}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(tmp, flags, 0o644)
        try:
            with open(fd, "wb", buffering=0) as file:  # noqa: PTH123 - a descriptor
                view = memoryview(data)
                while view:
                    view = view[file.write(view) :]
                seconds = when.timestamp()
                os.utime(fd, (seconds, seconds))
        except BaseException:  # Ctrl-C too
            with suppress(OSError):
                tmp.unlink()
            raise
        return tmp

    def _make(self, directory: Path) -> None:
        if str(directory) not in self._made:
            directory.mkdir(parents=True, exist_ok=True)
            self._made.add(str(directory))


def _part(part: str) -> str:
    part = part.replace("\0", "%00")
    return part.replace(".", "%2E") if part in {".", ".."} else part


def with_mark(path: Path, mark: str) -> Path:
    """Return the path beside another one: `a.json` with the mark `5f` is `a~5f.json`."""
    return path.with_name(f"{path.stem}~{mark}{path.suffix}")
