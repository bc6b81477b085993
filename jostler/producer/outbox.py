"""Write files into the spool: staged outside the watch, synced, then renamed to their names.

**Invariant:** a file under its final name is whole, also after a crash of the machine; and no file
is ever replaced.  What a killed process left behind is removed by the next one.

Files are staged in `<datatype>/.jostler-push-<uid>/<process>-<random>/`.  It is on the file system
of the final names, so a rename suffices; and the agent neither watches nor enters a directory whose
name begins with a dot.  The process holds a lock on its directory for as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from contextlib import suppress
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Self

from jostler.errors import JostlerError
from jostler.format.row import one_line
from jostler.producer.folders import DIRECTORY, Folders
from jostler.producer.naming import other_name
from jostler.producer.system import can_sync_all, sync_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

STAGING = ".jostler-push-"
SYNC_ALL_FROM = 16
"""From so many files on, one syncfs(2) takes less time than an fsync(2) of each."""
LIST_FROM = 4096
"""From so many files on, to list their folders takes less time than to ask for each name."""
MOVE_TRIES = 5
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


class NameTakenError(JostlerError):
    """The spool has a file of this name with another content.

    Attributes:
        filenames: the paths below the datatype's directory that are taken.
    """

    def __init__(self, top: Path, filenames: Sequence[str]) -> None:
        more = f", and {len(filenames) - 1} more" if len(filenames) > 1 else ""
        super().__init__(
            f"{top}/{filenames[0]} is there with other content{more}",
            hint="choose another name, or let one be chosen: -rename",
        )
        self.filenames = tuple(filenames)


class Outcome(Enum):
    """The result of publishing a staged file."""

    WRITTEN = "written"
    """It lies in the spool under its name."""
    RENAMED = "renamed"
    """It lies in the spool under another name, for another content had its own."""
    ALREADY_THERE = "already there"
    """A file of this name with the same content was there; nothing was done."""
    JUDGED = "found good, and not written"
    """It was only judged."""


class Staged(NamedTuple):
    """A file that is written under a temporary name.

    Attributes:
        temporary: its name in the staging directory.
        filename: `yyyy/mm/dd/<name>`, where it is to be.
    """

    temporary: str
    filename: str


class Published(NamedTuple):
    """A file of the spool; `filename` is `yyyy/mm/dd/<name>`, where it is now."""

    filename: str
    outcome: Outcome


class Outbox:
    """Writes files of one datatype; any number of threads may share one.

    Args:
        top: the datatype's directory, `<local-data-dir>/<experiment>/<datatype>`; it is made if it
            does not exist.
        extensions: of the files that the agent takes.

    Raises:
        OSError: no file can be written there.
    """

    def __init__(self, top: Path, extensions: Sequence[str] = (".json",)) -> None:
        self.top = top
        self._extensions = tuple(extensions)
        self._numbers = count()
        self._staging = top / f"{STAGING}{os.geteuid()}"
        self._staging.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(self._staging)
        self._own, self._fd = _locked_directory(self._staging)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what is staged and not published; may be called again."""
        if self._fd < 0:
            return
        _remove(self._own, self._fd)
        os.close(self._fd)
        self._fd = -1
        with suppress(OSError):  # another process is at work there
            self._staging.rmdir()

    def stage(self, filename: str, content: bytes, *, mtime_ns: int | None = None) -> Staged:
        """Write a file under a temporary name; `publish` makes it durable and gives it its own.

        Args:
            filename: `yyyy/mm/dd/<name>`, where it is to be.
            content: its bytes.
            mtime_ns: its modification time, nanoseconds since 1970; None for now.

        Raises:
            OSError: it cannot be written; nothing is left of it.
        """
        staged = Staged(str(next(self._numbers)), filename)
        fd = os.open(staged.temporary, _NEW, 0o666, dir_fd=self._fd)
        try:
            written = os.write(fd, content)
            while written < len(content):  # a write may take less than it was given
                written += os.write(fd, memoryview(content)[written:])
            if mtime_ns is not None:
                os.utime(fd, ns=(mtime_ns, mtime_ns))
        except BaseException:
            self.discard([staged])
            raise
        finally:
            os.close(fd)
        return staged

    def discard(self, staged: Iterable[Staged]) -> None:
        """Remove staged files."""
        for temporary, _ in staged:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._fd)

    def publish(self, staged: Sequence[Staged], *, rename: bool = False) -> list[Published]:
        """Make staged files durable and move them to their names.

        If some name is taken by another content, no file gets its name, unless `rename`.  The one
        exception is a name that another process takes while this one moves files.

        Args:
            staged: files that `stage` returned; none of them is staged any more at the end.
            rename: whether a file whose name another content has gets another name.

        Returns:
            What became of each, in their order; all of it is durable.

        Raises:
            NameTakenError: another content has the name of some.
            OSError: they cannot be moved.  Those that were moved stay, and a repetition finds them.
        """
        try:
            if not rename:
                self._refuse_taken(staged)
            at_once = len(staged) >= SYNC_ALL_FROM and can_sync_all()
            # Contents before names: a power failure may otherwise leave a name with an empty file,
            # which the agent would take for a bad one.
            self._sync(staged, at_once=at_once)
            with Folders(self.top, at_once=at_once) as folders:
                published = [self._move(one, folders, rename=rename) for one in staged]
                folders.sync()
        except BaseException:
            self.discard(staged)
            raise
        return published

    def _refuse_taken(self, staged: Sequence[Staged]) -> None:
        """Raise an error if other contents have names of staged files."""
        there = self._names_there(staged)
        taken = [
            one.filename for one in staged if one.filename in there and self._is_same(one) is False
        ]
        if taken:
            raise NameTakenError(self.top, taken)

    def _names_there(self, staged: Sequence[Staged]) -> set[str]:
        """Return those of the Filenames of staged files that the spool has, and perhaps others."""
        if len(staged) < LIST_FROM:
            names = (one.filename for one in staged)
            return {name for name in names if os.path.lexists(f"{self.top}/{name}")}
        there: set[str] = set()
        for folder in {one.filename.rpartition("/")[0] for one in staged}:
            with suppress(FileNotFoundError), os.scandir(self.top / folder) as entries:
                there.update(f"{folder}/{entry.name}" for entry in entries)
        return there

    def _sync(self, staged: Sequence[Staged], *, at_once: bool) -> None:
        """Make contents durable, before names lead to them."""
        if at_once:
            sync_all(self._fd)
            return
        for temporary, _ in staged:
            fd = os.open(temporary, _OLD, dir_fd=self._fd)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _move(self, staged: Staged, folders: Folders, *, rename: bool) -> Published:
        temporary, wanted = staged
        filename = wanted
        for _ in range(MOVE_TRIES):
            try:
                folders.take(self._fd, temporary, filename)
            except FileExistsError:
                same = self._is_same(Staged(temporary, filename))
                # The agent took the other file and unlinked it between the two calls.
                if same is None:
                    continue
                if same:
                    self.discard([staged])
                    return Published(filename, Outcome.ALREADY_THERE)
                if not rename or filename != wanted:
                    raise NameTakenError(self.top, [filename]) from None
                filename = self._other_name(staged)
            except FileNotFoundError:  # somebody removed the directory: it is made again
                folders.sync()  # of the names that were given until now
                folders.forget()
            else:
                return Published(
                    filename, Outcome.WRITTEN if filename == wanted else Outcome.RENAMED
                )
        raise FileNotFoundError(f"{self.top}/{filename}: its directory is removed again and again")

    def _is_same(self, staged: Staged) -> bool | None:
        """Return whether what has a file's name would be the same row; None if nothing has it."""
        try:
            fd = os.open(f"{self.top}/{staged.filename}", _OLD)
        except FileNotFoundError:
            return None  # the agent has stored it meanwhile: the name is free
        except OSError:
            return False  # a link, or a file that may not be read
        try:
            with os.fdopen(fd, "rb") as there:
                return one_line(there.read()) == one_line(self._content(staged))
        except IsADirectoryError:
            return False

    def _content(self, staged: Staged) -> bytes:
        fd = os.open(staged.temporary, _OLD, dir_fd=self._fd)
        with os.fdopen(fd, "rb") as file:
            return file.read()

    def _other_name(self, staged: Staged) -> str:
        folder, _, name = staged.filename.rpartition("/")
        return f"{folder}/{other_name(name, self._content(staged), self._extensions)}"


def _locked_directory(staging: Path) -> tuple[Path, int]:
    """Make a directory of this process's own; return its path and its descriptor with the lock."""
    while True:
        path = staging / f"{os.getpid()}-{secrets.token_hex(4)}"
        path.mkdir(parents=True)  # another process may have removed `staging`, which was empty
        try:
            fd = os.open(path, DIRECTORY)
        except FileNotFoundError:
            continue
        with suppress(OSError):  # no locks on this file system: then nobody removes it, either
            fcntl.flock(fd, fcntl.LOCK_EX)
        # Between mkdir and flock, another process may have taken it for abandoned.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), path.lstat()):
                return path, fd
        os.close(fd)


def _remove_abandoned(staging: Path) -> None:
    """Remove the directories of processes that are gone: nobody holds the lock."""
    for path in staging.iterdir():
        with suppress(OSError):  # it is in use, or another process removes it, too
            fd = os.open(path, DIRECTORY)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path, fd)
            finally:
                os.close(fd)


def _remove(path: Path, fd: int) -> None:
    """Remove a directory of files."""
    for name in os.listdir(fd):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=fd)
    with suppress(OSError):
        path.rmdir()
