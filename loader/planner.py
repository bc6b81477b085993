"""Prepare a run: find and prepare tables, list days, decide which days are due.

**Invariant:** the ledger is read before the bucket is listed (see `due`).  A datatype that fails is
reported, recorded in the ledger and left out; it does not affect the others.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loader.bigquery import tables
from loader.bigquery.governance import Governance
from loader.bigquery.record import row_of_unread
from loader.bigquery.requests import Requests
from loader.bigquery.views import prepare_views
from loader.bigquery.wholes import Wholes
from loader.bucket import open_bucket
from loader.errors import BucketError, SchemaError, WarehouseError
from loader.plan.asking import Asking
from loader.plan.assets import RunAssets, assets_of
from loader.plan.discover import Table, bundles, discover
from loader.plan.due import (
    UNKNOWN,
    Refusal,
    Status,
    TableDay,
    decide,
    fingerprint,
    has_expired,
    schema_digest,
    within,
)
from loader.plan.losses import lost, owed
from loader.plan.window import EVERYTHING, GIVEN, Window, of_day

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future
    from datetime import date

    from jostler.schema import Fields
    from loader.bigquery.batches import Batches
    from loader.bigquery.record import Run
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Json, Warehouse
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.errors import LoaderError
    from loader.plan.discover import Bundle
    from loader.plan.due import DayKey, Known, Loaded

THREADS = 8
FEW = 0.1
"""Up to this fraction of a table's daily quota, earlier jobs are not counted before submitting."""


class Planner:
    """The tables and days of one run.

    Args:
        options: which buckets, experiments, datatypes and days to consider.
        warehouse: the BigQuery project.
        batches: writes rows to the ledger.
        console: shows events.
        run: the values that all days of the run share.

    Attributes:
        problems: failures that do not belong to one day: what failed, and why.
        ready: the tables that are ready for load jobs, by name.
        known: the newest ledger rows, by day.
        datatypes: experiment and datatype of each table found.
        unusable: the tables that cannot be used because of their schemas in the buckets, and why.
        assets: what the buckets' assets say of experiments and datatypes.
        warehouse: as given.
        wholes: records what fails as a whole.
    """

    def __init__(
        self,
        options: Options,
        warehouse: Warehouse,
        batches: Batches,
        console: Console,
        run: Run,
    ) -> None:
        self._options = options
        self._run = run
        self.warehouse = warehouse
        self._ledger = batches.ledger
        self._batches = batches
        self._console = console
        self._windows: dict[str, Window] = {}
        self._buckets: set[str] = set()
        self._unlisted: set[str] = set()
        self._postponed: set[str] = set()
        self.problems: list[tuple[str, str]] = []
        self.ready: dict[str, Ready] = {}
        self.known: dict[DayKey, Known] = {}
        self.datatypes: set[tuple[str, str]] = set()
        self.unusable: list[tuple[Table, LoaderError]] = []
        self._broken: list[tuple[Table, str]] = []
        self.assets = RunAssets()
        looks_only = options.dry_run or options.verify_only
        self.wholes = Wholes(self._ledger, self._record, run, looks_only=looks_only)
        self._requests = Requests(warehouse, batches.ledger, run.id)
        self._asking = Asking(self._requests, options, console)

    def discover(self) -> list[Table]:
        """Find the tables of all buckets.

        Raises:
            UnlistedError: a bucket cannot be listed.
        """
        buckets = [open_bucket(url, self._options.patience_s) for url in self._options.bucket]
        self._buckets = {bucket.url for bucket in buckets}
        found = discover(buckets, self._options)
        for what, why in found.problems:
            self.problem(what, why)
        for table in found.tables:
            self.datatypes.add((table.experiment, table.sources[0].datatype))
            for name in (table.name, table.view):
                if name.is_mapped:
                    self._console.event("name.mapped", wanted=name.wanted, dataset=name.dataset)
        self.unusable = found.unusable
        self._broken = [(table, str(error)) for table, error in found.unusable]
        all_tables = found.tables + [table for table, _ in found.unusable]
        self.assets = assets_of(all_tables, self._options)
        for what, why in self.assets.problems:
            self.problem(what, why)
        return found.tables

    def problem(self, what: str, why: str) -> None:
        """Report a failure that does not belong to one day."""
        why = why.removeprefix(f"{what}: ")
        self.problems.append((what, why))
        self._console.event("datatype.failed", "error", what=what, error=why)

    def _each(self, found: Iterable[Table], work: Callable[[Table], Ready | None]) -> list[Table]:
        """Call `work` for each table; report and leave out the tables that fail."""
        done = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="table") as pool:
            futures = [(table, pool.submit(work, table)) for table in found]
        for table, future in futures:
            try:
                ready = future.result()
            except (SchemaError, WarehouseError) as exc:
                self.problem(str(table.name), str(exc))
                self._broken.append((table, str(exc)))
                self.wholes.failed(table, exc)
                continue
            given = self._options.period == GIVEN
            new = not ready or ready.from_beginning
            self._windows[str(table.name)] = (
                EVERYTHING if new and not given else self._options.window
            )
            if ready:
                self.ready[str(table.name)] = ready
            done.append(table)
        return done

    def look(self, found: Iterable[Table]) -> list[Table]:
        """Check the tables without changing them."""
        return self._each(found, lambda table: tables.look(self.warehouse, table))

    def prepare(self, found: Iterable[Table]) -> list[Table]:
        """Create or change the tables and their views; record which cannot be used."""
        for table, error in self.unusable:
            self.wholes.failed(table, error)
        ready = self._each(found, self._prepare)
        made = [(table, self.ready[str(table.name)]) for table in ready]
        for view in prepare_views(self.warehouse, made, self.problem):
            self._console.event("view.changed", view=str(view))
        self._govern(ready)
        return ready

    def _govern(self, ready: list[Table]) -> None:
        """Apply the assets to tables and datasets."""
        options = self._options
        if options.applies_assets or options.partition_expiration:
            governance = Governance(
                self.warehouse,
                self.assets,
                options,
                console=self._console,
                problem=self.problem,
            )
            self.ready.update(governance.apply(ready, self.ready))

    def prepare_requests(self) -> None:
        """Create the tables of requests, or add columns that older ones lack.

        Raises:
            RunError: a table has other columns than these.
        """
        self._requests.prepare()

    def _prepare(self, table: Table) -> Ready:
        ready = tables.prepare(self.warehouse, table)
        if ready.changes:
            self._console.event("table.changed", table=str(table.name), what=ready.changes[0])
        return ready

    def _record(self, row: Json) -> None:
        self._batches.add(row).add_done_callback(self.report_unwritten)

    def record_returns(self, ready: Iterable[Table]) -> None:
        """Record which buckets and tables are well again."""
        wrong = {str(table.name) for table, _ in self._broken}
        well = {str(table.name) for table in ready if self.was_listed(table)} - wrong
        self.wholes.well(well | self._buckets)

    def record_refusals(self, refusals: Iterable[Refusal]) -> None:
        """Record the days that are not loaded because that would lose rows, each once.

        A refusal that the newest row of the day tells already has no row: with `--every 5m` there
        would be hundreds a day.
        """
        for refusal in refusals:
            known = self.known.get(refusal.day.key, UNKNOWN)
            if not refusal.error or refusal.is_known(known):
                continue
            self._record(
                row_of_unread(
                    refusal.day,
                    refusal.status,
                    known,
                    self._run,
                    made_ms=self.ready[refusal.day.key[0]].made_ms,
                    why=(refusal.error, refusal.why),
                )
            )

    def report_unwritten(self, written: Future[None]) -> None:
        """Report that a row of the ledger could not be written."""
        if exc := written.exception():
            self._console.event("ledger.not_written", "error", error=str(exc))

    def plan(
        self, ready: list[Table], force: bool, *, take: bool = False
    ) -> tuple[list[TableDay], list[Refusal]]:
        """Decide for each day in the windows; read the ledger before listing the bucket.

        Args:
            ready: the tables.
            force: load days that are up to date, too.
            take: whether `ready` is all there is, so that open requests can be taken.
        """
        # The ledger comes first.  If another run loads a day between the two, the number that this
        # run would use is taken, and the loader lists the day again (`attempts`).  The other way
        # round, an older listing could replace newer rows under a free number.
        made = {str(t.name): self.ready[str(t.name)].made_ms for t in ready if self.has(t)}
        self.known = self._ledger.known(made) if self._ledger.exists() else {}
        self._asking.read()
        due: list[TableDay] = []
        refusals: list[Refusal] = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="list") as pool:
            days = [day for found in pool.map(self.listed, ready) for day in found]
        if take:
            self._asking.take(ready, days, self.was_listed, self._broken)
        expired = "it is older than its table keeps days: a load would be deleted at once"
        self._asking.refuse(
            Refusal(day=day, status=Status.FAILED, why=expired) for day in days if day.has_expired
        )
        for day in days:
            if day.has_expired:
                continue
            known = self.known.get(day.key, UNKNOWN)
            decision = decide(
                day,
                known,
                force=force,
                accept=self._options.accept_deletions,
                max_bad=day.max_bad(self._options.max_bad_fraction),
                asked=self._asking.of(day.key),
            )
            if isinstance(decision, Refusal):
                refusals.append(decision)
            elif decision:
                due.append(decision)
        if not self._options.accept_deletions:
            due, more = self._without_losses(due, made)
            refusals += more
        self._asking.refuse(refusals)
        return due, refusals

    def _without_losses(
        self, due: list[TableDay], made: dict[str, int]
    ) -> tuple[list[TableDay], list[Refusal]]:
        """Refuse the days whose objects are gone since they were loaded."""
        again = [day for day in due if day.key in self.known]
        loaded = self._ledger.loaded(again, made) if again else {}
        refusals = {day.key: lost(day, loaded.get(day.key)) for day in again}
        refused = [refusal for refusal in refusals.values() if refusal]
        kept = [day for day in due if not refusals.get(day.key)]
        return [replace(day, owed=self._owed(day, loaded)) for day in kept], refused

    def _owed(self, day: TableDay, loaded: dict[DayKey, Loaded]) -> int:
        try:
            return owed(day, loaded.get(day.key))
        except BucketError as exc:
            self.problem(f"{day.table.name} {day.date}", str(exc))
            # Which rows compaction may have left out is not known: then none may be missing.
            return loaded[day.key].rows

    def within_quota(self, due: list[TableDay]) -> list[TableDay]:
        """Postpone the days that exceed --jobs-per-day of their tables, and report them."""
        most = self._options.jobs_per_day
        count = Counter(str(day.table.name) for day in due)
        if not due or max(count.values()) <= most * FEW:  # too few to matter
            return due
        since = datetime.now(UTC) - timedelta(days=1)
        used = self._ledger.jobs(count, since) if self._ledger.exists() else {}
        left = {name: max(0, most - used.get(name, 0)) for name in count}
        now = within(due, left, self._options.window)
        kept = Counter(str(day.table.name) for day in now)
        for name in sorted(count):
            if late := count[name] - kept[name]:
                why = (
                    f"{late} of {count[name]} due days wait for a later run: a table takes {most}"
                    f" load jobs in 24 hours (--jobs-per-day), and has had {used.get(name, 0)}"
                )
                self._postponed.add(name)
                self.problems.append((name, why))
                self._console.event("days.postponed", "warning", table=name, days=late, why=why)
        return now

    def has(self, table: Table) -> bool:
        """Return whether the table exists."""
        return str(table.name) in self.ready

    def fields(self) -> dict[str, Fields]:
        """Return the columns of the tables that are ready, by name."""
        return {name: ready.fields for name, ready in self.ready.items()}

    def window(self, table: Table) -> Window:
        """Return the days of a table that this run considers."""
        return self._windows[str(table.name)]

    def was_listed(self, table: Table) -> bool:
        """Return whether the table's days could be listed."""
        return str(table.name) not in self._unlisted

    def saw_all(self, table: Table) -> bool:
        """Return whether all days of a table were listed and none was postponed."""
        name = str(table.name)
        left = self._unlisted | self._postponed
        return table.whole and self._windows[name] == EVERYTHING and name not in left

    def listed(self, table: Table) -> list[TableDay]:
        """List a table's days in its window; on failure report it and return no days."""
        schema = schema_digest(table.fields)
        asset = self.assets.of(table)
        today = datetime.now(UTC).date()
        known = self.ready.get(str(table.name))
        problems: list[tuple[str, str]] = []
        try:
            listed = self._bundles(table, problems)
        except BucketError as exc:
            if self.was_listed(table):  # else it is recorded already
                self._unlisted.add(str(table.name))
                self.wholes.failed(table, exc)
            self.problem(str(table.name), str(exc))
            return []
        for what, why in problems:
            self._console.event("object.foreign", "warning", object=what, error=why)
        return [
            TableDay(
                table=table,
                date=date,
                bundles=tuple(found),
                fingerprint=fingerprint(found, schema),
                own_max_bad=asset.max_bad_fraction,
                has_expired=known is not None and has_expired(date, known.kept_days, today),
            )
            for date, found in listed.items()
        ]

    def _bundles(self, table: Table, problems: list[tuple[str, str]]) -> dict[date, list[Bundle]]:
        """List a table's bundles in its window, and of the days that somebody asks for."""
        window = self._windows[str(table.name)]
        listed = bundles(table, window, problems)
        for more in self._asking.windows(table):
            if more.start in window and more.last in window:
                continue
            for date, found in bundles(table, more, problems).items():
                if self._asking.wants(table, date):
                    listed.setdefault(date, found)
        return listed

    def fingerprint_now(self, day: TableDay) -> str:
        """List one day again and return its fingerprint."""
        listed = bundles(day.table, of_day(day.date), [])
        return fingerprint(listed.get(day.date, []), schema_digest(day.table.fields))
