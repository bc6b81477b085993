"""Verify the days of a run: by their index where it can be trusted, else by reading every bundle.

**Invariant:** a day is taken from its index as a whole or not at all.  One problem of one index or
one sampled bundle, or one Filename that occurs twice, makes all its bundles be read.  Spark is
started only if there is more work than the driver's own threads do in the time of its start.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostler.schema.native import find
from loader.bigquery.partition_load import job_id
from loader.cli.console import Progress
from loader.cli.options import Engine
from loader.plan.trust import Trust, UntrustedError, sample
from loader.spark import failure
from loader.spark.index import Examined, IndexTask, examined, groups
from loader.spark.session import session
from loader.spark.wave import StagingPaths, Verified, Wave

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import ExitStack

    from pyspark.sql import SparkSession

    from jostler.schema import Fields, Use
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.plan.due import DayKey, TableDay
    from loader.plan.trust import IndexedBundle
    from loader.planner import Planner
    from loader.stopping import Stopping

THREADS = 8
INDEX_THREADS = 2
"""Threads that examine indexes in the driver; each has four more that read ahead."""
POOL = "spark.scheduler.pool"
DRIVER_BYTES = 16 * 1024 * 1024
"""Up to this size of objects at a time, the driver's threads read indexes and bundles themselves:
Spark alone would take longer to start."""
ROWS_AT_ONCE = 32_000_000
"""How many rows' keys the driver holds, 8 bytes each, unless one day has more."""


@dataclass(slots=True)
class Believed:
    """A day whose rows are to be taken from its index.

    Attributes:
        verified: the result, complete unless `distrusted` is set.
        bundles: its bundles with their indexes.
        sampled: the numbers of the bundles that are read in full as well.
    """

    verified: Verified
    bundles: list[IndexedBundle]
    sampled: frozenset[int]

    @property
    def rows(self) -> int:
        """How many rows its bundles have, by their metadata."""
        return sum(one.rows for one in self.bundles)


class Verifier:
    """Verifies waves of days; several threads may each verify a wave of another experiment.

    Args:
        options: how to verify.
        console: shows events and progress.
        planner: knows the tables.
        staging: the names of the objects that the run writes.
        stopping: knows whether the run is to end early.
        stack: keeps Spark's session until the run ends.

    Attributes:
        progress: the run's progress.
        refused: the days of which BigQuery or the counts refused what their index says; they are
            verified in full.
    """

    def __init__(
        self,
        options: Options,
        console: Console,
        planner: Planner,
        *,
        staging: StagingPaths,
        stopping: Stopping,
        stack: ExitStack,
    ) -> None:
        self._options = options
        self._console = console
        self._planner = planner
        self._staging = staging
        self._stopping = stopping
        self._stack = stack
        self._running: SparkSession | None = None
        self._native_reported = False
        self._lock = threading.Lock()
        self._starting = threading.Lock()
        self._driver_bytes = 0
        self.progress = Progress(days=0, size_bytes=0)
        self.refused: dict[DayKey, str] = {}

    def verify(self, days: list[TableDay]) -> Iterator[Verified]:
        """Verify days of one experiment; yield those that are taken from their index first."""
        left = {day.key: (day, "") for day in days}
        for believed in self._by_index(days, left):
            found = believed.verified
            if found.distrusted:
                left[found.day.key] = found.day, found.distrusted
                say_distrusted(self._console, found.day, found.distrusted)
                continue
            del left[found.day.key]
            self.progress.add(1, found.day.size_bytes, found.rows)
            # These days are loaded while the bundles of the others are read.
            yield found
        if left and not self._stopping.requested.is_set():
            why = {key: text for key, (_, text) in left.items()}
            for found in self._in_full([day for day, _ in left.values()]):
                found.distrusted = why[found.day.key]
                found.full = len(found.day.bundles)
                yield found

    # By the index

    def _by_index(
        self, days: list[TableDay], left: dict[DayKey, tuple[TableDay, str]]
    ) -> list[Believed]:
        """Return the days that can be trusted, with what their indexes say.

        Args:
            days: the days.
            left: gets the reason for each day that cannot.
        """
        if not self._options.trusts_indexes:
            return []
        trust = Trust()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="trust") as pool:
            asked = list(pool.map(lambda day: self._believed(trust, day), days))
        found = []
        for day, one in zip(days, asked, strict=True):
            if isinstance(one, str):
                left[day.key] = day, one
            else:
                found.append(one)
        for part in _parts(found):
            self._examine(part)
        return found

    def _believed(self, trust: Trust, day: TableDay) -> Believed | str:
        """Return what is needed to take a day from its index, or why that is impossible."""
        if day.key in self.refused:
            return self.refused[day.key]
        try:
            bundles = trust.of(day, self._planner.ready[str(day.table.name)].fields)
        except UntrustedError as exc:
            return str(exc)
        verified = Verified(day=day, job=self._job_of(day))
        return Believed(verified, bundles, sample(len(bundles), self._options.sample))

    def _examine(self, part: list[Believed]) -> None:
        """Read the indexes of some days, and complete their results."""
        owners, tasks, tables = _tasks(part, self._fields(), self._options.native)
        with self._in_driver_if_small(sum(task.read_bytes for task in tasks)) as small:
            examined = self._by_threads(tasks, tables) if small else None
        if examined is None:
            examined = self._by_spark(tasks, tables, part[0].verified.day.table.experiment)
        keys: dict[int, list[bytes]] = {number: [] for number in range(len(part))}
        for one in examined:
            number = owners[one.ordinal]
            keys[number].append(one.keys)
            verified = part[number].verified
            verified.distrusted = verified.distrusted or one.problem
        for number, believed in enumerate(part):
            _complete(believed, b"".join(keys.pop(number)))

    def _by_threads(self, tasks: list[IndexTask], tables: tuple[Fields, ...]) -> list[Examined]:
        patience_s = self._options.patience_s
        parts = groups(tasks, INDEX_THREADS)
        with ThreadPoolExecutor(INDEX_THREADS, thread_name_prefix="index") as pool:
            found = pool.map(lambda part: list(examined(part, tables, patience_s)), parts)
            return [one for part in found for one in part]

    def _by_spark(
        self, tasks: list[IndexTask], tables: tuple[Fields, ...], experiment: str
    ) -> list[Examined]:
        from loader.spark import engine  # noqa: PLC0415 - pyspark, which a small run needs not

        try:
            return engine.examine(self._spark(experiment), tasks, tables, self._options.patience_s)
        except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
            why = f"SparkError: {failure.cause(exc)}"
            return [Examined(task.data.ordinal, b"", why) for task in tasks]

    # In full

    def _in_full(self, days: list[TableDay]) -> list[Verified]:
        """Read all bundles of days, in the driver if they are small."""
        found = None
        with self._in_driver_if_small(sum(day.size_bytes for day in days)) as small:
            if small:
                found = self._in_driver(days)
        return self._in_spark(days) if found is None else found

    @contextmanager
    def _in_driver_if_small(self, size_bytes: int) -> Iterator[bool]:
        """Yield whether the driver reads so many bytes itself, beside those that it reads now."""
        with self._lock:
            small = self._driver_bytes + size_bytes <= DRIVER_BYTES
            small = small and self._options.engine is Engine.AUTO
            self._driver_bytes += size_bytes if small else 0
        try:
            yield small
        finally:
            with self._lock:
                self._driver_bytes -= size_bytes if small else 0

    def _in_driver(self, days: list[TableDay]) -> list[Verified] | None:
        """Read all bundles of days without Spark; return None if Spark must read them."""
        from loader.spark import driver  # noqa: PLC0415 - pyarrow, which few runs need

        wave = self._wave(days)
        options = self._options
        try:
            driver.run(wave, max_bad=options.max_bad_fraction, patience_s=options.patience_s)
        except driver.TooManyRowsError:
            return None
        except Exception as exc:  # noqa: BLE001 - Spark finds out which day it concerns
            why = f"{type(exc).__name__}: {exc}"
            self._console.event("driver.failed", "warning", why=why, next="Spark reads the days")
            return None
        self._say_native()
        size_bytes = sum(day.size_bytes for day in days)
        self.progress.add(len(days), size_bytes, sum(found.rows for found in wave.days))
        return wave.days

    def _in_spark(self, days: list[TableDay]) -> list[Verified]:
        """Read all bundles of days; if that fails, verify each day alone to find which fail."""
        from loader.spark import engine  # noqa: PLC0415 - pyspark, which a small run needs not

        spark = self._spark(days[0].table.experiment)
        if self._stopping.requested.is_set():  # it came while Spark was starting
            return []
        wave = self._wave(days)
        total = sum(day.size_bytes for day in days)
        try:
            counted = spark.sparkContext.accumulator(0)
            with self._console.progress(spark, self.progress, (len(days), total), counted):
                engine.run(
                    spark,
                    wave,
                    max_bad=self._options.max_bad_fraction,
                    patience_s=self._options.patience_s,
                    counted=counted,
                )
        except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
            if self._stopping.requested.is_set():  # a signal cancelled the Spark job
                return []
            if len(days) > 1:
                return [found for day in days for found in self._in_spark([day])]
            self._console.event(
                "spark.failed", "error", table=days[0].key[0], day=str(days[0].date), trace=str(exc)
            )
            return [Verified(day=days[0], error=f"SparkError: {failure.cause(exc)}")]
        return wave.days

    def _spark(self, experiment: str) -> SparkSession:
        """Return Spark's session for an experiment's jobs; start it the first time.

        Jobs of one experiment queue in their pool, and pools take turns with each other's tasks.
        """
        with self._starting:
            if self._running is None:
                self._running = self._stack.enter_context(
                    session(self._options.master, self._console.spark_line, light=True)
                )
                self._stopping.cancel = self._running.sparkContext.cancelAllJobs
                self._stopping.listen()
                self._say_native()
        # A property of the thread, and each wave has its own ("Job Scheduling", Spark's docs).
        self._running.sparkContext.setLocalProperty(POOL, experiment)
        return self._running

    def _say_native(self) -> None:
        """Report, once, that rows are judged without the native module."""
        why = find(self._options.native).why_not
        if why and not self._native_reported:
            self._console.event("native.unused", "info", why=why, next="rows are judged in Python")
        self._native_reported = True

    def _wave(self, days: list[TableDay]) -> Wave:
        native = self._options.native
        return Wave.of(days, self._fields(), self._staging, self._job_of, native=native)

    def _fields(self) -> dict[str, Fields]:
        return {name: ready.fields for name, ready in self._planner.ready.items()}

    def _job_of(self, day: TableDay) -> str:
        ready = self._planner.ready[str(day.table.name)]
        return job_id(day, ready, day.attempt + 1)


def say_distrusted(console: Console, day: TableDay, why: str) -> None:
    """Report that a day is not taken from its index, and why."""
    console.event(
        "day.distrusted",
        "warning",
        table=str(day.table.name),
        day=str(day.date),
        why=why,
        next="all its bundles are read",
    )


def _parts(found: Iterable[Believed]) -> Iterator[list[Believed]]:
    """Divide days so that the driver can hold the keys of a part."""
    part: list[Believed] = []
    rows = 0
    for one in found:
        if part and rows + one.rows > ROWS_AT_ONCE:
            yield part
            part, rows = [], 0
        part.append(one)
        rows += one.rows
    if part:
        yield part


def _tasks(
    part: list[Believed], fields: dict[str, Fields], native: Use
) -> tuple[list[int], list[IndexTask], tuple[Fields, ...]]:
    """Return the tasks of some days, the number of the day of each, and the tables' columns."""
    days = [one.verified.day for one in part]
    # Without staging: nothing is written for days that are taken from their index.
    wave = Wave.of(days, fields, StagingPaths(staging="", run_id=""), native=native)
    owners = [number for number, one in enumerate(part) for _ in one.bundles]
    places = [(one, n) for one in part for n in range(len(one.bundles))]
    tasks = [
        IndexTask(
            data=data,
            name=believed.bundles[n].index.name,
            generation=believed.bundles[n].index.generation,
            size_bytes=believed.bundles[n].index.size_bytes,
            rows=believed.bundles[n].rows,
            sampled=n in believed.sampled,
        )
        for data, (believed, n) in zip(wave.tasks, places, strict=True)
    ]
    return owners, tasks, wave.tables


def _complete(believed: Believed, keys: bytes) -> None:
    """Fill in the result of a day, given the keys of all its rows."""
    verified = believed.verified
    verified.sampled = len(believed.sampled)
    if verified.distrusted:
        return
    names = np.sort(np.frombuffer(keys, dtype="<i8"))
    # Equal keys are a repeated Filename or, rarely, two names with equal hashes.  Reading the day
    # in full distinguishes them, so neither does harm.
    if len(names) > 1 and bool((names[1:] == names[:-1]).any()):
        verified.distrusted = "a node has stored a Filename more than once"
        return
    verified.rows = len(names)
    verified.trusted = len(believed.bundles)
    verified.uris = [one.bundle.url for one in believed.bundles]
