"""The audit on a cluster: executors check bundles with the same function as threads do.

**Invariant:** the verdicts are those of `jostler.archive.audit`.  The driver gets the problems, and
which rows occur more than once; no row and no key.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from jostler.archive.audit.audit import BundleFound, found_of, summed
from jostler.storage import open_storage
from loader.spark.index import groups
from loader.spark.wave import GROUPS_PER_CORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from jostler.archive.audit.audit import DayFound
    from jostler.archive.audit.days import Limits, Schemas
    from jostler.archive.audit.scope import Bundle, ListedDay
    from jostler.storage import Storage

DDL = "day INT, bundle INT, line INT, key BINARY, found BINARY"


@dataclass(frozen=True, slots=True)
class AuditTask:
    """A bundle to check: the numbers of its day and of it in the day."""

    day: int
    bundle: int
    listed: Bundle

    @property
    def read_bytes(self) -> int:
        """How many bytes of objects it takes."""
        return self.listed.size_bytes


class _Repeated:
    """The repeats of a day, as Spark found them."""

    def __init__(self, places: Iterable[Sequence[tuple[int, int]]]) -> None:
        self._places = places

    def add(self, bundle: int, keys: Iterable[bytes]) -> None:
        """Take nothing: the keys stayed on the executors."""

    def repeated(self) -> Iterable[Sequence[tuple[int, int]]]:
        """Return bundle and line of the rows that are equal."""
        return self._places


def audit_days(
    spark: SparkSession,
    url: str,
    days: Sequence[ListedDay],
    *,
    limits: Limits,
    schemas: Schemas,
    patience_s: float,
) -> Iterator[DayFound]:
    """Yield what is found of some days of a bucket.

    Args:
        spark: the session.
        url: of the bucket.
        days: what the bucket lists.
        limits: from when on a day has too many small bundles.
        schemas: looks at table schemas.
        patience_s: how long a failing request is retried.
    """
    tasks = [
        AuditTask(number, nth, bundle)
        for number, day in enumerate(days)
        for nth, bundle in enumerate(day.bundles)
    ]
    results, same = _run(spark, url, tasks, patience_s) if tasks else ({}, {})
    for number, day in enumerate(days):
        found = [results[number][nth] for nth in range(len(day.bundles))]
        yield summed(day, found, _Repeated(same.get(number, [])), limits, schemas)


def _run(
    spark: SparkSession, url: str, tasks: list[AuditTask], patience_s: float
) -> tuple[dict[int, dict[int, BundleFound]], dict[int, list[list[tuple[int, int]]]]]:
    """Return what was found of each bundle, and the places of equal rows, by day."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark's own name; only with Spark

    results: dict[int, dict[int, BundleFound]] = defaultdict(dict)
    same: dict[int, list[list[tuple[int, int]]]] = defaultdict(list)
    parts = groups(tasks, GROUPS_PER_CORE * spark.sparkContext.defaultParallelism)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for one in parts[number]:
                    yield _batch(one, found_of(_storage(url, patience_s), one.listed))

    # Persisted, because two questions follow: each would otherwise read all bundles again.
    rows = spark.range(0, len(parts), 1, len(parts)).mapInArrow(task, DDL).persist()
    try:
        for row in rows.where("found IS NOT NULL").select("day", "bundle", "found").collect():
            results[row.day][row.bundle] = pickle.loads(row.found)  # noqa: S301 - our own executors wrote it
        places = F.collect_list(F.struct("bundle", "line")).alias("places")
        keyed = rows.where("key IS NOT NULL").groupBy("day", "key").agg(places)
        for row in keyed.where(F.size("places") > 1).select("day", "places").collect():
            same[row.day].append([(place.bundle, place.line) for place in row.places])
    finally:
        rows.unpersist()
    return results, same


def _batch(task: AuditTask, found: BundleFound) -> pa.RecordBatch:
    """Return one row for the bundle, and one for each of its rows that has a key."""
    import pyarrow as pa  # noqa: PLC0415 - on the executor

    keyed = [(line, key) for line, key in enumerate(found.keys, 1) if key]
    size = len(keyed) + 1
    without_keys = pickle.dumps(replace(found, keys=()))
    columns: dict[str, Any] = {
        "day": pa.array([task.day] * size, pa.int32()),
        "bundle": pa.array([task.bundle] * size, pa.int32()),
        "line": pa.array([None, *(line for line, _ in keyed)], pa.int32()),
        "key": pa.array([None, *(key for _, key in keyed)], pa.binary()),
        "found": pa.array([without_keys] + [None] * len(keyed), pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


@cache  # once per process: a client must not be used across a fork
def _storage(url: str, patience_s: float) -> Storage:
    return open_storage(url, patience_s)
