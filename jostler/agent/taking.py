"""Carry out what the intake decided: put a file into a bundle, reject it, or leave it.

**Invariant:** nothing is deleted here but under `-bad-files delete`, and then only what was just
read, and files that are stored already.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING

from jostler.agent.verdicts import (
    AlreadyStored,
    Bad,
    Closed,
    Doubtful,
    Early,
    Gone,
    Good,
    ReadAgain,
    Written,
)
from jostler.bundle import (
    REJECT_WHOLE_BYTES,
    Entry,
    FileState,
    Put,
    content_hash,
    read_file,
    rejected_most,
    unlink_in_state,
    unlink_stored,
)
from jostler.bundle.rejections import too_big
from jostler.config import BadFiles
from jostler.format.names import REJECTED, Day, display
from jostler.log import EveryMinute, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostler.agent.batching import Run
    from jostler.agent.intake import Intake
    from jostler.agent.left import LeftFiles
    from jostler.agent.tally import Tally
    from jostler.agent.verdicts import Verdict
    from jostler.bundle import Confined, Facts, OpenBundles
    from jostler.bundle.confined import Directories
    from jostler.bundle.index_fields import IndexFields
    from jostler.watchdir import Arrival, How

log = Log("jostler.intake")


class Taken(Enum):
    """The result of taking a path."""

    ADDED = 1
    SKIPPED = 2
    WAITS = 3
    NO_ROOM = 4


class Taking:
    """Belongs to the agent's thread.

    Args:
        intake: that decides.
        open_bundles: that take rows.
        left: files that stay on the disk.
        tally: what is counted.
        spool: the files of the experiment.
        bad_files: what becomes of bad ones.
        index_fields: for each datatype with `-index-field`, what fills its index columns.
    """

    def __init__(
        self,
        intake: Intake,
        open_bundles: OpenBundles,
        left: LeftFiles,
        tally: Tally,
        *,
        spool: Confined,
        bad_files: BadFiles,
        index_fields: Mapping[str, IndexFields] | None = None,
    ) -> None:
        self._index_fields = index_fields or {}
        self._intake = intake
        self._open_bundles = open_bundles
        self._left = left
        self._tally = tally
        self._spool = spool
        self._bad_files = bad_files
        self._every_minute = EveryMinute()

    def begin_round(self) -> None:
        """Begin with some files that came together."""
        self._intake.begin_round()

    def take(self, arrival: Arrival) -> Taken:
        """Look at one path and do what is to be done with it."""
        path, how = arrival
        verdict = self._intake.look(path, how)
        if type(verdict) is Good:  # nearly all are
            return self._archive(verdict, how)
        return self.carry_out(verdict, how)

    def take_good(self, arrival: Arrival) -> bool:
        """Archive a file if it is good and there is room; else do nothing and return False."""
        path, how = arrival
        good = self._intake.look(path, how)
        if type(good) is not Good:
            return False
        if self._open_bundles.add(good.datatype, good.day, good.entry, good.raw) is not Put.ADDED:
            return False
        self._archived(good, how)
        return True

    def take_batch(self, run: Run) -> tuple[int, bool] | None:
        """Archive files that stand in line together, up to the first unusual one.

        Returns:
            How many were archived, and whether the next one is to be taken alone.  None if no
            bundle is open that has room for them.
        """
        place = self._intake.place(run.directory)
        room = place and self._open_bundles.room(*place, len(run.names))
        if not place or not room:
            return None
        try:
            paths, batch = self._intake.look_at_many(run.directory, run.names, run.how, room)
        except OSError:
            return 0, True
        if not paths:
            return 0, True
        datatype, day = place
        self._open_bundles.add_batch(datatype, day, paths, batch)
        self._left.taken_many(paths)
        tally, sizes = self._tally, batch.numbers[1::5]
        tally.taken[datatype] += len(paths)
        tally.file_bytes[datatype] += sum(sizes)
        for facts in batch.facts:
            self._count_nulls(datatype, facts)
        if log.verbose:
            for path, size in zip(paths, sizes, strict=True):
                log.debug("file.taken", file=path, bytes=size, how=str(run.how))
        return len(paths), batch.is_cut

    def carry_out(self, verdict: Verdict, how: How) -> Taken:
        """Do what the intake decided."""
        if isinstance(verdict, Good):
            return self._archive(verdict, how)
        if isinstance(verdict, Bad):
            return self._reject(verdict)
        return self._leave(verdict)

    def set_aside(self, arrival: Arrival, error: Exception) -> Taken:
        """Leave a file alone after an unforeseen error with it."""
        path = arrival.path.removeprefix(f"{self._spool.root}/")
        log.error("file.set_aside", file=display(path), error=f"{type(error).__name__}: {error}")
        try:
            self._left.finish(path, FileState.of(self._spool.status(path)))
        except (OSError, ValueError):
            return Taken.SKIPPED
        self._left.overdue.add(path)
        self._tally.kept[path.partition("/")[0], "unforeseen"] += 1
        return Taken.SKIPPED

    def _leave(self, verdict: Verdict) -> Taken:
        left = self._left
        match verdict:
            case Closed(path, bundle):
                bundle.closed.add(path)
            case Gone(path, announced):
                left.gone(path)
                if announced:
                    self._tally.vanished[path.partition("/")[0]] += 1
            case Written(path, state):
                left.written(path, state)
                return Taken.WAITS
            case AlreadyStored(entry):
                self._unlink(entry.path, lambda directories: unlink_stored(directories, entry))
            case Doubtful(path, state):
                left.doubt(path, state)
                return Taken.WAITS
            case Early(path, state, grows):
                left.wait(path, state, late=grows)
                return Taken.WAITS
            case ReadAgain(path, state, tries):
                left.failed_reads[path] = tries
                left.wait(path, state, late=True)
                return Taken.WAITS
        return Taken.SKIPPED

    def _archive(self, good: Good, how: How) -> Taken:
        datatype, day, entry, raw, writer = good
        put = self._open_bundles.add(datatype, day, entry, raw)
        if put is Put.NO_ROOM:
            return Taken.NO_ROOM
        size = entry.state.size
        if put is Put.TOO_BIG:
            rejection = too_big(datatype, size, self._open_bundles.limits.max_bytes)
            bad = self._intake.bad(Bad(entry.path, entry.state, day, rejection), how, writer)
            return self.carry_out(bad, how)
        self._archived(good, how)
        return Taken.ADDED

    def _archived(self, good: Good, how: How) -> None:
        datatype, entry = good.datatype, good.entry
        self._left.taken(entry.path)
        tally = self._tally
        tally.taken[datatype] += 1
        tally.file_bytes[datatype] += entry.state.size
        if entry.facts:
            self._count_nulls(datatype, entry.facts)
        if log.verbose:
            log.debug("file.taken", file=entry.path, bytes=entry.state.size, how=str(how))

    def _count_nulls(self, datatype: str, facts: Facts) -> None:
        """Count the index columns that a flag was to fill for a file, and that are null."""
        for column in self._index_fields[datatype].missing(facts):
            self._tally.index_nulls[datatype, column] += 1

    def _reject(self, bad: Bad) -> Taken:
        """Do with a bad file what `-bad-files` says."""
        path, state, _, rejection = bad
        why = rejection.datatype, rejection.reason
        if self._bad_files is BadFiles.UPLOAD:
            put = self._upload(bad)
            if put is not Taken.ADDED:
                return put
            self._tally.rejected[why] += 1
        # An unreadable file may be good: what cannot be read is not deleted.
        elif self._bad_files is BadFiles.DELETE and rejection.reason != "unreadable":
            # Only in the state that was judged: a file that changed since then is another one.
            self._unlink(path, lambda directories: unlink_in_state(directories, path, state))
            self._tally.deleted[why] += 1
        else:
            self._left.finish(path, state, unreadable=rejection.reason == "unreadable")
            self._tally.kept[why] += 1
        if rejection.reason == "unreadable" or state.size > REJECT_WHOLE_BYTES:
            self._left.overdue.add(path)
        self._left.failed_reads.pop(path, None)
        self._left.doubtful.pop(path, None)  # a scan may have met it before the event of its close
        self._report(bad)
        return Taken.ADDED

    def _report(self, bad: Bad) -> None:
        rejection = bad.rejection
        self._tally.refuse(
            display(bad.path),
            rejection.datatype,
            rejection.reason,
            field=rejection.field,
            detail=rejection.detail,
        )
        if count := self._every_minute.due(f"{rejection.datatype} {rejection.reason}"):
            log.warning(
                "file.rejected",
                file=display(bad.path),
                reason=rejection.reason,
                field=rejection.field,
                detail=rejection.detail,
                times=count,
                bad_files=str(self._bad_files),
            )

    def _upload(self, bad: Bad) -> Taken:
        """Put the file into the rejected1 bundle of its day, or of today if its path has none."""
        path, state, day, rejection = bad
        content, digest = b"", b""
        added_us = time.time_ns() // 1000
        if rejection.reason != "unreadable":
            try:
                read = read_file(self._spool, path, rejected_most(state.size))
            except OSError:
                return Taken.SKIPPED
            # It changed since it was judged: the reason may not hold for the bytes that are there
            # now.
            if read.state != state:
                self._left.wait(path, state, late=True)
                return Taken.WAITS
            content, added_us = read.content, read.at_us
            # Without a hash the clean-up keeps the file: its row has only the first part of the
            # content.
            digest = content_hash(content) if state.size <= REJECT_WHOLE_BYTES else b""
        raw = rejection.raw(
            filename=display(path.partition("/")[2]),
            size=state.size,
            added_us=added_us,
            node=self._open_bundles.node,
            content=content,
        )
        today = Day(datetime.fromtimestamp(added_us / 1e6, UTC).date())
        entry = Entry(path, state, added_us, digest)
        put = self._open_bundles.add(REJECTED, day or today, entry, raw, rejection)
        return Taken.NO_ROOM if put is Put.NO_ROOM else Taken.ADDED

    def _unlink(self, path: str, unlink: Callable[[Directories], object]) -> None:
        try:
            with self._spool.directories() as directories:
                unlink(directories)
        except OSError as exc:
            log.error("file.undeletable", file=display(path), error=str(exc))
