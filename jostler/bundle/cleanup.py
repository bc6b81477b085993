"""The clean-up: unlink the files of a stored bundle.

**Invariant:** a file is unlinked only if its content is the one that is durable in the bucket, or
if the bucket lists it as given up; a file that changed is given back.  A path that now belongs to
another bundle is not touched.

The agent's own thread cleans up, a limited number of files at a time.  A second thread would make
both slower: they would compete for the interpreter lock (GIL) at every system call, which costs
more time than the calls themselves.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.bundle.confined import NotAFileError
from jostler.bundle.entry import Entry, FileState
from jostler.bundle.file import unlink_in_state, unlink_stored, unlink_unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.confined import Confined, Directories
    from jostler.bundle.entry import Entries, EntryRow


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

    Attributes:
        cleaned: the result so far.
    """

    def __init__(
        self,
        entries: Entries,
        is_mine: Callable[[str], bool],
        spool: Confined,
        given_up: frozenset[str] = frozenset(),
    ) -> None:
        self._given_up = given_up
        self._rows = entries.rows()
        self._is_mine = is_mine
        self._spool = spool
        self._path = ""
        self.cleaned = Cleaned()

    def step(self, most: int) -> bool:
        """Process up to `most` files; return whether none is left."""
        looked, is_mine = 0, self._is_mine
        with self._spool.directories() as directories:
            for row in islice(self._rows, most):
                looked += 1
                path = self._path = row[0]
                # After a crash two records may list one path, and a new file may have the path of
                # one that was given up: then only the other bundle says what becomes of it.
                if is_mine(path):
                    self._look_at(row, directories)
        return looked < most

    def skip(self, error: Exception) -> None:
        """Record that the file examined last failed with an unforeseen error."""
        self.cleaned.failed.append(self._path)
        self.cleaned.error = self.cleaned.error or f"{type(error).__name__}: {error}"

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
