"""Give up the oldest unsent files, so that a full disk has room for new ones.

**Invariant:** a file is unlinked only after the record that lists it as given up is durable in the
journal, from which its row in rejected1 is stored whenever the bucket answers.  A file that a
bundle has, or may have stored, is never given up.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.agent.oldest import oldest
from jostler.agent.paths import placed
from jostler.bundle import (
    Entry,
    FileState,
    Record,
    Rejection,
    SealReason,
    State,
    read_file,
    unlink_in_state,
)
from jostler.format.names import REJECTED, Day, display
from jostler.format.row import DISK_LACK
from jostler.log import EveryMinute, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.agent.disk_lack import Space
    from jostler.agent.left import LeftFiles
    from jostler.agent.tally import Tally
    from jostler.bundle import (
        Confined,
        Delivery,
        InFlight,
        InFlightBundles,
        Journal,
        OpenBundles,
    )
    from jostler.bundle.confined import Directories

log = Log("jostler.disk")

FILES_MOST = 5_000
"""How many files are given up at once; their record, about 1 MB, fits into the reserve."""
RECORD_BYTES = 8 * 1024
"""The most that a record takes beside its files: its header, and a part of a block."""
RECORD_FILE_BYTES = 300
"""The most that it takes for each of its files, beside the path, which is in it twice."""


class GivingUp:
    """Belongs to the agent's thread.

    Args:
        spool: the files of the experiment.
        datatypes: whose files may go.
        wanted: returns whether a file of this name is a measurement file.
        in_flight: knows which files belong to bundles.
        left: files that were examined and left on the disk; those that stay do not go.
        open_bundles: make the bundle that lists what was given up.
        journal: where its record is written first.
        delivery: stores it.
        tally: what is counted.
        young_s: a file that changed within these seconds does not go.  A second at least is several
            ticks of the kernel's clock, so a change after the look shows in the file's state.
    """

    def __init__(
        self,
        spool: Confined,
        datatypes: Sequence[str],
        wanted: Callable[[str], bool],
        *,
        in_flight: InFlightBundles,
        left: LeftFiles,
        open_bundles: OpenBundles,
        journal: Journal,
        delivery: Delivery,
        tally: Tally,
        young_s: float,
    ) -> None:
        self._spool = spool
        self._datatypes = datatypes
        self._wanted = wanted
        self._in_flight = in_flight
        self._left = left
        self._open_bundles = open_bundles
        self._journal = journal
        self._delivery = delivery
        self._tally = tally
        self._young_ns = int(young_s * 1e9)
        # Only their heads: with all its files, each record would take a megabyte of memory for as
        # long as the bucket does not answer.
        self._unsent: deque[Record] = deque()
        self._sending: InFlight | None = None
        self._held_up: InFlight | None = None
        self._every_minute = EveryMinute()

    @property
    def unsent(self) -> int:
        """How many bundles that list files are in the journal alone."""
        return len(self._unsent)

    def give_up(self, space: Space) -> int:
        """Give up files until there is enough space, of one day and `FILES_MOST` at the most.

        Returns:
            How many were given up.
        """
        if self._held_up and self._held_up.state is State.SEALED:
            return 0
        self._held_up = None
        found = oldest(self._spool.root, self._datatypes, self._may_go, FILES_MOST)
        if not found:
            return 0
        day, _ = placed(*_split(found[0].path))
        one = self._open_bundles.apart(REJECTED, day or _today())
        # And for the record.  Else, on a disk of small files, each record could take as much as its
        # files leave, and all files would be given up for nothing.
        need_bytes = space.enough_bytes - space.free_bytes + space.of_file(RECORD_BYTES)
        with self._spool.directories() as directories:
            for file in found:
                if need_bytes <= 0:
                    break
                if self._list(one, file.path, directories, space):
                    record_bytes = RECORD_FILE_BYTES + 2 * len(file.path)
                    need_bytes -= space.of_file(max(0, file.size_bytes - record_bytes))
            return self._let_go(one, directories)

    def send(self) -> None:
        """Begin to store the next list, once the one before is stored or waits for a retry."""
        # A list that alone cannot be stored does not hold up the others.
        if self._sending and self._sending.on_its_way and not self._sending.what:
            return
        self._sending = None
        while self._unsent and not self._sending:
            head = self._unsent.popleft()
            try:
                self._sending = self._delivery.replay(self._journal.read(head))
            except (OSError, ValueError) as exc:
                log.error("journal.failed", what="read", error=str(exc), next_try_s=None)

    def _may_go(self, path: str, name: str) -> bool:
        """Return whether a file is a measurement file that no bundle has and that may be taken."""
        return (
            self._wanted(name)
            and not self._in_flight.knows_any([path])
            and not self._left.stays(path)
        )

    def _list(self, one: InFlight, path: str, directories: Directories, space: Space) -> bool:
        """Add a file's row to a list, without content; return whether it may go."""
        try:
            state, at_us, writer = _seen(directories, path)
        except OSError:
            return False  # it is gone, or cannot be read: the intake reports it
        age_ns = at_us * 1000 - max(state.mtime_ns, state.ctime_ns)
        # A time in the future says nothing of the age: such a file may go, or a wrong clock would
        # keep it for ever.
        if writer or 0 <= age_ns < self._young_ns:
            return False
        datatype, filename = _split(path)
        rejection = Rejection(
            datatype=datatype,
            reason=DISK_LACK,
            detail=f"given up unsent: {space.shown(space.free_bytes)} of the disk were free,"
            f" -min-free-disk is {space.shown(space.limit_bytes)}",
        )
        raw = rejection.raw(
            filename=display(filename),
            size=state.size,
            added_us=at_us,
            node=self._open_bundles.node,
            content=b"",
        )
        bundle = one.opened
        assert bundle
        entry = Entry(path, state, at_us, b"")
        bundle.add(entry, bundle.row(display(filename), raw), rejection)
        return True

    def _let_go(self, one: InFlight, directories: Directories) -> int:
        """Write the list to the journal, then unlink its files; return how many they were."""
        assert one.opened
        if not one.opened.files:
            return 0
        record = Record.of(one.seal(SealReason.DISK_LACK, time.monotonic()))
        for path in record.given_up:
            self._tally.given_up[path.partition("/")[0]] += 1
            self._left.taken(path)
        try:
            self._journal.write(record, surely=True)
        except OSError as exc:
            # The record may be there all the same, if only its directory could not be synced.  So
            # the list is kept like any other bundle, and its files go when it is stored.
            if count := self._every_minute.due("journal"):
                log.error("files.not_given_up", error=str(exc), times=count)
            self._held_up = one
            self._in_flight.take_in(one)
            self._delivery.start(one)
            return 0
        unlinked = sum([self._unlink(entry, directories) for entry in record.attempts[-1].entries])
        # The files are gone, so the disk has blocks for a new reserve; the record keeps the old
        # one's.
        self._journal.renew_reserve(record)
        files = len(record.attempts[-1].entries)
        if unlinked == files:
            self._unsent.append(replace(record, attempts=(), rejections={}))
        else:  # those that are still there must not be taken, nor given up again
            self._delivery.replay(record)
        return files

    def _unlink(self, entry: Entry, directories: Directories) -> bool:
        """Unlink one file that its record lists; return whether it is gone."""
        log.warning("file.given_up", file=display(entry.path), bytes=entry.state.size)
        try:
            return unlink_in_state(directories, entry.path, entry.state)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # the clean-up tries again, and logs the failure


def _split(path: str) -> tuple[str, str]:
    datatype, _, filename = path.partition("/")
    return datatype, filename


def _today() -> Day:
    return Day(datetime.now(UTC).date())


def _seen(directories: Directories, path: str) -> tuple[FileState, int, bool | None]:
    """Look at a file without reading it: its state, when that was, and whether somebody writes it.

    Raises:
        OSError: it is gone, cannot be opened, or is no regular file.
    """
    read = read_file(directories, path, 0, ask_writer=True)
    return read.state, read.at_us, read.writer
