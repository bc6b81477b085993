"""A whole run: discover, plan, verify in waves, load, record in the ledger.

**Invariant:** the ledger is read before the bucket is listed (see `due`).  Spark is started only if
a day is due.  The failure of one day or datatype does not affect the others.

The run ends with an error if a bucket or BigQuery cannot be reached at all.
"""

from __future__ import annotations

import secrets
import socket
import threading
import traceback
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader import giving_up
from loader.bigquery import tables
from loader.bigquery.batches import Batches
from loader.bigquery.ledger import Ledger
from loader.bigquery.notifications import Notifications
from loader.bigquery.partition_load import PartitionLoader
from loader.bigquery.record import STARTED, Outcome, Run, row_of_unread
from loader.bigquery.reference import Reference
from loader.bigquery.warehouse import Warehouse
from loader.cli.console import Progress
from loader.errors import FailureClass, LoaderError, UnlistedError, UsageError
from loader.loading import Loading
from loader.notify.outbox import Outbox
from loader.notify.receivers import NO_SECRETS, secrets_from
from loader.plan.due import UNKNOWN, Refusal, Status, TableDay
from loader.plan.lanes import Lanes
from loader.planner import Planner
from loader.spark.wave import WAVE_BYTES, StagingPaths
from loader.staging import sweep
from loader.stopping import Stopping
from loader.verifying import Verifier, say_distrusted
from loader.version import version_of_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loader.bigquery.reconcile import Reconciliation
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.loading import Item, Verify, Waited
    from loader.notify.receivers import Secrets
    from loader.plan.discover import Table
    from loader.plan.due import DayKey, Known
    from loader.spark.wave import Verified

ROUNDS = 5


class Loader:
    """One run.

    Args:
        options: what to do.
        console: shows events, progress and the result.
        verify: verifies days; None for a `Verifier`.
        keep: keeps Spark's session beyond the run; None to end it with the run.

    Attributes:
        run_id: the run's id in ledger, rejects and staging.
        outbox: tells receivers what became of days.
        stopping: whether a signal asked the run to end early.
        enough: set from outside to leave the days that have not begun to the next run.
        not_begun: the days left to the next run because this one ended early.
        waited: how long the days of each experiment waited.
    """

    def __init__(
        self,
        options: Options,
        console: Console,
        verify: Verify | None = None,
        keep: ExitStack | None = None,
    ) -> None:
        self._options = options
        self._console = console
        self._verify = verify
        self._keep = keep
        self.stopping = Stopping(console)
        self.enough = threading.Event()
        self.not_begun: list[TableDay] = []
        self.waited: dict[str, Waited] = {}
        self._warehouse = Warehouse(options.project, options.location, options.patience_s)
        self.run_id = f"{datetime.now(UTC).strftime(STARTED)}-{secrets.token_hex(3)}"
        self._run = Run(
            id=self.run_id,
            host=socket.gethostname(),
            version=version_of_run(),
            max_bad=options.max_bad_fraction,
            patience_s=options.patience_s,
            staging=StagingPaths(staging=options.staging, run_id=self.run_id),
            accept_deletions=options.accept_deletions,
        )
        ledger = Ledger(self._warehouse, options.meta_dataset)
        self._ledger = ledger
        self._batches = Batches(self._warehouse, ledger, self.run_id)
        notifications = Notifications(self._warehouse, ledger, self.run_id)
        self.outbox = Outbox(notifications, options.notify, _secrets(options), self._run, console)
        self.planner = Planner(options, self._warehouse, self._batches, console, self._run)
        still = self.planner.fingerprint_now
        self._partition_loader = PartitionLoader(
            self._warehouse, self._batches, self._run, console, still
        )

    def close(self) -> None:
        """Finish removing objects from staging, and close connections."""
        self._partition_loader.close()
        self._warehouse.close()

    def run(self) -> list[Outcome]:
        """Load all due days; return the outcome of each day that was not up to date.

        Raises:
            RunError, BucketError, WarehouseError: the whole run failed.
        """
        try:
            found = self.planner.discover()
        except UnlistedError as exc:
            self._tell_of_bucket(exc)
            raise
        self._ledger.prepare()
        self.planner.prepare_requests()
        for table in found + [table for table, _ in self.planner.unusable]:
            self.outbox.subscribe(str(table.name), self.planner.assets.of(table).notify or ())
        outcomes: dict[DayKey, Outcome] = {}
        with ExitStack() as stack:
            stack.enter_context(self.stopping)
            stack.enter_context(self.outbox)  # ends after the batches: it tells their last rows
            stack.enter_context(self._batches)
            ready = self.planner.prepare(found)
            due, refusals = self.planner.plan(ready, self._options.force, take=True)
            self.planner.record_returns(ready)
            due = self.planner.within_quota(due)
            verifier = Verifier(
                self._options,
                self._console,
                self.planner,
                staging=self._run.staging,
                stopping=self.stopping,
                stack=self._keep or stack,
            )
            known = self.planner.known
            self._rounds(due, refusals, verifier, outcomes)
            self._try_again(verifier, outcomes)
            self._give_up(known, outcomes)
        for key, outcome in outcomes.items():
            if outcome.overtaken:
                why = f"the day changed {ROUNDS} times while it was being loaded"
                if self.not_begun:
                    why = "another loader was at it, and the run ended before it was listed again"
                outcomes[key] = replace(outcome, status=Status.FAILED, why=why)
        self._finish_first_loads(ready, outcomes)
        sweep(self._options.staging, self._options.patience_s, self._console)
        return list(outcomes.values())

    def _tell_of_bucket(self, error: UnlistedError) -> None:
        """Record that a bucket cannot be listed, so that receivers are told.

        Without a ledger nothing has been loaded yet, and a name is wrong: whoever gave it sees it.
        """
        try:
            if not self._ledger.exists():
                return
            self._ledger.prepare()
            with self.outbox, self._batches:
                self.planner.wholes.unlisted(error)
        except LoaderError as exc:  # the run ends with the bucket's error
            self._console.event("ledger.not_written", "error", error=str(exc))

    def _rounds(
        self,
        due: list[TableDay],
        refusals: list[Refusal],
        verifier: Verifier,
        outcomes: dict[DayKey, Outcome],
    ) -> None:
        """Load days, and again those that another loader changed meanwhile."""
        for _ in range(ROUNDS):
            self.planner.record_refusals(refusals)
            for refusal in refusals:
                outcomes[refusal.day.key] = _refused(refusal)
            for outcome in self._load_all(due, verifier):
                outcomes[outcome.day.key] = outcome
            again = {o.day.key: o for o in outcomes.values() if o.overtaken}
            if not again or self.not_begun:
                break
            due, refusals = self._plan_again(again, outcomes)

    def _try_again(self, verifier: Verifier, outcomes: dict[DayKey, Outcome]) -> None:
        """Load the days once more whose failures can pass, after growing pauses."""
        for tries in range(1, giving_up.TRIES):
            again = {
                key: outcome for key, outcome in outcomes.items() if giving_up.can_pass(outcome)
            }
            if not again or self.not_begun or self._stops():
                return
            wait_s = giving_up.pause_s(tries)
            self._console.event("days.tried_again", "warning", days=len(again), wait_s=wait_s)
            if self.stopping.requested.wait(wait_s):
                return
            due, refusals = self._plan_again(again, outcomes)
            self._rounds(due, refusals, verifier, outcomes)

    def _give_up(self, known: Mapping[DayKey, Known], outcomes: dict[DayKey, Outcome]) -> None:
        """Record the days that have failed for longer than --give-up-after."""
        now = datetime.now(UTC)
        for key, outcome in outcomes.items():
            before = known.get(key, UNKNOWN)
            after_s = self._options.give_up_after_s
            if not (since := giving_up.failing_since(outcome, before, now, after_s)):
                continue
            row = giving_up.abandoned_row(outcome, before, self._run, self._made_ms(key))
            self._batches.add(row).add_done_callback(self.planner.report_unwritten)
            outcomes[key] = replace(outcome, status=Status.ABANDONED)
            facts = {"table": key[0], "day": str(key[1]), "since": since.isoformat()}
            self._console.event("day.abandoned", "error", **facts, why=outcome.why)

    def _made_ms(self, key: DayKey) -> int:
        return self.planner.ready[key[0]].made_ms

    def compare(self) -> Reconciliation:
        """Compare all days of the window with their index and with BigQuery; change nothing."""
        from loader import comparing  # noqa: PLC0415 - pyspark

        reference = Reference(self._warehouse, self._ledger, self.run_id)
        staging = self._run.staging
        return comparing.compare(self._options, self._console, self.planner, reference, staging)

    def _plan_again(
        self,
        overtaken: dict[DayKey, Outcome],
        outcomes: dict[DayKey, Outcome],
    ) -> tuple[list[TableDay], list[Refusal]]:
        """Decide again about days that another loader was loading, or that failed."""
        ready = {str(o.day.table.name): o.day.table for o in overtaken.values()}
        due, refusals = self.planner.plan(list(ready.values()), force=False)
        due = [
            # The job that took the number was seen, though its row may not be in the ledger yet.
            replace(day, attempt=max(day.attempt, overtaken[day.key].attempt))
            for day in due
            if day.key in overtaken
        ]
        rest = overtaken.keys() - {day.key for day in due}
        for key in rest:
            status, why = Status.SKIPPED, "another loader has loaded what the bucket holds"
            if not self.planner.was_listed(overtaken[key].day.table):
                if not overtaken[key].overtaken:
                    continue  # it has failed, and that stands
                status, why = (
                    Status.FAILED,
                    "another loader was at it, and it could not be listed again",
                )
            outcomes[key] = replace(overtaken[key], overtaken=False, status=status, why=why)
        return due, [refusal for refusal in refusals if refusal.day.key in overtaken]

    def _load_all(self, due: list[TableDay], verifier: Verifier) -> list[Outcome]:
        """Load days; if the index of some was wrong, verify those in full and load them again."""
        outcomes = self._load(due, verifier) if due else []
        wrong = {outcome.day.key: outcome for outcome in outcomes if outcome.misled}
        if not wrong or self.not_begun:
            return outcomes
        verifier.refused |= {key: outcome.why for key, outcome in wrong.items()}
        again = [replace(one.day, attempt=one.attempt) for one in wrong.values()]
        return outcomes + self._load(again, verifier)

    def _load(self, due: list[TableDay], verifier: Verifier) -> list[Outcome]:
        """Verify and load days; experiments share the places for both (see `lanes`)."""
        most = self._options.parallel_days
        share = self._shares(due)
        lanes: Lanes[Item] = Lanes(due, most=most, share=share.__getitem__, most_bytes=WAVE_BYTES)
        verifier.progress = Progress(days=len(due), size_bytes=sum(d.size_bytes for d in due))
        verify = self._verify or verifier.verify
        with Loading(lanes, verify, self._finish, most=most, stop=self._stops) as loading:
            self.stopping.loading = loading.count
            loading.run()
        for experiment, waited in loading.waited.items():
            self.waited.setdefault(experiment, waited)
        # Outcomes end when their ledger rows are durable; without this they would wait for the next
        # batch.
        self._batches.flush()
        outcomes = loading.outcomes()
        begun = {outcome.day.key for outcome in outcomes}
        self.not_begun += [day for day in due if day.key not in begun]
        return outcomes

    def _stops(self) -> bool:
        """Return whether no further day is to begin."""
        return self.stopping.requested.is_set() or self.enough.is_set()

    def _shares(self, due: list[TableDay]) -> dict[str, float]:
        """Return the share of each experiment: the least that an asset of its tables says."""
        shares: dict[str, float] = {}
        for day in due:
            said = self.planner.assets.of(day.table).share
            share = self._options.share if said is None else said
            name = day.table.experiment
            shares[name] = min(share, shares.get(name, share))
        return shares

    def _finish(self, found: Verified, started: datetime) -> Future[Outcome]:
        """Load a day; show its outcome as soon as its ledger row is durable."""
        day = found.day
        known = self.planner.known.get(day.key, UNKNOWN)
        ready = self.planner.ready[str(day.table.name)]
        try:
            outcome = self._partition_loader.load(found, ready, known, started)
        except Exception as exc:  # noqa: BLE001 - what nobody foresaw must not stop other days
            why = f"a mistake in the loader, please report it: {type(exc).__name__}: {exc}"
            facts = {"table": str(day.table.name), "day": str(day.date), "error": why}
            self._console.event("day.crashed", "error", **facts, trace=traceback.format_exc())
            outcome = self._crashed(day, type(exc).__name__, why)
        outcome.add_done_callback(self._report_end)
        return outcome

    def _crashed(self, day: TableDay, error: str, why: str) -> Future[Outcome]:
        """Record a day that failed for a reason that nobody foresaw."""
        known, made_ms = self.planner.known.get(day.key, UNKNOWN), self._made_ms(day.key)
        failed, error_of = Status.FAILED, (error, why)
        row = row_of_unread(day, failed, known, self._run, made_ms=made_ms, why=error_of)
        ended: Future[Outcome] = Future()
        outcome = Outcome(
            day=day,
            status=failed,
            why=why,
            error=error,
            failure=FailureClass.BUG,
            attempt=day.attempt,
        )
        written = self._batches.add(row)
        written.add_done_callback(self.planner.report_unwritten)
        written.add_done_callback(lambda _: ended.set_result(outcome))
        return ended

    def _report_end(self, ended: Future[Outcome]) -> None:
        outcome = ended.result()
        self.outbox.wake()
        day = outcome.day
        if outcome.misled:
            say_distrusted(self._console, day, outcome.why)
            return
        level = "info" if outcome.status in {Status.SUCCESS, Status.SKIPPED} else "error"
        facts = {"read": outcome.rows, "loaded": outcome.loaded, "rejected": outcome.rejected}
        self._console.event(
            f"day.{outcome.status}",
            level,
            table=str(day.table.name),
            day=str(day.date),
            reason=day.reason,
            attempt=outcome.attempt,
            **facts,
            repeated=outcome.repeated,
            why=outcome.why,
        )

    def _finish_first_loads(self, ready: list[Table], outcomes: dict[DayKey, Outcome]) -> None:
        """Record which new tables are fully loaded: all days listed, none failed."""
        well = {Status.SUCCESS, Status.SKIPPED}
        bad = {o.day.key[0] for o in outcomes.values() if o.status not in well}
        bad |= {day.key[0] for day in self.not_begun}
        for table in ready:
            name = str(table.name)
            unfinished = self.planner.ready[name].from_beginning and name not in bad
            if unfinished and self.planner.saw_all(table):
                tables.finish_first_load(self._warehouse, table.name)


def _secrets(options: Options) -> Secrets:
    try:
        return secrets_from(options.notify_secrets) if options.notify_secrets else NO_SECRETS
    except ValueError as exc:
        raise UsageError([f"--notify-secrets: {exc}"]) from None


def _refused(refusal: Refusal) -> Outcome:
    return Outcome(day=refusal.day, status=refusal.status, why=refusal.why)
