"""The sweep: the files of a stored bundle are unlinked, and its journal entry forgotten.

**Invariant:** a file is unlinked only while its bytes are those that are durable in the bucket;
one that changed is given back.  A sweep is carried out in slices by the agent's own thread: a
thread beside it would fight with it for the interpreter at every system call, which costs both
more time than the work itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from jostler.bundle.confined import NotAFileError
from jostler.bundle.file import unlink_stored
from jostler.log import Log

if TYPE_CHECKING:
    from jostler.bundle.bundle import Header
    from jostler.bundle.confined import Confined, Directories
    from jostler.bundle.entry import Entry, FileState
    from jostler.bundle.journal import Journal
    from jostler.bundle.record import Record
    from jostler.log import EveryMinute

log = Log("jostler.sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A bundle whose data and index are durable and whose files can go.

    Attributes:
        record: the journal's entry; says stored.
        left: paths of files that the stored attempt does not hold.
        object_bytes: size of the data object, 0 when it was not sent by this process.
        index_bytes: size of the index object, 0 as above.
        upload_s: seconds that the request took which stored the data object; 0 as above.
        started_s: monotonic seconds when the commit began.
    """

    record: Record
    left: frozenset[str] = frozenset()
    object_bytes: int = 0
    index_bytes: int = 0
    upload_s: float = 0.0
    started_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one commit ended.

    Attributes:
        header: of the bundle.
        stored: data and index are durable; else the name was another's and all files are given
            back.
        files: rows that are durable, 0 if not stored.
        object_bytes: size of the data object, 0 when it was not sent by this process.
        gone: paths that need no more thought: unlinked, or vanished by themselves.
        again: paths whose file is still there and not stored as it now is.
        kept: paths of files whose bytes could not be stored whole, with the state they were
            rejected in; they stay on disk.
        undeletable: goes on with the files that could not be unlinked, and only these; to be
            carried out later.
        seconds: from the start of the commit to its end.
    """

    header: Header
    stored: bool
    files: int = 0
    object_bytes: int = 0
    gone: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    kept: dict[str, FileState] = field(default_factory=dict)
    undeletable: Cleanup | None = None
    seconds: float = 0.0


class Cleanup:
    """The unlinking of one bundle's files.

    Args:
        stored: the bundle.
        spool: the files of the experiment, as entries name them.
        journal: that holds the entry.
        every_minute: lets repeating messages through.
        only: paths to look at, if not all: the caller was told of the others' end before, and
            may have taken what lies there now.
    """

    def __init__(
        self,
        stored: Stored,
        spool: Confined,
        journal: Journal,
        every_minute: EveryMinute,
        *,
        only: frozenset[str] | None = None,
    ) -> None:
        self._every_minute = every_minute
        self._stored = stored
        self._spool = spool
        self._journal = journal
        (self._winner,) = stored.record.attempts
        entries = self._winner.entries
        self._most = len(entries) if only is None else len(only)
        self._entries = (entry for entry in entries if only is None or entry.path in only)
        self._gone: set[str] = set()
        self._changed: set[str] = set()
        self._kept: dict[str, FileState] = {}
        self._failed: dict[str, OSError] = {}

    def step(self, most: int) -> Outcome | None:
        """Unlink at most `most` files; return the outcome when all have been looked at.

        Raises:
            OSError: the journal's entry cannot be removed; the next step tries again.
        """
        with self._spool.directories() as directories:
            for entry in islice(self._entries, most):
                self._look_at(entry, directories)
        done = len(self._gone) + len(self._changed) + len(self._kept) + len(self._failed)
        return None if done < self._most else self._finish()

    def _look_at(self, entry: Entry, directories: Directories) -> None:
        if not entry.hash:
            self._kept[entry.path] = entry.state
            return
        try:
            if unlink_stored(directories, entry):
                self._gone.add(entry.path)
            else:
                self._changed.add(entry.path)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            self._gone.add(entry.path)
        except OSError as exc:
            self._failed[entry.path] = exc

    def _finish(self) -> Outcome:
        record = self._stored.record
        if self._failed:
            self._say_undeletable()
        else:
            self._journal.remove(record)
        seconds = time.monotonic() - self._stored.started_s
        log.info(
            "bundle.stored",
            object=str(record.header.name),
            files=len(self._winner.entries),
            bytes=self._stored.object_bytes,
            unlinked=len(self._gone),
            changed=len(self._changed),
            kept=len(self._kept),
            seconds=round(seconds, 3),
        )
        return Outcome(
            header=record.header,
            stored=True,
            files=len(self._winner.entries),
            object_bytes=self._stored.object_bytes,
            gone=frozenset(self._gone),
            again=frozenset(self._changed) | self._stored.left,
            kept=self._kept,
            undeletable=self._rest() if self._failed else None,
            seconds=seconds,
        )

    def _rest(self) -> Cleanup:
        return Cleanup(
            replace(self._stored, left=frozenset()),
            self._spool,
            self._journal,
            self._every_minute,
            only=frozenset(self._failed),
        )

    def _say_undeletable(self) -> None:
        if count := self._every_minute.due("unlink"):
            path, error = next(iter(self._failed.items()))
            log.error(
                "files.undeletable",
                object=str(self._stored.record.header.name),
                files=len(self._failed),
                first=path,
                error=str(error),
                times=count,
                next="stored once, kept in the journal, unlinked when it becomes possible",
                hint="same runAsUser as the service, or umask 002 there and a common fsGroup",
            )
