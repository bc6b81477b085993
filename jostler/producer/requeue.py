"""Put rejected files into the spool again if their contents are good by today's schema.

**Invariant:** nothing is put there twice: a file that the spool or the archive has already, by
Filename and Hash, is left out.  The spool is looked at first: an agent stores a file before it
unlinks it, so what has just gone from the spool is found in the archive.

One process at a time works on a datatype; a second one that runs beside it waits.
"""

from __future__ import annotations

import base64
import fcntl
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import orjson

from jostler.archive.query import Query
from jostler.archive.reading import Row, Unread
from jostler.format.names import Day, parse_file
from jostler.format.row import content_hash, one_line
from jostler.producer.naming import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from jostler.archive.catalogue import Catalogue
    from jostler.archive.files import File
    from jostler.archive.reading import RowReader
    from jostler.producer.checking import Checks
    from jostler.producer.outbox import Outbox

BATCH_FILES = 1000
BATCH_BYTES = 64 * 1024 * 1024


class State(Enum):
    """The end that a rejected file met in this run."""

    GOOD = "good now"
    BAD = "still bad"
    IN_SPOOL = "in the spool already"
    STORED = "stored already"
    NAME_TAKEN = "not written, for the spool has another content of that name"
    NOT_WHOLE = "not stored whole"
    UNREAD = "not readable"


class Rejected(NamedTuple):
    """A rejected file.

    Attributes:
        file: its row in the index.
        filename: where it is to be in the spool, `yyyy/mm/dd/<name>`.
        reason: why it was rejected.
        content: its bytes.
    """

    file: File
    filename: str
    reason: str
    content: bytes

    @property
    def key(self) -> tuple[str, str]:
        """Filename and Hash that its row would have as data."""
        return self.filename, content_hash(one_line(self.content)).hex()


class Result(NamedTuple):
    """What became of a rejected file; `why` has details, or is empty."""

    filename: str
    state: State
    why: str = ""


@dataclass(slots=True)
class Requeued:
    """The counts of a run.

    Attributes:
        looked: rejected files of the datatype and reason.
        states: by state.
        reasons: of those that are still bad, by today's reason.
    """

    looked: int = 0
    states: Counter[State] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, result: Result) -> None:
        """Count a file."""
        self.looked += 1
        self.states[result.state] += 1


class Requeue:
    """Reads rejected1, judges, and writes.

    Args:
        checks: the judge of today.
        rows: reads rows out of bundles.
        stored: the catalogue in which to look for what is stored already; it must know of each
            bundle at once, so it is that of the bucket.
        top: the datatype's directory.
        extensions: of the files that the agent takes.
    """

    def __init__(
        self,
        checks: Checks,
        rows: RowReader,
        stored: Catalogue,
        top: Path,
        extensions: Sequence[str] = (".json",),
    ) -> None:
        self._checks = checks
        self._rows = rows
        self._stored = stored
        self._top = top
        self._extensions = extensions
        self._seen: set[tuple[str, str]] = set()
        self.counts = Requeued()

    def run(
        self,
        files: Iterable[File],
        reason: str,
        outbox: Outbox | None,
        report: Callable[[Result], object],
    ) -> None:
        """Put the good ones of some rejected files into the spool.

        Args:
            files: rows of rejected1, of any datatype.
            reason: the reason that is meant; empty for all.
            outbox: writes; None only counts.
            report: called with what became of each file of the datatype and the reason.
        """

        def note(result: Result) -> None:
            self.counts.add(result)
            report(result)

        batch: list[Rejected] = []
        size = 0
        for rejected in self._good(files, reason, note):
            batch.append(rejected)
            size += len(rejected.content)
            if len(batch) == BATCH_FILES or size > BATCH_BYTES:
                self._put(batch, outbox, note)
                batch, size = [], 0
        self._put(batch, outbox, note)

    def _good(
        self, files: Iterable[File], reason: str, note: Callable[[Result], object]
    ) -> Iterator[Rejected]:
        """Yield the files that are good now, and report the others."""
        for found in self._rows.read_all(files):
            if isinstance(found, Unread):
                note(Result(found.file.filename, State.UNREAD, str(found.error)))
                continue
            rejected = self._of(found)
            if rejected is None or (reason and rejected.reason != reason):
                continue
            # Of a large file only the beginning is stored: it could be good JSON by chance.
            if not found.file.hash or len(rejected.content) != found.file.size:
                note(Result(found.file.filename, State.NOT_WHOLE, rejected.reason))
            elif flaw := self._checks.rejection(rejected.content, rejected.filename):
                self.counts.reasons[flaw.reason] += 1
                at = f"{flaw.field}: " if flaw.field else ""
                note(Result(found.file.filename, State.BAD, f"{flaw.reason}: {at}{flaw.detail}"))
            else:
                yield rejected

    def _of(self, row: Row) -> Rejected | None:
        """Take a row of rejected1 apart; None if it is of another datatype."""
        raw = orjson.loads(row.raw)
        if raw["Datatype"] != self._checks.datatype:
            return None
        content = base64.b64decode(raw["Content"] or "")
        return Rejected(row.file, self._place(row.file), raw["Reason"], content)

    def _place(self, file: File) -> str:
        """Return the Filename in the spool: its own, or the nearest that the agent takes."""
        try:
            parse_file(file.filename)
        except ValueError:
            folder, _, name = file.filename.rpartition("/")
            try:
                day = Day.parse(folder)
            except ValueError:
                day = Day(file.origin.day)
            return f"{day.path}/{safe_name(name, self._extensions)}"
        return file.filename

    def _put(
        self, batch: list[Rejected], outbox: Outbox | None, note: Callable[[Result], object]
    ) -> None:
        """Write those of some good files that are neither in the spool nor stored."""
        missing = [rejected for rejected in batch if not self._is_known(rejected, note)]
        # Of two contents of one name, the next run takes the second.
        names = {one.filename: one for one in reversed(missing)}
        for one in missing:
            if names[one.filename] is not one:
                note(Result(one.filename, State.NAME_TAKEN))
        missing = list(names.values())
        # After the spool was looked at: a file that an agent unlinked since then is in the archive
        # by now.  In the other order it could be missed in both.
        stored = self._stored_keys({parse_file(one.filename)[0] for one in missing})
        for one in missing:
            if one.key in stored:
                note(Result(one.filename, State.STORED))
        wanted = [one for one in missing if one.key not in stored]
        if outbox is not None:
            staged = [
                outbox.stage(one.filename, one.content, mtime_ns=_start_ns(one.file))
                for one in wanted
            ]
            outbox.publish(staged)
        for one in wanted:
            note(Result(one.filename, State.GOOD, one.reason))

    def _is_known(self, rejected: Rejected, note: Callable[[Result], object]) -> bool:
        """Return whether this run has met the same file, or its name is taken in the spool."""
        if rejected.key in self._seen:
            note(Result(rejected.filename, State.IN_SPOOL, "another rejected file is the same"))
            return True
        self._seen.add(rejected.key)
        try:
            there = (self._top / rejected.filename).read_bytes()
        except FileNotFoundError:
            return False
        is_same = one_line(there) == one_line(rejected.content)
        note(Result(rejected.filename, State.IN_SPOOL if is_same else State.NAME_TAKEN))
        return True

    def _stored_keys(self, days: Iterable[Day]) -> set[tuple[str, str]]:
        """Return Filename and Hash of what is stored in some days."""
        found: set[tuple[str, str]] = set()
        for day in sorted(days):
            query = Query(datatypes=(self._checks.datatype,), first_day=day.date, last_day=day.date)
            found.update((file.path, file.hash) for file in self._stored.files(query))
        return found


@contextmanager
def alone(top: Path) -> Iterator[None]:
    """Wait until no other process requeues files of a datatype, and keep others waiting.

    Raises:
        OSError: there is no such directory, or it has no locks.
    """
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _start_ns(file: File) -> int | None:
    """Return the time that the file had, which the agent takes for its Start."""
    return round(file.start.timestamp() * 1_000_000) * 1000 if file.start else None
