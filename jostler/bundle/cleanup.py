"""Clean-up: the files of a stored bundle are unlinked.

**Invariant:** a file is unlinked only while its bytes are those that are durable in the bucket;
one that changed is given back.  A path that another bundle has by now is not looked at.

A clean-up is carried out in slices by the agent's own thread: a thread beside it would fight with
it for the interpreter at every system call, which costs both more time than the work itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from jostler.bundle.confined import NotAFileError
from jostler.bundle.file import unlink_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jostler.bundle.confined import Confined, Directories
    from jostler.bundle.entry import Entry, FileState


@dataclass(slots=True, kw_only=True)
class Cleaned:
    """What became of a bundle's files.

    Attributes:
        unlinked: paths.
        vanished: hashes of what was stored, by path, of files that were gone, or that something
            else than a file had taken the place of.
        changed: paths whose file is still there and not stored as it now is.
        kept: paths of files whose bytes could not be stored whole, with the state they were
            rejected in; they stay on disk.
        failed: paths that could not be looked at or unlinked.
        error: why the first of these could not, in words.
    """

    unlinked: list[str] = field(default_factory=list)
    vanished: dict[str, bytes] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    kept: dict[str, FileState] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    error: str = ""


class Cleanup:
    """One look at the files of a stored bundle.

    Args:
        entries: the files.
        is_mine: says whether a path still belongs to the bundle.
        spool: the files of the experiment, as entries name them.
    """

    def __init__(
        self, entries: Iterable[Entry], is_mine: Callable[[str], bool], spool: Confined
    ) -> None:
        self._entries = iter(entries)
        self._is_mine = is_mine
        self._spool = spool
        self._path = ""
        self.cleaned = Cleaned()

    def step(self, most: int) -> bool:
        """Look at `most` files at the most; say whether all have been looked at."""
        looked, is_mine = 0, self._is_mine
        with self._spool.directories() as directories:
            for entry in islice(self._entries, most):
                looked += 1
                self._path = entry.path
                if is_mine(entry.path):
                    self._look_at(entry, directories)
        return looked < most

    def skip(self, error: Exception) -> None:
        """Count the file that was looked at last among those that cannot be unlinked."""
        self.cleaned.failed.append(self._path)
        self.cleaned.error = self.cleaned.error or f"{type(error).__name__}: {error}"

    def _look_at(self, entry: Entry, directories: Directories) -> None:
        if not entry.hash:
            self.cleaned.kept[entry.path] = entry.state
            return
        try:
            if unlink_stored(directories, entry):
                self.cleaned.unlinked.append(entry.path)
            else:
                self.cleaned.changed.append(entry.path)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            self.cleaned.vanished[entry.path] = entry.hash
        except OSError as exc:
            self.cleaned.failed.append(entry.path)
            self.cleaned.error = self.cleaned.error or str(exc)
