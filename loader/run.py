"""A run from beginning to end: discover, plan, verify in waves, load, tell.

**Invariant:** the ledger is read before the bucket is listed (see `plan`); Spark is started when
the first day is found to be due, and not before.  What befalls one day or datatype stops no other.

It refuses to go on when a bucket or BigQuery cannot be asked at all.
"""

from __future__ import annotations

import platform
import secrets
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING

from loader import plan, tables
from loader.bucket import open_bucket
from loader.discover import Table, bundles, discover
from loader.errors import LoaderError, SchemaError, WarehouseError
from loader.finish import STARTED, Finisher, Outcome, Run
from loader.meta import Meta
from loader.plan import Day, Refusal, Status
from loader.session import session
from loader.warehouse import Warehouse
from loader.wave import Place, Verified, Wave
from loader.window import EVERYTHING, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from loader.options import Options
    from loader.plan import DayKey
    from loader.tables import Ready
    from loader.tell import Tell

ROUNDS = 5
WAVE_BYTES = 20_000_000_000
THREADS = 8


class Loader:
    """One run.

    Args:
        options: what to do.
        tell: where to say what was done.
    """

    def __init__(self, options: Options, tell: Tell) -> None:
        self._options = options
        self._tell = tell
        self._warehouse = Warehouse(options.project, options.location, options.patience_s)
        self._meta = Meta(self._warehouse, options.meta_dataset)
        self._problems: list[tuple[str, str]] = []
        self._ready: dict[str, Ready] = {}
        self._windows: dict[str, Window] = {}
        self._known: dict[DayKey, plan.Known] = {}
        run_id = f"{datetime.now(UTC).strftime(STARTED)}-{secrets.token_hex(3)}"
        self._run = Run(
            id=run_id,
            host=socket.gethostname(),
            version=_version(),
            max_bad=options.max_bad_fraction,
            patience_s=options.patience_s,
            place=Place(staging=options.staging, run_id=run_id),
            still=self._fingerprint_now,
        )
        self._finisher = Finisher(self._warehouse, self._meta, self._run, tell)

    def run(self) -> tuple[list[Outcome], list[tuple[str, str]]]:
        """Load what is due.

        Returns:
            What became of each day that was looked at and is not simply up to date, and problems
            that are not about a day.

        Raises:
            RunError, BucketError, WarehouseError: nothing could be done.
        """
        found = self.discover()
        self._meta.prepare()
        ready = self._each(found, self._prepare)
        outcomes: dict[DayKey, Outcome] = {}
        with ExitStack() as stack:
            due, refusals = self.plan(ready, self._options.force)
            for _ in range(ROUNDS):
                for refusal in refusals:
                    outcomes[refusal.day.key] = _refused(refusal)
                for outcome in self._load(due, stack) if due else ():
                    outcomes[outcome.day.key] = outcome
                again = {o.day.key: o for o in outcomes.values() if o.overtaken}
                if not again:
                    break
                due, refusals = self._plan_again(again, outcomes)
        self._finish_first_loads(ready, outcomes)
        return list(outcomes.values()), self._problems

    def discover(self) -> list[Table]:
        """Find the tables of all buckets."""
        buckets = [open_bucket(url, self._options.patience_s) for url in self._options.bucket]
        found = discover(buckets, self._options)
        for what, why in found.problems:
            self._problem(what, why)
        for table in found.tables:
            for name in (table.name, table.view):
                if name.is_mapped:
                    self._tell.event("name.mapped", wanted=name.wanted, dataset=name.dataset)
        return found.tables

    def _problem(self, what: str, why: str) -> None:
        self._problems.append((what, why))
        self._tell.event("datatype.failed", "error", what=what, error=why)

    def _each(self, found: Iterable[Table], work: Callable[[Table], Ready | None]) -> list[Table]:
        """Do something for each table; those that fail are told and left out."""
        done = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="table") as pool:
            futures = [(table, pool.submit(work, table)) for table in found]
        for table, future in futures:
            try:
                ready = future.result()
            except (SchemaError, WarehouseError) as exc:
                self._problem(str(table.name), str(exc))
                self._tell_table(table, exc)
                continue
            self._windows[str(table.name)] = EVERYTHING
            if ready:
                self._ready[str(table.name)] = ready
                if not ready.from_beginning:
                    self._windows[str(table.name)] = self._options.window
            done.append(table)
        return done

    def look(self, found: Iterable[Table]) -> list[Table]:
        """See the tables as they are, changing nothing."""
        return self._each(found, lambda table: tables.look(self._warehouse, table))

    def _prepare(self, table: Table) -> Ready:
        ready = tables.prepare(self._warehouse, table)
        if ready.changes:
            self._tell.event("table.changed", table=str(table.name), what=ready.changes[0])
        return ready

    def _tell_table(self, table: Table, error: LoaderError) -> None:
        """Put a datatype's failure into the ledger, with no date."""
        now = datetime.now(UTC).isoformat()
        row = {
            "table": str(table.name),
            "Status": str(Status.FAILED),
            "Started": now,
            "Finished": now,
            **dict.fromkeys(("RowsRead", "RowsLoaded", "RowsRejected"), 0),
            **dict.fromkeys(("RowsRepeated", "RowsWithheld"), 0),
            "ErrorClass": type(error).__name__,
            "ErrorText": str(error),
            "RunID": self._run.id,
            "Host": self._run.host,
            "Version": self._run.version,
        }
        told_id = f"jostler-{table.name.dataset}-{table.name.table}-table-{self._run.id}"
        try:
            self._meta.tell(row, told_id)
        except WarehouseError as exc:
            self._tell.event("ledger.not_written", "error", error=str(exc))

    def plan(self, ready: list[Table], force: bool) -> tuple[list[Day], list[Refusal]]:
        """Decide for each day of the windows; the ledger is read before the bucket is listed."""
        made = {str(t.name): self._ready[str(t.name)].made_ms for t in ready if self._has(t)}
        self._known = self._meta.known(made) if self._meta.exists() else {}
        due: list[Day] = []
        refusals: list[Refusal] = []
        with ThreadPoolExecutor(THREADS, thread_name_prefix="list") as pool:
            futures = [pool.submit(self._listed, table) for table in ready]
        for future in futures:
            for day in future.result():
                known = self._known.get(day.key, plan.UNKNOWN)
                decision = plan.decide(
                    day, known, force=force, max_bad=self._options.max_bad_fraction
                )
                if isinstance(decision, Refusal):
                    refusals.append(decision)
                elif decision:
                    due.append(decision)
        return due, refusals

    def _has(self, table: Table) -> bool:
        return str(table.name) in self._ready

    def _listed(self, table: Table) -> list[Day]:
        """List a table's days."""
        schema = plan.schema_digest(table.fields)
        problems: list[tuple[str, str]] = []
        listed = bundles(table, self._windows[str(table.name)], problems)
        for what, why in problems:
            self._tell.event("object.foreign", "warning", object=what, error=why)
        return [
            Day(
                table=table,
                date=date,
                bundles=tuple(found),
                fingerprint=plan.fingerprint(found, schema),
            )
            for date, found in listed.items()
        ]

    def _fingerprint_now(self, day: Day) -> str:
        """List one day anew."""
        listed = bundles(day.table, _only(day), [])
        return plan.fingerprint(listed.get(day.date, []), plan.schema_digest(day.table.fields))

    def _plan_again(
        self,
        overtaken: dict[DayKey, Outcome],
        outcomes: dict[DayKey, Outcome],
    ) -> tuple[list[Day], list[Refusal]]:
        """Decide once more for days that another loader was at."""
        names = {day_table for day_table, _ in overtaken}
        ready = list({str(o.day.table.name): o.day.table for o in overtaken.values()}.values())
        assert {str(table.name) for table in ready} == names
        due, refusals = self.plan(ready, force=False)
        due = [
            replace(day, attempt=max(day.attempt, overtaken[day.key].attempt))
            for day in due
            if day.key in overtaken
        ]
        rest = overtaken.keys() - {day.key for day in due}
        for key in rest:
            why = "another loader has loaded what the bucket holds"
            outcomes[key] = replace(overtaken[key], overtaken=False, why=why)
        return due, [refusal for refusal in refusals if refusal.day.key in overtaken]

    def _load(self, due: list[Day], stack: ExitStack) -> list[Outcome]:
        """Verify and load days, wave by wave; a wave loads while the next one is verified."""
        options = self._options
        spark = stack.enter_context(session(options.master))
        futures: list[Future[Outcome]] = []
        with ThreadPoolExecutor(options.parallel_days, thread_name_prefix="day") as pool:
            for days in plan.waves(
                due, most=options.parallel_days, share=options.share, most_bytes=WAVE_BYTES
            ):
                started = datetime.now(UTC)
                verified = self._verified(spark, days)
                futures += [pool.submit(self._finish, found, started) for found in verified]
        return [future.result() for future in futures]

    def _finish(self, found: Verified, started: datetime) -> Outcome:
        day = found.day
        known = self._known.get(day.key, plan.UNKNOWN)
        outcome = self._finisher.finish(found, self._ready[str(day.table.name)], known, started)
        level = "info" if outcome.status in {Status.SUCCESS, Status.SKIPPED} else "error"
        facts = {"read": outcome.rows, "loaded": outcome.loaded, "rejected": outcome.rejected}
        self._tell.event(
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
        return outcome

    def _verified(self, spark: SparkSession, days: list[Day]) -> list[Verified]:
        """Verify days together; if that fails, each alone, so that it fails the guilty one only."""
        from loader import engine  # noqa: PLC0415 - pyspark, which a run with nothing to do needs not

        fields = {name: ready.fields for name, ready in self._ready.items()}
        wave = Wave.of(days, fields, self._run.place)
        total = sum(day.size_bytes for day in days)
        try:
            with self._tell.progress(spark, f"{len(days)} days", total):
                engine.run(
                    spark,
                    wave,
                    max_bad=self._options.max_bad_fraction,
                    patience_s=self._options.patience_s,
                )
        except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
            if len(days) > 1:
                return [found for day in days for found in self._verified(spark, [day])]
            told = " ".join(str(exc).split())
            return [Verified(day=days[0], error=f"{type(exc).__name__}: {told[:2000]}")]
        return wave.days

    def _finish_first_loads(self, ready: list[Table], outcomes: dict[DayKey, Outcome]) -> None:
        bad = {o.day.key[0] for o in outcomes.values() if o.status is not Status.SUCCESS}
        for table in ready:
            name = str(table.name)
            if self._ready[name].from_beginning and name not in bad:
                tables.finish_first_load(self._warehouse, table.name)


def _refused(refusal: Refusal) -> Outcome:
    return Outcome(day=refusal.day, status=refusal.status, why=refusal.why)


def _only(day: Day) -> Window:
    return Window(start=day.date, end=day.date.fromordinal(day.date.toordinal() + 1))


def _version() -> str:
    parts = [f"python {platform.python_version()}"]
    for package in ("jostler", "pyspark"):
        try:
            parts.append(f"{package} {metadata.version(package).partition('+')[0]}")
        except metadata.PackageNotFoundError:  # shipped as a zip
            parts.append(f"{package} unknown")
    return ", ".join(sorted(parts))
