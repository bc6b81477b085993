"""The loop: the steps that a running agent repeats, whether it runs once or until it is stopped.

**Invariant:** one thread owns intake, bundles and counts; the threads of `Uploads` return outcomes
through a queue.  While the bucket or the journal fails, no new file is read: the disk is the queue.
An unforeseen error with one file sets that file aside and does not affect others.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from jostler.agent.batching import Batching
from jostler.agent.taking import Taken
from jostler.bundle import CleanedUp, SealReason, Stored
from jostler.log import Log
from jostler.watchdir import Arrival, How

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jostler.agent.directories import Directories
    from jostler.agent.left import LeftFiles
    from jostler.agent.low_disk import LowDisk
    from jostler.agent.observe.reporter import Reporter
    from jostler.agent.rescans import Rescans
    from jostler.agent.taking import Taking
    from jostler.agent.tally import Tally
    from jostler.bundle import Delivery, Event, OpenBundles, Released
    from jostler.config import Config
    from jostler.watchdir import Arrivals

log = Log("jostler.agent")
S = TypeVar("S")
T = TypeVar("T")

TICK_S = 1.0
IDLE_TICK_S = 5.0
IDLE_AFTER_S = 2.0  # so that the last change is shown before the ticks become rare
BATCH = 500
BACKLOG = 100  # files in line; fewer are taken before compression could matter


class Loop:
    """The steps; belongs to the agent's thread.

    Args:
        config: what to do.
        arrivals: where files come from.
        taking: examines files and carries out the verdicts.
        left: the files that stay on the disk.
        open_bundles: the bundles that take rows.
        delivery: stores sealed bundles and unlinks their files.
        low_disk: watches the free space of the spool's disk.
        directories: the datatypes' directories, which are made again if they are removed.
        rescans: requests further scans.
        reporter: updates the status.
        tally: the counts.

    Attributes:
        todo: arrivals to look at next.
        no_room: memory was full when the last file was looked at.
    """

    def __init__(
        self,
        config: Config,
        arrivals: Arrivals,
        *,
        taking: Taking,
        left: LeftFiles,
        open_bundles: OpenBundles,
        delivery: Delivery,
        low_disk: LowDisk,
        directories: Directories,
        rescans: Rescans,
        reporter: Reporter,
        tally: Tally,
    ) -> None:
        self._config = config
        self._arrivals = arrivals
        self._taking = taking
        self._left = left
        self._open_bundles = open_bundles
        self._delivery = delivery
        self._low_disk = low_disk
        self._directories = directories
        self._rescans = rescans
        self._reporter = reporter
        self._tally = tally
        self._spool = f"{config.spool}/"
        self._batching = Batching()
        self._busy_s = time.monotonic()
        self.todo: deque[Arrival] = deque()
        self.no_room = False

    @property
    def fails(self) -> bool:
        """Whether the bucket or the journal, which every new bundle needs, fails now."""
        return self._delivery.fails(self._config.bucket)

    @property
    def lags(self) -> bool:
        """Whether uploads or clean-ups are so far behind that no file is read meanwhile."""
        return self._open_bundles.uploads_lag or self._delivery.cleanups_lag

    @property
    def refuses(self) -> bool:
        """Whether no file is read because the disk lacks space, until a bundle is cleaned up."""
        return self._low_disk.refuses

    @property
    def looked_at_all(self) -> bool:
        """Whether everything that a scan found was examined."""
        return not (self._arrivals.scanning or self.todo)

    @property
    def backlog(self) -> bool:
        """Whether many files wait behind the one that is looked at."""
        return len(self.todo) + self._arrivals.waiting > BACKLOG or self._arrivals.scanning

    def step(self) -> bool:
        """Do one round: outcomes, new files, due work; return whether there was anything to do."""
        # Outcomes first: they free memory and disk, and say whether reading makes sense at all.
        busy = self.deliver()
        fails = self.fails
        busy |= self._low_disk.keep(time.monotonic(), fails=fails, held_up=fails or self.lags)
        busy |= self.read()
        self._open_bundles.seal_aged()
        now_s = time.monotonic()
        if busy:
            self._busy_s = now_s
        self._rescans.ask_due(now_s, self._left)
        self._directories.keep(now_s)
        return busy

    def rest(self) -> None:
        """Wait until something arrives or is due."""
        aged_s = self._open_bundles.seal_aged()
        tick_s = IDLE_TICK_S if self._is_idle() else TICK_S
        waits_s = (tick_s, tick_s if aged_s is None else aged_s, self._delivery.next_s())
        wait_s = max(0.001, min(waits_s))
        if self.todo or self.fails or self.lags or self.refuses:
            # Nothing can be taken now: `wait` would return at once, again and again.
            self._arrivals.pause(wait_s)
        else:
            self._arrivals.wait(wait_s)

    def _is_idle(self) -> bool:
        """Return whether nothing has happened for a while, and no file waits to come of age."""
        waits = self.todo or self._left.waiting or self._left.of_age_s is not None
        return not waits and time.monotonic() - self._busy_s > IDLE_AFTER_S

    def deliver(self) -> bool:
        """Handle the outcomes of uploads and unlink some files; return whether there were any."""
        events = self._delivery.collect()
        busy = bool(events) or self._delivery.cleans_up
        for event in events:
            self._learn(event)
        for event in _guarded(_clean_up, self._delivery, _skip_file):
            self._learn(event)
        self._delivery.do_due()
        return busy

    def read(self) -> bool:
        """Read some files if uploads, memory and disk allow; return whether any."""
        if self.fails or self.lags or self.refuses:
            self._arrivals.take(0)  # keep the kernel's queue short
            return False
        if not self.todo:
            self.todo.extend(self._arrivals.take(BATCH))
        took = self.no_room = False
        self._taking.begin_round()
        while self.todo:
            if self._read_batch():
                took = True
                continue
            arrival = self.todo[0]
            taken = _guarded(self._taking.take, arrival, self._taking.set_aside)
            if taken is Taken.NO_ROOM:
                # The file stays at the head of the line and is looked at again in the next round.
                self.no_room = True
                break
            if taken is Taken.ADDED and arrival.how is How.SCAN:
                self._reporter.met(arrival.path)
            self.todo.popleft()
            took = True
        return took

    def read_ahead(self) -> bool | None:
        """Take the next files if they are good; any other one is left to `read`.

        Nothing is changed on disk and nobody but the open bundles learns of it.

        Returns:
            Whether there were any, or a scan may still find some; None if the next file is not good
            or cannot be taken now.
        """
        if self.fails or self.lags or self.refuses:
            return None
        if not self.todo:
            self.todo.extend(self._arrivals.take(BATCH))
        if not self.todo:
            return self._arrivals.scanning
        self._taking.begin_round()
        if self._read_batch():
            return True
        arrival = self.todo[0]
        if not _guarded(self._taking.take_good, arrival, _left_to_read):
            return None
        if arrival.how is How.SCAN:
            self._reporter.met(arrival.path)
        self.todo.popleft()
        return True

    def _read_batch(self) -> bool:
        """Take the files at the head of the line together; return whether any was taken."""
        run = self._batching.next(self.todo)
        if run is None:
            return False
        # An unforeseen error belongs to one file.  It comes again when that one is taken alone.
        try:
            taken = self._taking.take_batch(run)
        except Exception:  # noqa: BLE001 - as above
            taken = 0, True
        if taken is None:
            return False
        files, is_cut = taken
        self._batching.took(files, is_cut=is_cut)
        if files and run.how is How.SCAN:
            self._reporter.met(self.todo[0].path, files)
        for _ in range(files):
            self.todo.popleft()
        return files > 0

    def seal_all(self) -> None:
        """Seal every open bundle, because the agent ends."""
        self._open_bundles.seal_all(SealReason.SHUTDOWN)

    def _learn(self, event: Event) -> None:
        """Count what happened to a bundle, and examine again the files that it gave back."""
        if isinstance(event, Stored):
            self._reporter.stored(event.job)
        elif isinstance(event, CleanedUp):
            self._count(event)
        self._look_again(event.released)

    def _count(self, event: CleanedUp) -> None:
        datatype = event.bundle.header.name.datatype
        if event.first:
            self._tally.archived[datatype] += len(event.job.record.attempts[-1].entries)
            self._tally.bundles[datatype] += 1
            self._tally.object_bytes[datatype] += event.job.object_bytes
        self._tally.changed[datatype] += len(event.released.changed)

    def _look_again(self, released: Released) -> None:
        closed = set(released.closed)
        self._arrive(released.closed, How.EVENT)
        # Whoever changed these files may still have them open, so they are taken like those of a
        # scan.
        self._arrive((path for path in released.changed if path not in closed), How.SCAN)

    def _arrive(self, paths: Iterable[str], how: How) -> None:
        self.todo.extend(Arrival(self._spool + path, how) for path in paths)


def _clean_up(delivery: Delivery) -> list[Event]:
    return delivery.clean_up()


def _skip_file(delivery: Delivery, error: Exception) -> list[Event]:
    delivery.skip_file(error)
    return []


def _left_to_read(_arrival: Arrival, _error: Exception) -> bool:
    return False


def _guarded(do: Callable[[S], T], what: S, otherwise: Callable[[S, Exception], T]) -> T:
    """Process one file or bundle; after an unforeseen error call `otherwise`, which sets it aside.

    Only here does the agent continue after any exception: each file and bundle comes from outside,
    and none may keep the others waiting.
    """
    try:
        return do(what)
    except Exception as exc:
        log.exception("agent.fault")
        return otherwise(what, exc)
