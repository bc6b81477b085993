"""The clean-up: unlink the files of a stored bundle.

**Invariant:** a file is unlinked only if its content is the one that is durable in the bucket, or
if the bucket lists it as given up; a file that changed is given back.  A path that now belongs to
another bundle is not touched.

The first look at a file is one lstat(2); it is enough for nearly all of them.  The native module
does it for many files in one call.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.bundle.confined import NotAFileError
from jostler.bundle.entry import Entry, FileState
from jostler.bundle.file import unlink_in_state, unlink_stored, unlink_unchanged
from jostler.format.names import display
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.confined import Confined, Directories
    from jostler.bundle.entry import Entries, EntryRow
    from jostler.schema.native import UnlinkMany

log = Log("jostler.disk")

TOGETHER = 500
"""Files that are unlinked in one call of the native module."""


class Cleaned(Struct, kw_only=True):
    """The result of a clean-up: each path of the bundle in one of five groups.

    Attributes:
        unlinked: the paths of files that were unlinked.
        vanished: the hashes of the stored contents, by path, of files that were gone; or whose
            path is now a directory, a link or a special file.
        changed: the paths of files whose content is no longer the stored one.
        kept: the states, by path, of rejected files whose content could not be stored whole; they
            stay on disk.
        failed: the paths of files that could not be examined or unlinked.
        error: why the first of these failed, in words; empty if none did.
    """

    unlinked: list[str] = field(default_factory=list)
    vanished: dict[str, bytes] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    kept: dict[str, FileState] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    error: str = ""


class Cleanup:
    """One pass over the files of a stored bundle.

    Args:
        entries: the bundle's files.
        is_mine: returns whether a path still belongs to the bundle.
        spool: gives access to the files; entries have paths below it.
        given_up: those of them that go although their content is not stored.
        unlink_many: the native module's way to unlink files that are as they were read.

    Attributes:
        cleaned: the result so far.
    """

    def __init__(
        self,
        entries: Entries,
        is_mine: Callable[[str], bool],
        spool: Confined,
        given_up: frozenset[str] = frozenset(),
        *,
        unlink_many: UnlinkMany | None = None,
    ) -> None:
        self._given_up = given_up
        self._entries = entries
        self._is_mine = is_mine
        self._spool = spool
        self._unlink_many = unlink_many
        self._at = self._alone = self._penalty = 0
        self.cleaned = Cleaned()

    @property
    def left(self) -> int:
        """How many files have not been looked at."""
        return len(self._entries) - self._at

    def step(self, most: int) -> bool:
        """Process up to `most` files; return whether none is left."""
        till = min(self._at + most, len(self._entries))
        with self._spool.directories() as directories:
            while self._at < till:
                if self._unlink_many:
                    self._unlink_together(self._unlink_many, till, directories)
                if self._at < till:
                    self._look_at_next(directories)
        return not self.left

    def skip(self, error: Exception) -> None:
        """Record that the file examined last failed with an unforeseen error."""
        self.cleaned.failed.append(self._entries.paths[self._at - 1])
        self.cleaned.error = self.cleaned.error or f"{type(error).__name__}: {error}"

    def _unlink_together(
        self, unlink_many: UnlinkMany, till: int, directories: Directories
    ) -> None:
        """Unlink the next files of one directory, up to the first about which to decide."""
        if self._alone:
            self._alone -= 1
            return
        paths, numbers, hashes = self._entries.part(self._at, min(self._at + TOGETHER, till))
        folder = paths[0].rpartition("/")[0]
        paths = paths[: self._ordinary(folder, paths, hashes)]
        unlinked = 0
        if paths:
            with suppress(Exception):  # it comes again when the file is looked at alone
                skip = len(folder.encode()) + len("/")
                unlinked = unlink_many(directories.of(paths[0])[0], paths, skip, numbers)
        self.cleaned.unlinked += paths[:unlinked]
        self._at += unlinked
        # Where nothing can be unlinked, as little is tried in vain.
        self._penalty = 0 if unlinked else min(TOGETHER, 2 * self._penalty + 1)
        self._alone = self._penalty

    def _ordinary(self, folder: str, paths: list[str], hashes: list[bytes]) -> int:
        """Return how many files, from the first on, may go if they are as they were read."""
        is_mine, given_up = self._is_mine, self._given_up
        for nth, (path, digest) in enumerate(zip(paths, hashes, strict=True)):
            beside = path.rpartition("/")[0] == folder
            if not (digest and beside and is_mine(path)) or path in given_up:
                return nth
        return len(paths)

    def _look_at_next(self, directories: Directories) -> None:
        row = self._entries.row(self._at)
        self._at += 1
        # After a crash two records may list one path, and a new file may have the path of one that
        # was given up: then only the other bundle says what becomes of it.
        if self._is_mine(row[0]):
            self._look_at(row, directories)

    def _look_at(self, row: EntryRow, directories: Directories) -> None:
        path, inode, size, mtime_ns, ctime_ns, _, digest = row
        if path in self._given_up:
            self._remove(path, FileState(inode, size, mtime_ns, ctime_ns), directories)
            return
        if not digest:  # its row has only a part of the content, or none: the file stays
            self.cleaned.kept[path] = FileState(inode, size, mtime_ns, ctime_ns)
            return
        try:
            # First the cheap test, one lstat(2): it is enough for nearly all files.  Only a file
            # whose state changed, or changed within a tick of the clock, is read and hashed.
            if unlink_unchanged(directories, row) or _unlink_stored(directories, row):
                self.cleaned.unlinked.append(path)
            else:
                self.cleaned.changed.append(path)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            self.cleaned.vanished[path] = digest
        except OSError as exc:
            self.cleaned.failed.append(path)
            self.cleaned.error = self.cleaned.error or str(exc)

    def _remove(self, path: str, state: FileState, directories: Directories) -> None:
        """Unlink a file that was given up, if that was not done when its record was written."""
        try:
            unlinked = unlink_in_state(directories, path, state)
            log.warning("file.given_up", file=display(path), bytes=state.size)
            # The file that was given up is gone in either case; another state means a new file,
            # which is read.
            (self.cleaned.unlinked if unlinked else self.cleaned.changed).append(path)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            self.cleaned.unlinked.append(path)
        except OSError as exc:
            self.cleaned.failed.append(path)
            self.cleaned.error = self.cleaned.error or str(exc)


def _unlink_stored(directories: Directories, row: EntryRow) -> bool:
    path, inode, size, mtime_ns, ctime_ns, added_us, digest = row
    state = FileState(inode, size, mtime_ns, ctime_ns)
    return unlink_stored(directories, Entry(path, state, added_us, digest))
