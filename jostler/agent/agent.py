"""The agent: start, recover, loop, drain, stop.

**Invariant:** everything is built before the first file is looked at, and no file is looked at
before the agent has its state directory.  Before it has the bucket's table schemas it only reads
ahead: nothing is stored, rejected or deleted.

Signals, argv and the exit status belong to `jostler.cli.main`.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jostler import build
from jostler.agent.ages import Ages
from jostler.agent.ahead import Ahead
from jostler.agent.directories import Directories
from jostler.agent.giving_up import GivingUp
from jostler.agent.intake import Intake
from jostler.agent.left import LeftFiles
from jostler.agent.loop import Loop
from jostler.agent.low_disk import LowDisk, space_of
from jostler.agent.observe.reporter import Reporter
from jostler.agent.observe.status import Status
from jostler.agent.observe.survey import Survey
from jostler.agent.recovery import Recovery
from jostler.agent.rescans import Rescans
from jostler.agent.rules import READ_TRIES, Rules
from jostler.agent.runners import Daemon, Once
from jostler.agent.start import (
    Agreed,
    Meanwhile,
    await_lock,
    await_schemas,
    index_fields,
    judged_by,
    stamp,
)
from jostler.agent.taking import Taking
from jostler.agent.tally import Tally
from jostler.agent.view import View
from jostler.agent.why.questions import Questions
from jostler.bundle import (
    Beside,
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
    native_index_rows,
)
from jostler.config import Mode
from jostler.full_sign import FullSign
from jostler.log import Log
from jostler.schema import native
from jostler.storage import Buckets
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from jostler.agent.observe.snapshot import Now
    from jostler.bundle import UploadJob
    from jostler.config import Config
    from jostler.schema import Fields
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
        on_stored: called in the agent's thread with the upload of each bundle that became durable.

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
        on_stored: Callable[[UploadJob], None] | None = None,
    ) -> None:
        self.config = config
        self._native = native.find(config.native)
        self._tables = tables
        self._arrivals = arrivals
        self._stop = stop
        self._abort = abort
        self._tally = Tally()
        self._agreed = Agreed()
        self._index_fields = index_fields(config)
        self._spool = Confined(str(config.spool))
        self._journal = Journal(config.state_dir, config.old_state_dir)
        self._buckets = Buckets()
        self._questions = Questions(arrivals.wake)
        self._directories = Directories(config)
        self._rescans = Rescans(config, arrivals)
        self._in_flight = InFlightBundles()
        ages = Ages(config.settle_age_s, config.missed_age_s)
        self._left = LeftFiles(ages, config.state_dir / KEPT_FILE)
        self.status = Status(config, self._why, self._native)
        self._reporter = Reporter(self.status, self._tally, self._in_flight, on_stored)
        self._uploads = Uploads(
            Commit(
                self._buckets.open,
                self._journal,
                self._spool,
                self.status.upload_stats,
                native_index_rows(self._native),
            ),
            threads=config.upload_concurrency,
            wake=arrivals.wake,
        )
        self._delivery = self._make_delivery()
        self._open_bundles = self._make_open_bundles()
        self._intake = self._make_intake()
        self._giving_up = self._make_giving_up()
        self._low_disk = self._make_low_disk()
        self._loop = self._make_loop()
        self._ahead = Ahead(self._loop, self._uploads)
        self._recovery = self._make_recovery()
        self._view = self._make_view()
        self._scanned = False

    def _make_delivery(self) -> Delivery:
        return Delivery(
            self._in_flight,
            self._uploads,
            self._journal,
            self._spool,
            self.status.upload_stats,
            keep=self._left.keep,
            # Without the module a second thread would only hold up this one (see `Beside`).
            cleaning=Beside(self._arrivals.wake) if self._native.module else None,
            unlink_many=self._native.unlink_many,
        )

    def _make_open_bundles(self) -> OpenBundles:
        return OpenBundles(
            stamp(self.config, self._agreed.kept),
            self.config.limits,
            self._in_flight,
            memory_max=self.config.memory_max,
            sealed=self._sealed,
            monotonic_s=time.monotonic,
            now=lambda: datetime.now(UTC),
            # The loop is made later; it is asked only while it runs.
            backlog=lambda: self._loop.backlog,
        )

    def _make_intake(self) -> Intake:
        once = self.config.mode is Mode.ONCE
        rules = Rules(
            judges=self._agreed.judges,
            index_fields=self._index_fields,
            counts=self._agreed.counts,
            readers=self._agreed.readers,
            max_bytes=self.config.limits.max_bytes,
            read_tries=1 if once else READ_TRIES,
            once=once,
        )
        judging = Judging(self.config.state_dir / "judging", self._spool)
        return Intake(rules, self._spool, self._in_flight, self._left, judging)

    def _make_giving_up(self) -> GivingUp:
        return GivingUp(
            self._spool,
            [datatype.name for datatype in self.config.datatypes],
            Wanted(self.config.extensions).file,
            in_flight=self._in_flight,
            left=self._left,
            open_bundles=self._open_bundles,
            journal=self._journal,
            delivery=self._delivery,
            tally=self._tally,
            young_s=max(self.config.settle_age_s, 1.0),
        )

    def _make_low_disk(self) -> LowDisk:
        config = self.config
        return LowDisk(
            config.disk_lack_action,
            lambda: space_of(config.spool, config.min_free_disk),
            FullSign(config.spool),
            giving_up=self._giving_up,
            open_bundles=self._open_bundles,
            in_flight=self._in_flight,
        )

    def _make_loop(self) -> Loop:
        taking = Taking(
            self._intake,
            self._open_bundles,
            self._left,
            self._tally,
            spool=self._spool,
            bad_files=self.config.bad_files,
            index_fields=self._index_fields,
        )
        return Loop(
            self.config,
            self._arrivals,
            taking=taking,
            left=self._left,
            open_bundles=self._open_bundles,
            delivery=self._delivery,
            low_disk=self._low_disk,
            directories=self._directories,
            rescans=self._rescans,
            reporter=self._reporter,
            tally=self._tally,
        )

    def _make_recovery(self) -> Recovery:
        return Recovery(
            self.config,
            self._journal,
            load_left=lambda: self._left.load(self._intake.state_of),
            in_flight=self._in_flight,
            delivery=self._delivery,
            tally=self._tally,
        )

    def _make_view(self) -> View:
        return View(
            config=self.config,
            status=self.status,
            arrivals=self._arrivals,
            loop=self._loop,
            low_disk=self._low_disk,
            in_flight=self._in_flight,
            open_bundles=self._open_bundles,
            left=self._left,
            rescans=self._rescans,
            spool=self._spool,
            contents=self._intake.contents,
            stop=self._stop,
        )

    def run(self) -> bool:
        """Move files from the spool to the bucket until stopped, then upload what is open.

        Returns:
            Whether everything that was taken is stored and, with `-once`, nothing that should
            have gone is left.
        """
        self._directories.make()
        if self.config.listen:
            self._survey()
        meanwhile = Meanwhile(
            stop=self._stop,
            read=self._read_ahead,
            turn=self._turn,
            wake=self._arrivals.wake,
            stats=self.status.upload_stats,
        )
        self._reporter.waits_for("its state directory, which another agent uses")
        lock = await_lock(self.config, self._journal, meanwhile)
        if lock is None:
            return self._stop.is_set()
        with lock, self._low_disk.watching():
            self._reporter.waits_for("the bucket to answer for the table schemas")
            records = self._recovery.load()
            if records:  # the files that are met may be theirs
                self._ahead.forgo()
            self._rescans.begin(time.monotonic())
            own = judged_by(self.config, self._tables, self._native)
            self._agreed.take_over(own)
            agreed = await_schemas(
                self.config,
                self._tables,
                self._buckets.open,
                meanwhile,
                own=own,
                native=self._native,
            )
            if agreed is None:
                return True  # stopped before anything was stored
            self._ahead.end(own, agreed)
            self._agreed.take_over(agreed)
            self._say_started()
            self._uploads.begin()
            self._recovery.replay(records)
            self._reporter.waits_for("")
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

    def _sealed(self, one: InFlight, _bundle: Bundle) -> None:
        self._reporter.sealed(one)
        self._delivery.start(one)

    def _end(self, *, leaves_nothing: bool) -> bool:
        ended = self._uploads.close(0.0 if self._abort.is_set() else 1.0)
        left = self._in_flight.files + self._giving_up.unsent
        done = ended and not left and leaves_nothing
        log.info("agent.stopped", complete=done, pending=left, **self._tally.totals())
        return done

    # What it shows

    def _read_ahead(self) -> bool:
        """Take files that the bucket's answer will hardly change; return whether there were any."""
        self._low_disk.watch(time.monotonic())
        self._reporter.turned(self._now)
        return self._ahead.step()

    def _turn(self, seconds: float) -> None:
        """Count arrivals and update the status, while the agent cannot take files yet."""
        self._low_disk.watch(time.monotonic())
        self._reporter.turned(self._now)
        self._arrivals.pause(seconds)

    def _show(self) -> None:
        """Answer waiting questions and update the status, between two rounds of the loop."""
        self._questions.answer(self._view.remembered)
        self._reporter.turned(self._now)

    def _survey(self) -> None:
        """Start the thread that counts the files on disk."""
        config = self.config
        self.status.survey = Survey(
            str(config.spool),
            [datatype.name for datatype in config.datatypes],
            lambda name: name.endswith(config.extensions),
            lambda path: self._in_flight.owns(path) or self._left.stays(path),
        )
        self.status.survey.start()

    def _now(self) -> Now:
        """Return the state of the agent at this moment."""
        if not self.status.waits_for:
            self._scanned |= self._loop.looked_at_all
        return self._view.now(scanned=self._scanned)

    def _why(self, name: str) -> dict[str, Any]:
        """Return where a file is; for any thread."""
        from jostler.agent.why.live import reply  # noqa: PLC0415 - as in `View.remembered`

        return reply(self.config, self._questions, name, waits_for=self.status.waits_for)
