"""The intake: decide what to do with a path: archive it, reject it, or look again later.

**Invariant:** it reads and decides; it changes nothing, neither on disk nor in a bundle.  A file
that nobody closed is never rejected before it is `missed_age_s` old.
"""

from __future__ import annotations

import time
from array import array
from functools import partial
from typing import TYPE_CHECKING

from jostler.agent.contents import Contents
from jostler.agent.network import Network
from jostler.agent.paths import Paths
from jostler.agent.verdicts import (
    NOTHING,
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
    NOTED_BYTES,
    Batch,
    BatchRules,
    Confined,
    Entry,
    FileState,
    NotAFileError,
    Rejection,
    content_hash,
    one_line,
    read_batch,
    read_file,
)
from jostler.format import names
from jostler.watchdir import How

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.agent.left import LeftFiles
    from jostler.agent.rules import Rules
    from jostler.agent.verdicts import Verdict
    from jostler.bundle import InFlightBundles, Judging, ReadBatch, Room
    from jostler.bundle.file import Read
    from jostler.format.names import Day


class Intake:
    """Examines paths one at a time, in one thread.

    Args:
        rules: the rules by which it decides.
        spool: the files of the experiment.
        in_flight: knows which paths belong to bundles.
        left: knows which files were examined before and left on the disk.
        judging: records which large file is being judged; None for no record.

    Attributes:
        contents: judges the bytes of single files.
    """

    def __init__(
        self,
        rules: Rules,
        spool: Confined,
        in_flight: InFlightBundles,
        left: LeftFiles,
        judging: Judging | None = None,
    ) -> None:
        self._network = Network()
        self._rules = rules
        # One byte more than a bundle holds shows that a file is too big.
        self._most = rules.max_bytes + 1
        self._spool = spool
        self._directories = spool.directories()
        self._in_flight = in_flight
        self._left = left
        self._prefix = len(spool.root) + 1
        self._paths = Paths()
        self.contents = Contents(rules, judging)

    def begin_round(self) -> None:
        """Read the clock and open directories anew; both are then used for one round of files."""
        self._directories.close()
        self._left.look_at_clock()

    def look(self, full_path: str, how: How) -> Verdict:
        """Decide what to do with one path.

        Args:
            full_path: of a file below the spool.
            how: whether an event reported that the file was closed, or a scan found it.
        """
        path = full_path[self._prefix :]
        if owner := self._in_flight.owner(path):
            # The bundle has what was read before this close.  The clean-up finds out whether the
            # file changed since; a close is remembered, so that the new content need not wait for
            # its age.
            return Closed(path, owner) if how is How.EVENT else NOTHING
        try:
            scanned = how is How.SCAN
            read = read_file(self._directories, path, self._most, ask_writer=scanned)
        except (FileNotFoundError, NotADirectoryError, NotAFileError):
            return Gone(path, how is How.EVENT)
        except OSError as exc:
            return self._unreadable(path, exc)
        # The same state as when it was finished with: it stays on disk on purpose and is not judged
        # again.
        if self._left.finished and self._left.finished.get(path) == read.state:
            return NOTHING
        if how is How.SCAN and (verdict := self._too_young(path, read)):
            return verdict
        return self._judge(path, read, how)

    def _too_young(self, path: str, read: Read) -> Verdict | None:
        """Decide whether a file found by a scan must wait or was examined before."""
        state, left = read.state, self._left
        if read.writer:
            return Written(path, state)
        if left.doubtful and left.doubtful.get(path) == state and not left.is_missed(state):
            return Doubtful(path, state)
        if read.writer is False and not self._network.has(self._directories.of(path)[0]):
            return None  # it is closed, so it is as complete as a file whose close was reported
        if left.ages.until_settled_s(state, time.time_ns()) > 0:
            return Early(path, state, grows=False)
        return None

    # Many files at once

    def place(self, directory: str) -> tuple[str, Day] | None:
        """Return the datatype and day of an absolute directory; None if it is not a day's."""
        datatype, _, folder = directory[self._prefix :].partition("/")
        day = self._paths.day(datatype, folder)
        return (datatype, day) if day and datatype in self._rules.judges else None

    def look_at_many(
        self, directory: str, names_: list[str], how: How, room: Room
    ) -> tuple[list[str], Batch]:
        """Read and judge files that stand in line together, up to the first unusual one.

        Args:
            directory: their directory, absolute; `place` knows it.
            names_: their names in it.
            how: how they were found.
            room: what their bundle has room for.

        Returns:
            The paths below the spool of those that are to be archived, and their rows.

        Raises:
            OSError: the directory cannot be opened.
        """
        below = directory[self._prefix :]
        paths = [f"{below}/{name}" for name in names_[: names.count_file_names(names_)]]
        if not paths or self._is_any_known(paths):
            return [], Batch([], array("q"), [], [], is_cut=True)
        datatype, _, folder = below.partition("/")
        fields = self._rules.index_fields.get(datatype)
        descriptor, _ = self._directories.of(paths[0])
        read: ReadBatch = self._rules.readers.get(datatype, read_batch)
        batch = read(
            descriptor,
            names_[: len(paths)],
            BatchRules(
                head=room.head,
                folder=f"{folder}/",
                room_bytes=room.room_bytes,
                count_good=self._rules.counts.get(datatype) or partial(self._count_good, datatype),
                facts=fields.facts if fields else None,
                ask_writer=how is How.SCAN,
                settled_ns=self._left.settled_ns(),
                lease_suffices=how is How.SCAN and not self._network.has(descriptor),
            ),
        )
        return paths[: len(batch.rows)], batch

    def _is_any_known(self, paths: Sequence[str]) -> bool:
        """Return whether something is remembered of a path: then it is looked at alone."""
        left = self._left
        return self._in_flight.knows_any(paths) or not all(
            states.keys().isdisjoint(paths)
            for states in (left.finished, left.doubtful, left.unreadable, left.failed_reads)
        )

    def _count_good(self, datatype: str, documents: Sequence[bytes]) -> int:
        judge = self._rules.judges[datatype]
        return next((n for n, document in enumerate(documents) if judge(document)), len(documents))

    def bad(self, bad: Bad, how: How, writer: bool | None) -> Bad | Doubtful | Written:
        """Reject a bad file, unless it may be half-written; `writer` as in `Read`."""
        if how is How.EVENT:
            return Written(bad.path, bad.state) if self._is_written_again(bad.path) else bad
        if self._left.is_missed(bad.state) and self._is_at_rest(bad, writer):
            return bad
        return Doubtful(bad.path, bad.state)

    def _is_written_again(self, path: str) -> bool:
        """Return whether a process writes a file after the close that was reported.

        Who writes a file anew empties it first.  Its close comes later, as an event of its own.
        """
        try:
            return bool(read_file(self._directories, path, 0, ask_writer=True).writer)
        except OSError:
            return False

    def _is_at_rest(self, bad: Bad, writer: bool | None) -> bool:
        """Return whether no process writes a file, by the kernel or by its unchanged state."""
        if writer is False or self._rules.once:
            return True
        return self._left.is_unchanged(bad.path, bad.state)

    def _judge(self, path: str, read: Read, how: How) -> Verdict:
        is_back = bool(self._in_flight.vanished) and self._in_flight.has_vanished(path)
        if is_back and (verdict := self._stored_before(path, read, content_hash(read.content))):
            return verdict
        datatype, _, filename = path.partition("/")
        day, rejection = self._paths.placed(datatype, filename)
        if not rejection:
            small = read.state.size < NOTED_BYTES
            rejection = (
                self.contents.flaw(datatype, read)
                if small
                else self.contents.flaw_of_large(path, datatype, read)
            )
        if rejection:
            return self.bad(Bad(path, read.state, day, rejection), how, read.writer)
        if not read.whole or read.state.size > self._rules.max_bytes:
            return Early(path, read.state, grows=True)  # it grows while it is read: somebody writes
        assert day
        raw = one_line(read.content)
        digest = content_hash(raw)
        if is_back and (verdict := self._stored_before(path, read, digest)):
            return verdict
        facts = None
        if fields := self._rules.index_fields.get(datatype):
            facts = fields.facts(filename, raw, read.state.mtime_ns)
        entry = Entry(path, read.state, read.at_us, digest, facts)
        return Good(datatype, day, entry, raw, read.writer)

    def _stored_before(self, path: str, read: Read, digest: bytes) -> AlreadyStored | None:
        """Return what to do with a file that was stored with this hash, then was gone, and is back.

        The hash of its bytes on one line counts only for a good file: its row has no line breaks
        that could have changed.
        """
        if self._in_flight.has_vanished(path, digest):
            return AlreadyStored(Entry(path, read.state, read.at_us, digest))
        return None

    def _unreadable(self, path: str, exc: OSError) -> Verdict:
        """Retry a few times; then store a rejected1 row with the reason, and leave the file."""
        try:
            state = self.state_of(path)
        except OSError:
            return NOTHING
        if self._left.unreadable.get(path) == state or self._left.finished.get(path) == state:
            return NOTHING
        # A first failure may be an error of a network file system, or permissions that are set a
        # moment later.
        tries = self._left.failed_reads.get(path, 0) + 1
        if tries < self._rules.read_tries:
            return ReadAgain(path, state, tries)
        datatype, _, filename = path.partition("/")
        day, _ = self._paths.placed(datatype, filename)
        rejection = Rejection(
            datatype=datatype, reason="unreadable", detail=f"{exc.strerror} (tried {tries} times)"
        )
        return Bad(path, state, day, rejection)

    def state_of(self, path: str) -> FileState:
        """Return the state that a file is in.

        Raises:
            OSError: it is gone, or no file of the spool.
        """
        return FileState.of(self._spool.status(path))
