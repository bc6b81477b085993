"""The intake: a path that may have something becomes a row, a rejection, or waits.

**Invariant:** a path is in at most one bundle at a time, and a file that nobody closed is never
rejected before it is `missed_age_s` old.  The intake reads; it never deletes but under
`-bad-files delete`, and then only what it has just read.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from jostler.agent.ages import Ages, Clock, Sightings
from jostler.bundle import (
    NOTED_BYTES,
    REJECT_WHOLE_BYTES,
    Confined,
    Entry,
    EveryMinute,
    FileState,
    NotAFileError,
    OpenBundles,
    Put,
    Rejection,
    content_hash,
    one_line,
    read_file,
    rejected_most,
)
from jostler.config import BadFiles
from jostler.format import names
from jostler.format.names import REJECTED, Day, display
from jostler.format.row import BOM
from jostler.log import Log
from jostler.schema import Reason
from jostler.watchdir import How

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostler.agent.tally import Tally
    from jostler.bundle import Judging
    from jostler.bundle.file import Read
    from jostler.schema import Flaw

log = Log("jostler.intake")

READ_TRIES = 3
REASONS = (*(str(reason) for reason in Reason), "name", "path", "too-big", "unreadable")
"""Every reason why a file can be rejected: the judge's and the intake's own."""
REMEMBERED_MAX = 100_000


class Taken(Enum):
    """What became of a path."""

    ADDED = 1
    SKIPPED = 2
    WAITS = 3
    NO_ROOM = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By what the intake decides; ages in seconds, sizes in bytes.

    Attributes:
        spool: the experiment's directory.
        judges: for each datatype, what finds the flaw in a document.
        max_bytes: of a bundle, hence of a row.
        settle_age_s: a scanned file of this age is taken if it is good.
        missed_age_s: a scanned file of this age is taken, good or bad.
        bad_files: what becomes of bad ones.
        read_tries: after how many failed reads a file is called unreadable.
        once: no scan will meet a file again.
    """

    spool: str
    judges: Mapping[str, Callable[[bytes], Flaw | None]]
    max_bytes: int
    settle_age_s: float
    missed_age_s: float
    bad_files: BadFiles
    read_tries: int
    once: bool = False


class Left(NamedTuple):
    """A file that was looked at and left on the disk.

    Attributes:
        path: below the spool.
        state: in which it was looked at.
        kept: it is bad and stays; else it may yet become good.
        rejection: what is wrong with it, if that can still be told.
    """

    path: str
    state: FileState
    kept: bool
    rejection: Rejection | None


@dataclass(frozen=True, slots=True)
class Paths:
    """Copies of what an intake remembers of files, for other threads to search.

    Attributes:
        pending: that are in bundles.
        finished: bad files that stay.
        doubtful: files that are bad as they are now, and may yet become good.
    """

    pending: tuple[str, ...]
    finished: Mapping[str, FileState]
    doubtful: Mapping[str, FileState]


class Intake:
    """Takes paths, one at a time, in one thread.

    Attributes:
        waiting: files that a scan met too early, since the caller last set it to 0.
        of_age_s: when the first of the bad files that scans alone have met comes of age, monotonic
            seconds, since the caller last set it to None.
        overdue: paths of files that are old enough to go and cannot: they grow, cannot be read,
            or are bad and too big to be stored whole.
        ages: when a file that a scan met is taken.
        spool: the experiment's directory.
    """

    def __init__(
        self,
        rules: Rules,
        files: Confined,
        shelf: OpenBundles,
        tally: Tally,
        judging: Judging | None = None,
    ) -> None:
        self._judging = judging
        self._rules = rules
        self._files = files
        self._shelf = shelf
        self._tally = tally
        self.ages = Ages(rules.settle_age_s, rules.missed_age_s)
        self._clock = Clock()
        self._sightings = Sightings()
        self.spool = rules.spool
        self._prefix = len(rules.spool) + 1
        self._pending: set[str] = set()
        self._closed_again: set[str] = set()
        self._finished: dict[str, FileState] = {}
        self._doubtful: dict[str, FileState] = {}
        self._failed_reads: dict[str, int] = {}
        self._days: dict[str, Day] = {}
        self._every_minute = EveryMinute()
        self.waiting = 0
        self.of_age_s: float | None = None
        self.overdue: set[str] = set()

    @property
    def pending(self) -> int:
        """How many files are in bundles that are not yet stored and unlinked."""
        return len(self._pending)

    def paths(self) -> Paths:
        """Copy what is remembered: a millisecond for 100,000 files."""
        return Paths(tuple(self._pending), self._finished.copy(), self._doubtful.copy())

    def left(self, paths: Paths, matches: Callable[[str], bool], most: int) -> list[Left]:
        """Return files that were left as they still are, and that somebody asks for.

        It reads and judges them again, so it takes its time; any thread may ask.
        """
        found = [(path, state, True) for path, state in paths.finished.items() if matches(path)]
        found += [(path, state, False) for path, state in paths.doubtful.items() if matches(path)]
        return [
            Left(path, state, kept, self._judged_again(path, state))
            for path, state, kept in found[:most]
            if self._is_still(path, state)
        ]

    def _is_still(self, path: str, state: FileState) -> bool:
        try:
            return FileState.of(self._files.status(path)) == state
        except OSError:
            return False

    def _judged_again(self, path: str, state: FileState) -> Rejection | None:
        """Say what is wrong with a file: of so many bad files only the states are remembered."""
        datatype, _, filename = path.partition("/")
        try:
            read = read_file(self._files, path, self._rules.max_bytes + 1)
        except OSError:
            return None
        if read.state != state:
            return None
        return (
            placed(datatype, filename)[1]
            or self._deadly(path, datatype, state)
            or self._flaw(datatype, read)
        )

    def is_held(self, path: str) -> bool:
        """Say whether a file is in a bundle, or bad and kept for good; any thread may ask."""
        return path in self._pending or path in self._finished

    def hold(self, paths: set[str]) -> None:
        """Learn that these paths are in bundles that an earlier process sealed."""
        self._pending |= paths

    def release(self, paths: frozenset[str], kept: Mapping[str, FileState]) -> list[str]:
        """Learn that these paths are in no bundle any more.

        Returns:
            Paths that were closed again in the meantime: their events must not be forgotten.
        """
        self._pending -= paths
        self._pending.difference_update(kept)
        for path, state in kept.items():
            _remember(self._finished, path, state)
        again = [path for path in (*paths, *kept) if path in self._closed_again]
        self._closed_again.difference_update(again)
        return again

    def take(self, full_path: str, how: How) -> Taken:
        """Look at one path.

        Args:
            full_path: of a file below the spool.
            how: whether an event said that the file is complete, or a scan merely met it.
        """
        path = full_path[self._prefix :]
        if path in self._pending:
            if how is How.EVENT:
                self._closed_again.add(path)
            return Taken.SKIPPED
        try:
            # One byte more than a bundle holds shows that a file is too big.
            scanned = how is How.SCAN
            read = read_file(self._files, path, self._rules.max_bytes + 1, ask_writer=scanned)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            self.overdue.discard(path)
            if how is How.EVENT:
                self._tally.vanished[path.partition("/")[0]] += 1
            return Taken.SKIPPED
        except OSError as exc:
            return self._unreadable(path, exc)
        if self._failed_reads:
            self._failed_reads.pop(path, None)
        if self._finished and self._finished.get(path) == read.state:
            return Taken.SKIPPED
        if how is How.SCAN and (verdict := self._too_young(path, read)):
            return verdict
        return self._judge(path, read, how)

    def _too_young(self, path: str, read: Read) -> Taken | None:
        """Decide whether a file that a scan met must wait or was looked at before."""
        if others_ns := self._clock.others_ns():
            self.ages = replace(self.ages, others_ns=others_ns)
        if read.writer:  # who closes it is heard, so no scan is asked for
            if self._is_missed(read.state):
                self.overdue.add(path)
            return Taken.WAITS
        if self._doubtful.get(path) == read.state and not self._is_missed(read.state):
            self._will_be_of_age(read.state)
            return Taken.SKIPPED
        if self.ages.until_settled_s(read.state, time.time_ns()) > 0:
            self.waiting += 1
            return Taken.WAITS
        return None

    def _will_be_of_age(self, state: FileState) -> None:
        """Note when a bad file must be looked at again at the latest."""
        left_s = self.ages.until_missed_s(state, time.time_ns())
        due_s = time.monotonic() + (left_s if left_s > 0 else self._rules.settle_age_s)
        self.of_age_s = due_s if self.of_age_s is None else min(self.of_age_s, due_s)

    def _wait(self, path: str, state: FileState) -> Taken:
        """Leave a file for the next scan."""
        self.waiting += 1
        if self._is_missed(state):
            self.overdue.add(path)
        return Taken.WAITS

    def _is_missed(self, state: FileState) -> bool:
        return self.ages.until_missed_s(state, time.time_ns()) <= 0

    def _is_at_rest(self, path: str, read: Read) -> bool:
        """Say whether nobody writes a file: asked of the kernel, or else seen for `settle_age_s`.

        Times alone prove nothing: the clock may have stepped before this process began.
        """
        if read.writer is False or self._rules.once:
            return True
        seen_s = self._sightings.unchanged_s(path, read.state, time.monotonic())
        if seen_s < self._rules.settle_age_s:
            return False
        self._sightings.forget(path)
        return True

    def _judge(self, path: str, read: Read, how: How) -> Taken:
        datatype, _, filename = path.partition("/")
        day, rejection = self._place(datatype, filename)
        whole = read.whole and read.state.size <= self._rules.max_bytes
        if not rejection:
            rejection = self._judged(path, datatype, read)
        if not rejection and not whole:  # it grows while it is read: somebody writes
            return self._wait(path, read.state)
        if not rejection and day:
            entry = Entry(path, read.state, read.at_us, content_hash(read.content))
            put = self._shelf.add(datatype, day, entry, one_line(read.content))
            if put is Put.ADDED:
                self._pending.add(path)
                if self.overdue:
                    self.overdue.discard(path)
                tally = self._tally
                tally.taken[datatype] += 1
                tally.file_bytes[datatype] += read.state.size
                if log.verbose:
                    log.debug("file.taken", file=path, bytes=read.state.size, how=str(how))
                return Taken.ADDED
            if put is Put.NO_ROOM:
                return Taken.NO_ROOM
            rejection = _too_big(datatype, read.state.size, self._rules.max_bytes)
        assert rejection
        if how is How.SCAN and not (self._is_missed(read.state) and self._is_at_rest(path, read)):
            _remember(self._doubtful, path, read.state)  # perhaps half-written
            self._will_be_of_age(read.state)
            return Taken.WAITS
        return self._reject(path, read.state, day, rejection)

    def _place(self, datatype: str, filename: str) -> tuple[Day | None, Rejection | None]:
        """Return the day of a path, or why the path is against the rules."""
        directory, _, name = filename.rpartition("/")
        day = self._days.get(directory)
        if day:
            return day, misnamed(datatype, name)
        day, rejection = placed(datatype, filename)
        if day:
            if len(self._days) > REMEMBERED_MAX:
                self._days.clear()
            self._days[directory] = day
        return day, rejection

    def _judged(self, path: str, datatype: str, read: Read) -> Rejection | None:
        """Judge a file; one that the agent twice died of is refused without."""
        if self._judging is None or read.state.size < NOTED_BYTES:
            return self._flaw(datatype, read)
        if rejection := self._deadly(path, datatype, read.state):
            return rejection
        with self._judging.noted(path, read.state):
            return self._flaw(datatype, read)

    def _deadly(self, path: str, datatype: str, state: FileState) -> Rejection | None:
        """Return why a file is not judged at all."""
        if self._judging is None or not self._judging.is_deadly(path, state):
            return None
        detail = "the agent died twice while it judged this file"
        return Rejection(datatype=datatype, reason=str(Reason.TOO_COMPLEX), detail=detail)

    def _flaw(self, datatype: str, read: Read) -> Rejection | None:
        """Return why the content cannot be archived as data."""
        if not read.state.size and not read.content:
            return Rejection(datatype=datatype, reason="empty", detail="the file has no bytes")
        if read.state.size > self._rules.max_bytes:
            return _too_big(datatype, read.state.size, self._rules.max_bytes)
        if not read.whole:
            return None
        flaw = self._rules.judges[datatype](read.content.removeprefix(BOM))
        if not flaw:
            return None
        return Rejection(
            datatype=datatype, reason=str(flaw.reason), detail=flaw.detail, field=flaw.field
        )

    def _unreadable(self, path: str, exc: OSError) -> Taken:
        """Try again a few times; then say so in a row, and leave the file where it is."""
        try:
            state = FileState.of(self._files.status(path))
        except OSError:
            return Taken.SKIPPED
        if self._finished.get(path) == state:
            return Taken.SKIPPED
        tries = self._failed_reads.get(path, 0) + 1
        self._failed_reads[path] = tries
        if tries < self._rules.read_tries:
            return self._wait(path, state)
        del self._failed_reads[path]
        datatype, _, filename = path.partition("/")
        day, _ = self._place(datatype, filename)
        rejection = Rejection(
            datatype=datatype, reason="unreadable", detail=f"{exc.strerror} (tried {tries} times)"
        )
        return self._reject(path, state, day, rejection)

    def _reject(self, path: str, state: FileState, day: Day | None, rejection: Rejection) -> Taken:
        """Do with a bad file what `-bad-files` says."""
        if rejection.reason == "unreadable" or state.size > REJECT_WHOLE_BYTES:
            self.overdue.add(path)
        count = self._every_minute.due(f"{rejection.datatype} {rejection.reason}")
        if self._rules.bad_files is BadFiles.UPLOAD:
            put = self._upload_rejected(path, state, day, rejection)
            if put is not Taken.ADDED:
                return put
            self._tally.rejected[rejection.datatype, rejection.reason] += 1
        elif self._rules.bad_files is BadFiles.DELETE and rejection.reason != "unreadable":
            self._delete(path, state)
            self._tally.deleted[rejection.datatype, rejection.reason] += 1
        else:
            _remember(self._finished, path, state)
            self._tally.kept[rejection.datatype, rejection.reason] += 1
        self._tally.refuse(
            display(path),
            rejection.datatype,
            rejection.reason,
            field=rejection.field,
            detail=rejection.detail,
        )
        if count:
            log.warning(
                "file.rejected",
                file=display(path),
                reason=rejection.reason,
                field=rejection.field,
                detail=rejection.detail,
                times=count,
                bad_files=str(self._rules.bad_files),
            )
        return Taken.ADDED

    def _upload_rejected(
        self, path: str, state: FileState, day: Day | None, rejection: Rejection
    ) -> Taken:
        """Put the file into the rejected1 bundle of its day, or of today if its path has none."""
        content, digest = b"", b""
        added_us = time.time_ns() // 1000
        if rejection.reason != "unreadable":
            try:
                read = read_file(self._files, path, rejected_most(state.size))
            except OSError:
                return Taken.SKIPPED
            if read.state != state:
                return self._wait(path, state)
            content, added_us = read.content, read.at_us
            digest = content_hash(content) if state.size <= REJECT_WHOLE_BYTES else b""
        raw = rejection.raw(
            filename=display(path.partition("/")[2]),
            size=state.size,
            added_us=added_us,
            node=self._shelf.node,
            content=content,
        )
        today = Day(datetime.fromtimestamp(added_us / 1e6, UTC).date())
        entry = Entry(path, state, added_us, digest)
        put = self._shelf.add(REJECTED, day or today, entry, raw, rejection)
        if put is Put.NO_ROOM:
            return Taken.NO_ROOM
        self._pending.add(path)
        return Taken.ADDED

    def _delete(self, path: str, state: FileState) -> None:
        try:
            with self._files.directories() as directories:
                directory, name = directories.of(path)
                if FileState.of(os.stat(name, dir_fd=directory, follow_symlinks=False)) == state:
                    os.unlink(name, dir_fd=directory)
        except OSError as exc:
            log.error("file.undeletable", file=display(path), error=str(exc))


def placed(datatype: str, filename: str) -> tuple[Day | None, Rejection | None]:
    """Return the day of a path below its datatype's directory, or why it is against the rules."""
    directory, _, name = filename.rpartition("/")
    try:
        day = Day.parse(directory)
    except ValueError as exc:
        return None, Rejection(datatype=datatype, reason="path", detail=display(str(exc)))
    return day, misnamed(datatype, name)


def misnamed(datatype: str, name: str) -> Rejection | None:
    """Return why a file may not be called so."""
    try:
        names.check_file_name(name)
    except ValueError as exc:
        return Rejection(datatype=datatype, reason="name", detail=display(str(exc)))
    return None


def _remember(states: dict[str, FileState], path: str, state: FileState) -> None:
    """Remember a file's state, of so many files at the most."""
    while len(states) >= REMEMBERED_MAX:
        del states[next(iter(states))]
    states[path] = state


def _too_big(datatype: str, size: int, most: int) -> Rejection:
    detail = f"{size} bytes make a row larger than a bundle of {most}"
    return Rejection(datatype=datatype, reason="too-big", detail=detail)
