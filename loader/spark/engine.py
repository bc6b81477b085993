"""The Spark job of a wave: verify bundles, find repeated rows, write to staging.

**Invariant:** the driver gets one line per bundle and no rows.  Executors write cleaned copies and
bad rows to staging, from where load jobs read them.  A failure concerns only its own day.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from loader.spark import steps
from loader.spark.choice import choose, count, note_written, summed
from loader.spark.index import examined, groups
from loader.spark.parts import of_parts
from loader.spark.rewrite import DDL as WRITTEN_DDL
from loader.spark.rewrite import written
from loader.spark.verify import verified
from loader.spark.wave import GROUPS_PER_CORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from jostler.schema import Fields
    from loader.spark.choice import BundleResult
    from loader.spark.index import Examined, IndexTask
    from loader.spark.rewrite import Copy
    from loader.spark.verify import Task
    from loader.spark.wave import Wave

PARTITION_BYTES = 128 * 1024 * 1024
"""Packed bytes for each task that looks for repeated rows, which holds 32 bytes for each row."""


def run(
    spark: SparkSession,
    wave: Wave,
    *,
    max_bad: float,
    patience_s: float,
    counted: Accumulator[int] | None = None,
    rejects: bool = True,
) -> list[BundleResult]:
    """Verify the days of a wave, and write to staging what their load jobs need.

    Args:
        spark: the session.
        wave: the wave; the results are stored in its days.
        max_bad: the largest fraction of bad rows with which a day is loaded.
        patience_s: how long a failing request to a bucket is retried.
        counted: an accumulator of verified rows, updated at the end of each task.
        rejects: whether to write bad rows too.

    Returns:
        The result of each bundle.
    """
    cores = spark.sparkContext.defaultParallelism
    # Persisted, because they are used twice: for the results of bundles, and for what is written.
    rows = find(spark, wave.groups(cores), wave.tables, patience_s, counted).persist()
    try:
        bundles = summed_up(rows)
        for bundle in bundles:
            count(wave, bundle)
        copies = choose(wave, bundles, max_bad, rejects=rejects)
        if copies:
            _write(spark, wave, copies, rows, patience_s)
        return bundles
    finally:
        rows.unpersist()


def examine(
    spark: SparkSession, tasks: list[IndexTask], tables: tuple[Fields, ...], patience_s: float
) -> list[Examined]:
    """Examine the indexes of trusted bundles; the driver gets 8 bytes for each row."""
    parts = groups(tasks, GROUPS_PER_CORE * spark.sparkContext.defaultParallelism)
    return of_parts(spark, parts, lambda part: examined(part, tables, patience_s))


def find(
    spark: SparkSession,
    groups: list[list[Task]],
    tables: tuple[Fields, ...],
    patience_s: float,
    counted: Accumulator[int] | None = None,
) -> DataFrame:
    """Verify each group of bundles in one task, then find repeated rows; see `steps.marked`."""
    size_bytes = sum(task.size_bytes for group in groups for task in group)
    partitions = 1 + size_bytes // PARTITION_BYTES

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for found in verified(groups[number], tables, patience_s):
                    if counted is not None:
                        # For progress only: a task that runs again counts twice (Spark's "RDD
                        # Programming Guide", Accumulators).
                        counted.add(sum(bundle.whole.rows for bundle in found.bundles))
                    yield steps.dealt(found, partitions)

    found = spark.range(0, len(groups), 1, len(groups)).mapInArrow(task, steps.DEALT)
    return steps.marked(found, partitions)


def summed_up(rows: DataFrame) -> list[BundleResult]:
    """Return the result of each bundle, given what `find` returns: here Spark does the work."""
    lines = steps.results(rows).collect()
    repeated: Counter[int] = Counter()
    renewed: Counter[int] = Counter()
    for line in lines:
        repeated[line.bundle] += line.repeated
        renewed[line.bundle] += line.renewed
    wholes = ((line.bundle, line.whole.asDict()) for line in lines if line.whole)
    return summed(wholes, repeated, renewed)


def _write(
    spark: SparkSession, wave: Wave, copies: dict[int, Copy], rows: DataFrame, patience_s: float
) -> None:
    tables = wave.tables

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return written(batches, copies, tables, patience_s)

    dirty = spark.createDataFrame([(bundle,) for bundle in copies], "bundle INT")
    tasks = min(len(copies), 2 * spark.sparkContext.defaultParallelism)
    wanted = steps.to_write(dirty, steps.unwanted(rows)).repartition(tasks, "bundle")
    for done in wanted.mapInArrow(task, WRITTEN_DDL).collect():
        note_written(wave, copies, done.bundle, done.rejects, done.problem)
