"""The agent: start, recover, loop, drain, stop.

**Invariant:** everything is built before the first file is looked at, and no file is looked at
before the agent has its state directory and the bucket's table schemas.

Signals, argv and the exit status belong to `jostler.cli.main`.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jostler import build
from jostler.agent.ages import Ages
from jostler.agent.directories import Directories
from jostler.agent.intake import READ_TRIES, Intake, Rules
from jostler.agent.left import LeftFiles
from jostler.agent.loop import Loop
from jostler.agent.observe.reporter import Reporter
from jostler.agent.observe.snapshot import Now, opened
from jostler.agent.observe.status import Status
from jostler.agent.observe.survey import Survey
from jostler.agent.rescans import Rescans
from jostler.agent.runners import Daemon, Once
from jostler.agent.start import Meanwhile, await_lock, await_schemas, index_fields, stamp
from jostler.agent.taking import Taking
from jostler.agent.tally import Tally
from jostler.agent.why.questions import Questions
from jostler.bundle import (
    Bundle,
    Commit,
    Confined,
    Delivery,
    InFlight,
    InFlightBundles,
    Journal,
    Judging,
    OpenBundles,
    Uploads,
)
from jostler.config import Mode
from jostler.log import Log
from jostler.schema import native
from jostler.storage import Storage, open_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jostler.agent.why.live import Remembered
    from jostler.bundle import ReadBatch, Record
    from jostler.config import Config
    from jostler.schema import Fields, Flaw
    from jostler.watchdir import Arrivals

log = Log("jostler.agent")

KEPT_FILE = "kept"


class Agent:
    """One run, from the first look at the bucket to the last unlinked file.

    Args:
        config: what to do.
        tables: table schemas by datatype, jostler's own included.
        arrivals: where files come from.
        stop: set to stop taking files and drain.
        abort: set to end at once.

    Raises:
        ConfigError: `-native` requires a module that cannot be used.

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
        self._native = native.find(config.native)
        self._tables = tables
        self._arrivals = arrivals
        self._stop = stop
        self._abort = abort
        self._tally = Tally()
        self._directories = Directories(config)
        self._spool = Confined(str(config.spool))
        self._journal = Journal(config.state_dir, config.old_state_dir)
        self._buckets = Buckets()
        self._questions = Questions(arrivals.wake)
        self._judges: dict[str, Callable[[bytes], Flaw | None]] = {}
        self._counts: dict[str, Callable[[Sequence[bytes]], int]] = {}
        self._readers: dict[str, ReadBatch] = {}
        self._schemas: dict[str, str] = {}
        self._index_fields = index_fields(config)
        self._in_flight = InFlightBundles()
        ages = Ages(config.settle_age_s, config.missed_age_s)
        self._left = LeftFiles(ages, config.state_dir / KEPT_FILE)
        self.status = Status(config, self._why, self._native)
        self._reporter = Reporter(self.status, self._tally, self._in_flight)
        self._uploads = Uploads(
            Commit(self._buckets.open, self._journal, self._spool, self.status.upload_stats),
            threads=config.upload_concurrency,
            wake=arrivals.wake,
        )
        self._delivery = Delivery(
            self._in_flight,
            self._uploads,
            self._journal,
            self._spool,
            self.status.upload_stats,
            keep=self._left.keep,
        )
        self._open_bundles = OpenBundles(
            stamp(config, self._schemas),
            config.limits,
            self._in_flight,
            memory_max=config.memory_max,
            sealed=self._sealed,
            monotonic_s=time.monotonic,
            now=lambda: datetime.now(UTC),
            backlog=lambda: self._loop.backlog,
        )
        judging = Judging(config.state_dir / "judging", self._spool)
        self._intake = Intake(self._rules(), self._spool, self._in_flight, self._left, judging)
        self._rescans = Rescans(config, arrivals)
        self._loop = Loop(
            config,
            arrivals,
            taking=Taking(
                self._intake,
                self._open_bundles,
                self._left,
                self._tally,
                spool=self._spool,
                bad_files=config.bad_files,
                index_fields=self._index_fields,
            ),
            left=self._left,
            open_bundles=self._open_bundles,
            delivery=self._delivery,
            directories=self._directories,
            rescans=self._rescans,
            reporter=self._reporter,
            tally=self._tally,
        )
        self._scanned = False

    def _rules(self) -> Rules:
        return Rules(
            judges=self._judges,
            index_fields=self._index_fields,
            counts=self._counts,
            readers=self._readers,
            max_bytes=self.config.limits.max_bytes,
            read_tries=1 if self.config.mode is Mode.ONCE else READ_TRIES,
            once=self.config.mode is Mode.ONCE,
        )

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
            stats=self.status.upload_stats,
        )
        self._reporter.waits_for("its state directory, which another agent uses")
        lock = await_lock(self.config, self._journal, meanwhile)
        if lock is None:
            return self._stop.is_set()
        with lock:
            self._reporter.waits_for("the bucket to answer for the table schemas")
            agreed = await_schemas(
                self.config, self._tables, self._buckets.open, meanwhile, self._native
            )
            if agreed is None:
                return True  # stopped before anything was taken
            self._judges.update(agreed.judges)
            self._counts.update(agreed.counts)
            self._readers.update(agreed.readers)
            self._schemas.update(agreed.kept)
            self._say_started()
            self._recover()
            self._reporter.waits_for("")
            self._rescans.begin(time.monotonic())
            runner = (Once if self.config.mode is Mode.ONCE else Daemon)(
                self.config, self._loop, self._stop, self._abort, self._show
            )
            runner.run()
            log.info("agent.stopping", pending=self._in_flight.files)
            runner.drain(self._delivery, self._arrivals)
            return self._end(leaves_nothing=runner.leaves_nothing(self._delivery, self._left))

    # Start

    def _say_started(self) -> None:
        config = self.config
        log.info(
            "agent.started",
            bucket=config.bucket,
            node=config.node,
            experiment=config.place.experiment,
            datatypes=[datatype.name for datatype in config.datatypes],
            version=build.version(),
            commit=build.commit(),
            mode=str(config.mode),
            native=self._native.version,
        )
        self._say_native()

    def _say_native(self) -> None:
        """Log why the native module is not used although it may be."""
        why, then = self._native.why_not, "files are judged in Python, which is slower"
        if self._native.is_absent:
            log.info("native.unused", why=why, next=then)
        elif why:
            log.warning("native.unused", why=why, next=then)

    def _recover(self) -> None:
        """Go on with what an earlier process sealed.  Watches already exist: nothing is missed."""
        self._left.load(self._intake.state_of)
        for gone, digest in self._journal.vanished().items():
            self._in_flight.remember_vanished(gone, digest)
        records, unreadable = self._journal.load()
        for path, reason in unreadable:
            log.error(
                "journal.unreadable",
                file=str(path),
                reason=reason,
                next="its files are taken again; the loader drops what was stored twice",
            )
        for record in records:
            if reason := record.foreign(self.config.bucket, self.config.place):
                self._leave(record, reason)
                continue
            self._delivery.replay(record)
            self._tally.replayed += 1
        if records:
            log.info("journal.replayed", entries=len(records))

    def _leave(self, record: Record, reason: str) -> None:
        """Tell of a record that is for another bucket, and leave it and its files alone."""
        self._in_flight.leave(record, time.monotonic())
        log.error(
            "journal.foreign",
            bundle=str(record.header.name),
            reason=reason,
            files=len(record.paths),
            next="the record and its files are left as they are",
            hint="start once with that bucket, or remove the record: its files start anew",
        )

    def _sealed(self, one: InFlight, _bundle: Bundle) -> None:
        self._reporter.sealed(one)
        self._delivery.start(one)

    def _end(self, *, leaves_nothing: bool) -> bool:
        ended = self._uploads.close(0.0 if self._abort.is_set() else 1.0)
        left = self._in_flight.files
        done = ended and not left and leaves_nothing
        log.info("agent.stopped", complete=done, pending=left, **self._tally.totals())
        return done

    # What it shows

    def _turn(self, seconds: float) -> None:
        """Notice what arrives and show how things are, while the agent cannot take files yet."""
        self._reporter.turned(self._now)
        self._arrivals.pause(seconds)

    def _show(self) -> None:
        """Answer those who ask and show how things are, between two rounds of the loop."""
        self._questions.answer(self._remember)
        self._reporter.turned(self._now)

    def _survey(self) -> None:
        """Let the disk itself say what waits."""
        config = self.config
        self.status.survey = Survey(
            str(config.spool),
            [datatype.name for datatype in config.datatypes],
            lambda name: name.endswith(config.extensions),
            lambda path: self._in_flight.owns(path) or self._left.stays(path),
        )
        self.status.survey.start()

    def _now(self) -> Now:
        """Say how things are at this moment."""
        if not self.status.waits_for:
            self._scanned |= self._loop.looked_at_all
        return Now(
            open=tuple(map(opened, self._open_bundles.open_bundles)),
            held_bytes=self._in_flight.held_bytes,
            queue_files=self._arrivals.waiting + len(self._loop.todo),
            overdue_files=len(self._left.overdue),
            undeletable_bundles=self._in_flight.undeletable,
            holds_back=self._holds_back(),
            scanning=self._arrivals.scanning,
            scanned=self._scanned,
            degraded=self._arrivals.degraded,
            source=self._arrivals.source,
            counts=self._arrivals.counts,
        )

    def _remember(self) -> Remembered:
        """Copy what is in memory of files, for somebody who asks for one."""
        # Imported when somebody asks: these modules take a tenth of the time of a start.
        from jostler.agent.why.journal import Upload  # noqa: PLC0415 - as above
        from jostler.agent.why.live import Remembered  # noqa: PLC0415 - as above
        from jostler.agent.why.spool import AgentView  # noqa: PLC0415 - as above

        agent = AgentView(
            runs=True, holds_back=self._holds_back(), scan=self._rescans.next(time.monotonic())
        )
        return Remembered(
            agent=agent,
            bundles=tuple((bundle, bundle.files) for bundle in self._open_bundles.open_bundles),
            limits=self._open_bundles.limits,
            spool=str(self.config.spool),
            ages=self._left.ages,
            intake=self._intake,
            in_bundles=self._in_flight.paths(),
            stay={**self._left.finished, **self._left.unreadable},
            doubtful=self._left.doubtful.copy(),
            uploads={one.name: Upload(one.tries, one.error) for one in self._in_flight},
        )

    def _why(self, name: str) -> dict[str, Any]:
        """Say where a file is; for any thread."""
        from jostler.agent.why.live import reply  # noqa: PLC0415 - as in `_remember`

        return reply(self.config, self._questions, name, waits_for=self.status.waits_for)

    def _holds_back(self) -> str:
        """Say why no file is read at the moment; nothing if files are read."""
        if self.status.waits_for:
            return f"the agent waits for {self.status.waits_for}"
        if self._stop.is_set():
            return "the agent is stopping"
        if self._loop.fails:
            return "uploads fail, and until they succeed no new file is read"
        if self._loop.lags:
            return "uploads are slower than files arrive, and until one ends no new file is read"
        if self._loop.no_room:
            held = f"{self._in_flight.held_bytes} of {self.config.memory_max} bytes"
            return f"memory is full ({held}), and until a bundle is stored no new file is read"
        return ""


class Buckets:
    """The buckets by URL, each opened once, by whichever thread asks first."""

    def __init__(self) -> None:
        self._storages: dict[str, Storage] = {}
        self._lock = threading.Lock()

    def open(self, url: str) -> Storage:
        """Return the bucket of a URL."""
        with self._lock:
            if url not in self._storages:
                self._storages[url] = open_storage(url)
            return self._storages[url]
