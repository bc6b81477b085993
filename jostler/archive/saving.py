"""Save what was read as files of a directory.

**Invariant:** a file under its final name is complete: it is written under a temporary name and
then linked or renamed.  A file that is already there is never overwritten, unless it is empty.  No
path leaves the directory, whatever a stored Filename is.

Paths are texts: a directory takes a hundred thousand small files, and path objects cost as much as
writing them.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from jostler.archive.hashes import digest
from jostler.errors import JostlerError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

NAMES_MOST = 50_000
"""Names of files in memory, of all directories together: some 10 MiB."""
_NAME_BYTES = 255
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class SaveError(JostlerError):
    """A file cannot be saved."""


class TakenError(SaveError):
    """Another file has its name."""


class DiskError(SaveError):
    """No file can be saved: the disk is full, or cannot be written to."""


class Saved(Enum):
    """The result of saving a file."""

    WRITTEN = 1
    ALREADY = 2


class Directory:
    """A directory for files; missing directories are made.

    Args:
        root: the directory.
        alone: whether no other process writes there.  Then a directory is listed once instead of
            asking for each file, and a temporary file that a process which died has left is used
            again.
        names_most: the most names of files that are kept of such lists.

    Attributes:
        was_empty: whether there were no files at first.
    """

    def __init__(self, root: Path, *, alone: bool = False, names_most: int = NAMES_MOST) -> None:
        self._root = str(root)
        self._alone = alone
        self._names_most = names_most
        # In the order of their last use; None for a directory whose names are not kept.
        self._names: dict[str, set[str] | None] = {}
        self._kept = 0
        self._folders: dict[str, str] = {}
        self.was_empty = alone and not any(self._listed(self._root))

    def path(self, relative: str) -> str:
        """Return the path for a name with slashes; what would leave the directory is replaced.

        Raises:
            SaveError: a part of it is too long.
        """
        given, _, name = relative.rpartition("/")
        if not name:
            given, _, name = relative.rstrip("/").rpartition("/")
        if not name:
            raise SaveError(f"{relative!r} is no name of a file")
        folder = self._folders.get(given)
        if folder is None:  # once for all files of a directory
            parts = [_part(part, relative) for part in given.split("/") if part]
            folder = self._folders[given] = "/".join((self._root, *parts))
        return f"{folder}/{_part(name, relative)}"

    def has(self, path: str, content_hash: str = "") -> bool:
        """Return whether a file is there, and has content of this Hash if one is given."""
        folder, _, name = path.rpartition("/")
        if self._alone:
            known = self._known(folder)
            if known is not None and name not in known:
                return False
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - see above
                return not content_hash or digest(file.read()) == content_hash
        except OSError:
            return False

    def save(self, path: str, data: bytes, when: datetime) -> Saved:
        """Save a file with this modification time.

        Raises:
            TakenError: there is another file of that name.
            DiskError: the disk is full or read-only, so the next file will fare no better.
            SaveError: the disk refuses this one.
        """
        folder, _, name = path.rpartition("/")
        try:
            known = self._known(folder)
            tmp = self._write(folder, data, when)
            try:
                if known is not None and name not in known:
                    os.rename(tmp, path)  # noqa: PTH104 - see above
                    self._keep(known, name)
                    return Saved.WRITTEN
                saved = self._link(tmp, path, data)
            except BaseException:  # Ctrl-C too
                _remove(tmp)
                raise
            _remove(tmp)
        except (FileExistsError, NotADirectoryError) as exc:
            raise SaveError(f"{path}: {exc.filename} is no directory") from exc
        except OSError as exc:
            kind = DiskError if exc.errno in _DISK else SaveError
            raise kind(f"{path}: {exc.strerror or exc}") from exc
        return saved

    def _known(self, folder: str) -> set[str] | None:
        """Make a directory once; return the names in it, if they are kept."""
        if folder in self._names:
            known = self._names.pop(folder)  # it is the last one now
        else:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - see above
            known = self._names_of(folder) if self._alone else None
        self._names[folder] = known
        while self._kept > self._names_most:
            self._forget()
        return self._names[folder]

    def _names_of(self, folder: str) -> set[str]:
        """List a directory, but not more than can be kept."""
        known: set[str] = set()
        for name in self._listed(folder):
            self._keep(known, name)
            if self._kept > self._names_most:
                break
        return known

    def _listed(self, folder: str) -> Iterator[str]:
        """Yield the names in a directory; none if there is no such directory."""
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name

    def _keep(self, known: set[str], name: str) -> None:
        known.add(name)
        self._kept += 1

    def _forget(self) -> None:
        """Forget the names in the directory that was used least recently, and keep none of it.

        A directory that is used again, as large ones of several datatypes in turn, would otherwise
        be listed again and again.
        """
        folder = next(folder for folder, known in self._names.items() if known)
        self._kept -= len(self._names[folder] or ())
        self._names[folder] = None

    def _link(self, tmp: str, path: str, data: bytes) -> Saved:
        """Give a file its name, unless another one has it."""
        try:
            os.link(tmp, path, follow_symlinks=False)  # link(2) never overwrites
        except FileExistsError:
            return _beside(tmp, path, data)
        except OSError as exc:
            if exc.errno not in {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}:
                raise
            if os.path.lexists(path):  # a file system without hard links
                return _beside(tmp, path, data)
            os.rename(tmp, path)  # noqa: PTH104 - see above
        return Saved.WRITTEN

    def _write(self, folder: str, data: bytes, when: datetime) -> str:
        tmp = f"{folder}/.jostler-{'0' if self._alone else uuid4().hex}.part"
        try:
            fd = os.open(tmp, _FLAGS, 0o644)
            try:
                done = os.write(fd, data)
                while done < len(data):
                    done += os.write(fd, memoryview(data)[done:])
                # No fsync: for many small files it would take longer than all else.  A file that a
                # power failure has emptied is written again (`_beside`).
                when_ns = round(when.timestamp() * 1e6) * 1000  # a float of seconds is not exact
                os.utime(fd, ns=(when_ns, when_ns))
            finally:
                os.close(fd)
        except BaseException:  # Ctrl-C too
            _remove(tmp)
            raise
        return tmp


def _beside(tmp: str, path: str, data: bytes) -> Saved:
    """Deal with a file that has the name already."""
    found = Path(path).read_bytes()
    if found == data:
        return Saved.ALREADY
    if found:
        raise TakenError(f"{path} is there already and has other content")
    os.rename(tmp, path)  # noqa: PTH104 - empty: written before a power failure, but not synced
    return Saved.WRITTEN


def _remove(tmp: str) -> None:
    """Remove a temporary file, if it has not become the file."""
    with suppress(OSError):
        os.unlink(tmp)  # noqa: PTH108 - see above


def _part(part: str, of: str) -> str:
    """Return a part of a path as the name of a file or directory.

    Raises:
        SaveError: it is too long.
    """
    if "\0" in part:
        part = part.replace("\0", "%00")
    elif part in {".", ".."}:
        part = part.replace(".", "%2E")
    size = len(part) if part.isascii() else len(os.fsencode(part))
    if size > _NAME_BYTES:
        raise SaveError(f"{of}: {part[:40]}… is too long for the name of a file")
    return part


def with_mark(path: str, mark: str) -> str:
    """Return the path beside another one: `a.json` with the mark `5f` is `a~5f.json`."""
    stem, suffix = os.path.splitext(path)  # noqa: PTH122 - see above
    return f"{stem}~{mark}{suffix}"
