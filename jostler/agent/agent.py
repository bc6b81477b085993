"""The agent: start, recover, loop, drain, stop.

**Invariant:** one thread owns intake, shelf and tally; the threads of `Uploads` hand outcomes back
through a queue.  While uploads fail nothing new is read: the disk is the queue.

Signals, argv and the exit status belong to `jostler.cli.main`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jostler import build
from jostler.agent.directories import Directories
from jostler.agent.intake import READ_TRIES, Intake, Rules, Taken
from jostler.agent.observe.reporter import Reporter
from jostler.agent.observe.snapshot import Now, opened
from jostler.agent.observe.status import Status
from jostler.agent.observe.survey import Survey
from jostler.agent.rescans import Rescans
from jostler.agent.start import Meanwhile, await_judges, await_lock, stamp
from jostler.agent.tally import Tally
from jostler.agent.why.live import Questions, Remembered, reply
from jostler.agent.why.spool import Doer
from jostler.bundle import (
    Backoff,
    Bundle,
    Cleanup,
    Commit,
    Confined,
    Crash,
    EveryMinute,
    Journal,
    Judging,
    OpenBundles,
    Outcome,
    Record,
    SealReason,
    Stored,
    Tries,
    Uploads,
)
from jostler.config import Mode
from jostler.log import Log
from jostler.storage import Storage, open_storage
from jostler.watchdir import Arrival, How

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.agent.start import Judges
    from jostler.config import Config
    from jostler.schema import Fields
    from jostler.watchdir import Arrivals

log = Log("jostler.agent")

TICK_S = 1.0
BATCH = 500
SWEEP_BATCH = 2 * BATCH  # faster than files are read, so that stored bundles do not pile up
LATER_S = 60.0


@dataclass(frozen=True, slots=True)
class Later:
    """A job to carry out again; monotonic seconds."""

    due_s: float
    job: Bundle | Record | Cleanup


class Agent:
    """One run, from the first look at the bucket to the last unlinked file.

    Args:
        config: what to do.
        tables: table schemas by datatype, jostler's own included.
        arrivals: where files come from.
        stop: set to stop taking files and drain.
        abort: set to end at once.

    Attributes:
        status: what it shows of itself; for other threads.
    """

    def __init__(
        self,
        config: Config,
        tables: Mapping[str, Fields],
        arrivals: Arrivals,
        *,
        stop: threading.Event,
        abort: threading.Event,
    ) -> None:
        self.config = config
        self.tally = Tally()
        self._tables = tables
        self._arrivals = arrivals
        self._stop = stop
        self._abort = abort
        self._journal = Journal(config.state_dir, config.old_state_dir)
        self._storages: dict[str, Storage] = {}
        self._storages_lock = threading.Lock()
        self._spool = Confined(str(config.spool))
        self._directories = Directories(config)
        self.questions = Questions(arrivals.wake)
        self.status = Status(config, self._why)
        self._reporter = Reporter(self.status, self.tally)
        self._quit_trying = threading.Event()
        self._tries = Tries(Backoff(), self._quit_trying)
        self._shelf = OpenBundles(
            stamp(config),
            config.limits,
            memory_max=config.memory_max,
            sealed=self._upload,
            monotonic_s=time.monotonic,
            now=lambda: datetime.now(UTC),
        )
        self._uploads: Uploads | None = None
        self._intake: Intake | None = None
        self._held: dict[str, int] = {}
        self._later: list[Later] = []
        self._sweeps: deque[Cleanup] = deque()
        self._every_minute = EveryMinute()
        self._counted: set[str] = set()
        self._failing_since_s: float | None = None
        self._todo: deque[Arrival] = deque()
        self._rescans = Rescans(config, arrivals)
        self._no_room = False
        self._scanned = False

    def run(self) -> bool:
        """Move files from the spool to the bucket until told to stop, then upload what is open.

        Returns:
            Whether everything that was taken is stored and, with `-once`, nothing that should
            have gone is left.
        """
        self._directories.make()
        if self.config.listen:
            self._survey()
        meanwhile = Meanwhile(
            stop=self._stop,
            turn=self._turn,
            wake=self._arrivals.wake,
            stats=self.status.troubles,
        )
        self._reporter.waits_for("its state directory, which another agent uses")
        lock = await_lock(self.config, self._journal, meanwhile)
        if lock is None:
            return self._stop.is_set()
        with lock:
            self._reporter.waits_for("the bucket to answer for the table schemas")
            judges = await_judges(self.config, self._tables, self._storage, meanwhile)
            if judges is None:
                return True  # stopped before anything was taken
            self._start(judges)
            self._recover()
            self._reporter.waits_for("")
            self._rescans.begin(time.monotonic())
            while not (self._stop.is_set() or self._finished() or self._is_stuck()):
                self._step()
            return self._drain()

    # Start

    def _turn(self, seconds: float) -> None:
        """Notice what arrives and show how things are, while the agent cannot take files yet."""
        self._reporter.turned(self._now)
        self._arrivals.pause(seconds)

    def _start(self, judges: Judges) -> None:
        config = self.config
        rules = Rules(
            spool=str(config.spool),
            judges=judges,
            max_bytes=config.limits.max_bytes,
            settle_age_s=config.settle_age_s,
            missed_age_s=config.missed_age_s,
            bad_files=config.bad_files,
            read_tries=1 if config.mode is Mode.ONCE else READ_TRIES,
            once=config.mode is Mode.ONCE,
        )
        judging = Judging(config.state_dir / "judging", self._spool)
        self._intake = Intake(rules, self._spool, self._shelf, self.tally, judging)
        commit = Commit(
            self._storage, self._journal, self._spool, self._tries, self.status.troubles
        )
        self._uploads = Uploads(
            commit,
            self._tries,
            self._quit_trying,
            threads=config.upload_concurrency,
            wake=self._arrivals.wake,
        )
        log.info(
            "agent.started",
            bucket=config.bucket,
            node=config.node,
            experiment=config.place.experiment,
            datatypes=[datatype.name for datatype in config.datatypes],
            version=build.version(),
            commit=build.commit(),
            mode=str(config.mode),
        )

    def _recover(self) -> None:
        """Go on with what an earlier process sealed.  Watches already exist: nothing is missed."""
        assert self._intake
        records, unreadable = self._journal.load()
        for path, reason in unreadable:
            log.error(
                "journal.unreadable",
                file=str(path),
                reason=reason,
                next="its files are taken again; the loader drops what was stored twice",
            )
        for record in records:
            self._intake.hold(record.paths)
            if reason := record.foreign(self.config.bucket, self.config.place):
                log.error(
                    "journal.foreign",
                    bundle=str(record.header.name),
                    reason=reason,
                    files=len(record.paths),
                    next="the record and its files are left as they are",
                    hint="start once with that bucket, or remove the record: its files start anew",
                )
                continue
            self._reporter.replayed(record)
            self._put(record)
        if records:
            log.info("journal.replayed", entries=len(records))

    # Loop

    def _step(self) -> None:
        """Do one round: outcomes, new files, what is due; wait if there was nothing to do."""
        assert self._uploads
        self.questions.answer(self._remember)
        self._reporter.turned(self._now)
        busy = self._collect()
        busy |= self._sweep()
        busy |= self._read()
        now_s = time.monotonic()
        next_age_s = self._shelf.seal_aged()
        self._do_due(now_s)
        if not busy and not self._finished():
            wait_s = max(0.001, min(TICK_S, TICK_S if next_age_s is None else next_age_s))
            if self._todo or self._uploads.failing:
                self._arrivals.pause(wait_s)
            else:
                self._arrivals.wait(wait_s)

    def _read(self) -> bool:
        """Take some files, unless uploads fail or memory is full; say whether any was taken."""
        assert self._intake
        assert self._uploads
        if self._uploads.failing:
            self._arrivals.take(0)  # keep the kernel's queue short
            return False
        if not self._todo:
            self._todo.extend(self._arrivals.take(BATCH))
        took = self._no_room = False
        while self._todo:
            path, how = self._todo[0]
            taken = self._intake.take(path, how)
            if taken is Taken.NO_ROOM:
                self._no_room = True
                break
            if taken is Taken.ADDED and how is How.SCAN:
                self._reporter.met(path)
            self._todo.popleft()
            took = True
        return took

    def _collect(self) -> bool:
        """Learn what the uploads have done; say whether anything came."""
        assert self._uploads
        outcomes = self._uploads.take()
        for outcome in outcomes:
            if isinstance(outcome, Crash):
                self._later.append(Later(time.monotonic() + LATER_S, outcome.job))
            elif isinstance(outcome, Stored):
                name = str(outcome.record.header.name)
                self._shelf.release(self._held.pop(name, 0))
                if name not in self._counted:
                    self._reporter.stored(outcome)
                self._sweeps.append(
                    Cleanup(outcome, self._spool, self._journal, self._every_minute)
                )
            else:
                name = str(outcome.header.name)
                self._shelf.release(self._held.pop(name, 0))
                self._reporter.given_up(name)
                self._learn(outcome)
        return bool(outcomes)

    def _sweep(self) -> bool:
        """Unlink some files of stored bundles; say whether there were any."""
        if not self._sweeps:
            return False
        try:
            outcome = self._sweeps[0].step(SWEEP_BATCH)
        except OSError as exc:
            log.error("journal.failed", what="remove", error=str(exc), next_try_s=TICK_S)
            return False
        if outcome:
            self._sweeps.popleft()
            self._learn(outcome)
        return True

    def _learn(self, outcome: Outcome) -> None:
        assert self._intake
        datatype, name = outcome.header.name.datatype, str(outcome.header.name)
        if outcome.stored and name not in self._counted:
            self.tally.archived[datatype] += outcome.files
            self.tally.bundles[datatype] += 1
            self.tally.object_bytes[datatype] += outcome.object_bytes
            self.tally.changed[datatype] += len(outcome.again)
        self._counted.discard(name)
        if outcome.undeletable:
            self._counted.add(name)  # what comes of it later was counted now
            # Their paths stay pending, so that no scan takes them again.
            self._later.append(Later(time.monotonic() + LATER_S, outcome.undeletable))
        closed_again = self._intake.release(outcome.gone | outcome.again, outcome.kept)
        spool = f"{self.config.spool}/"
        events = set(closed_again)
        self._todo.extend(Arrival(spool + path, How.EVENT) for path in closed_again)
        self._todo.extend(
            Arrival(spool + path, How.SCAN) for path in outcome.again if path not in events
        )

    def _do_due(self, now_s: float) -> None:
        """Start the scans and the second tries that are due."""
        assert self._intake
        due = [later for later in self._later if later.due_s <= now_s]
        if due:
            self._later = [later for later in self._later if later.due_s > now_s]
            for later in due:
                if isinstance(later.job, Cleanup):
                    self._sweeps.append(later.job)
                else:
                    self._put(later.job)
        self._rescans.ask_due(now_s, self._intake)
        self._directories.keep(now_s)

    def _upload(self, bundle: Bundle) -> None:
        self._held[str(bundle.header.name)] = bundle.held_bytes
        self._reporter.sealed(bundle)
        self._put(bundle)

    def _put(self, job: Bundle | Record) -> None:
        assert self._uploads
        self._uploads.put(job)

    def _storage(self, url: str) -> Storage:
        """Open a bucket once, from whichever thread asks first."""
        with self._storages_lock:
            if url not in self._storages:
                self._storages[url] = open_storage(url)
            return self._storages[url]

    # What it shows

    def _survey(self) -> None:
        """Let the disk itself say what waits."""

        def is_held(path: str) -> bool:
            return self._intake is not None and self._intake.is_held(path)

        config = self.config
        self.status.survey = Survey(
            str(config.spool),
            [datatype.name for datatype in config.datatypes],
            lambda name: name.endswith(config.extensions),
            is_held,
        )
        self.status.survey.start()

    def _now(self) -> Now:
        """Say how things are at this moment."""
        if self._intake:
            self._scanned |= not (self._arrivals.scanning or self._todo)
        return Now(
            open=tuple(map(opened, self._shelf.open_bundles)),
            held_bytes=self._shelf.held_bytes,
            queue_files=self._arrivals.waiting + len(self._todo),
            overdue_files=len(self._intake.overdue) if self._intake else 0,
            undeletable_bundles=len(self._counted),
            holds_back=self._holds_back(),
            scanning=self._arrivals.scanning,
            scanned=self._scanned,
            source=self._arrivals.source,
            degraded=self._arrivals.degraded,
            counts=self._arrivals.counts,
        )

    def _remember(self) -> Remembered:
        """Copy what is in memory of files, for somebody who asks for one."""
        assert self._intake
        assert self._uploads
        doer = Doer(
            runs=True, holds_back=self._holds_back(), scan=self._rescans.next(time.monotonic())
        )
        return Remembered(
            doer=doer,
            bundles=tuple((bundle, bundle.files) for bundle in self._shelf.open_bundles),
            limits=self._shelf.limits,
            intake=self._intake,
            paths=self._intake.paths(),
            fared=self.status.troubles.fared(),
        )

    def _why(self, name: str) -> dict[str, Any]:
        """Say where a file is; for any thread."""
        return reply(self.config, self.questions, name, waits_for=self.status.waits_for)

    def _holds_back(self) -> str:
        """Say why no file is read at the moment; nothing if files are read."""
        if not self._uploads:
            return f"the agent waits for {self.status.waits_for}"
        if self._stop.is_set():
            return "the agent is stopping"
        if self._uploads.failing:
            return "uploads fail, and until they succeed no new file is read"
        if self._no_room:
            held = f"{self._shelf.held_bytes} of {self.config.memory_max} bytes"
            return f"memory is full ({held}), and until a bundle is stored no new file is read"
        return ""

    # Drain

    def _is_stuck(self) -> bool:
        """With -once: whether uploads have failed for longer than the shutdown may take."""
        assert self._uploads
        if not self._uploads.failing:
            self._failing_since_s = None
        elif self._failing_since_s is None:
            self._failing_since_s = time.monotonic()
        elif self.config.mode is Mode.ONCE:
            return time.monotonic() - self._failing_since_s >= self.config.flush_timeout_s
        return False

    def _finished(self) -> bool:
        """With -once: whether everything there was has been looked at."""
        if self.config.mode is not Mode.ONCE:
            return False
        return not (self._arrivals.scanning or self._todo)

    def _drain(self) -> bool:
        """Seal what is open and upload until it is done or the time is up."""
        assert self._uploads
        assert self._intake
        started_s = time.monotonic()
        log.info("agent.stopping", pending=self._intake.pending)
        self._shelf.seal_all(SealReason.SHUTDOWN)
        while (self._uploads.pending or self._sweeps) and not self._is_over(started_s):
            self.questions.answer(self._remember)
            self._reporter.turned(self._now)
            if self._collect() | self._sweep():
                if self.config.mode is Mode.ONCE and not self._stop.is_set():
                    self._read_leftovers()
                started_s = time.monotonic() if self.config.mode is Mode.ONCE else started_s
            else:
                self._arrivals.wait(0.1)
        ended = self._uploads.close(0.0 if self._abort.is_set() else 1.0)
        left = self._intake.pending
        done = ended and not left and not self._must_tell()
        log.info("agent.stopped", complete=done, pending=left, **self.tally.totals())
        return done

    def _read_leftovers(self) -> None:
        """With -once: take what a commit gave back, so that nothing which should go is left."""
        while self._todo and self._read():
            pass
        self._shelf.seal_all(SealReason.SHUTDOWN)

    def _must_tell(self) -> bool:
        """With -once: whether a file is left that should have gone."""
        assert self._intake
        left = self._todo or self._later or self._intake.overdue or self._arrivals.scanning
        return self.config.mode is Mode.ONCE and bool(left)

    def _is_over(self, started_s: float) -> bool:
        return self._abort.is_set() or self._gives_up(started_s)

    def _gives_up(self, started_s: float) -> bool:
        """Whether the shutdown's time is up; with -once, whether so long nothing succeeded."""
        if self.config.mode is not Mode.ONCE and not self._stop.is_set():
            return False
        return time.monotonic() - started_s >= self.config.flush_timeout_s
