"""Spark at work on a wave: verify, find repeats, write dirty bundles again.

**Invariant:** of rows the driver sees the bad ones alone, one after the other, on their way into a
file for each day; everything else stays with the executors.  What fails, fails its own day.
"""

from __future__ import annotations

import json
import tempfile
from typing import TYPE_CHECKING

from loader.spark import steps
from loader.spark.findings import DDL
from loader.spark.rewrite import DDL as REWRITE_DDL
from loader.spark.rewrite import Copy, rewritten
from loader.spark.verify import verified

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, Row, SparkSession

    from jostler.schema import Fields
    from loader.spark.verify import Task
    from loader.spark.wave import Verified, Wave


def run(
    spark: SparkSession,
    wave: Wave,
    *,
    max_bad: float,
    patience_s: float,
    counted: Accumulator[int] | None = None,
) -> None:
    """Verify the days of a wave, and write again what is dirty of those that will be loaded.

    Args:
        spark: the session.
        wave: its days are filled in.
        max_bad: a day with a larger part of bad rows is not loaded.
        patience_s: how long a request to a bucket is tried again.
        counted: is told of the rows verified, whenever a task has ended.
    """
    cores = spark.sparkContext.defaultParallelism
    groups = wave.groups(cores)
    found = find(spark, groups, wave.tables, patience_s, counted)
    rows = steps.notable(steps.marked(found)).persist()
    try:
        bundles = steps.per_bundle(rows).collect()
        for bundle in bundles:
            _count(wave, bundle)
        if any(bundle.bad for bundle in bundles):
            _keep_bad_rows(wave, steps.bad_rows(rows))
        copies = _choose(wave, bundles, max_bad)
        if copies:
            _write_again(spark, wave, copies, rows, patience_s)
    finally:
        rows.unpersist()


def find(
    spark: SparkSession,
    groups: list[list[Task]],
    tables: tuple[Fields, ...],
    patience_s: float,
    counted: Accumulator[int] | None = None,
) -> DataFrame:
    """Read the bundles of each group in a task of its own; the columns are `findings.DDL`."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for found in verified(groups[number], tables, patience_s):
                    if counted is not None:
                        counted.add(found.num_rows)
                    yield found

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(task, DDL)


def _count(wave: Wave, bundle: Row) -> None:
    verdict = wave.owners[bundle.bundle]
    if bundle.unreadable:
        verdict.error = verdict.error or bundle.unreadable
    verdict.rows += bundle.rows
    verdict.plain_bytes += bundle.plain_bytes
    verdict.rejected += bundle.bad
    verdict.repeated += bundle.repeated
    verdict.renewed += bundle.renewed
    verdict.corrupt += bool(bundle.corrupt)


def _keep_bad_rows(wave: Wave, bad: DataFrame) -> None:
    for row in bad.toLocalIterator():
        verdict = wave.owners[row.bundle]
        if verdict.rejects is None:
            verdict.rejects = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is told
        task = wave.tasks[row.bundle]
        told = {
            "table": str(verdict.day.table.name),
            "date": verdict.day.date.isoformat(),
            "ArchiveURL": f"{task.bucket}/{task.name}",
            "Line": row.line,
            "Filename": row.filename,
            "Field": row.field,
            "Reason": row.reason,
            "Detail": row.detail,
            "Row": row.text,
        }
        verdict.rejects.write(json.dumps(told).encode() + b"\n")


def _choose(wave: Wave, bundles: list[Row], max_bad: float) -> dict[int, Copy]:
    """Name for each day the objects to load; return those that must be written first."""
    copies: dict[int, Copy] = {}
    for bundle in sorted(bundles, key=lambda bundle: bundle.bundle):
        verdict, task = wave.owners[bundle.bundle], wave.tasks[bundle.bundle]
        unwanted = bundle.bad + bundle.repeated
        lost = verdict.error or verdict.bad_fraction > max_bad
        if lost or (unwanted and unwanted == bundle.rows):
            continue
        if not unwanted and not bundle.bare:
            verdict.uris.append(f"{task.bucket}/{task.name}")
            continue
        bucket, name = wave.copy_name(bundle.bundle)
        copies[bundle.bundle] = Copy(task=task, bare=bundle.bare, bucket=bucket, name=name)
        verdict.staged.append((bucket, name))
        verdict.rewritten += 1
        verdict.uris.append(f"{bucket}/{name}")
    return copies


def _write_again(
    spark: SparkSession, wave: Wave, copies: dict[int, Copy], rows: DataFrame, patience_s: float
) -> None:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return rewritten(batches, copies, patience_s)

    dirty = spark.createDataFrame([(bundle,) for bundle in copies], "bundle INT")
    tasks = min(len(copies), 2 * spark.sparkContext.defaultParallelism)
    wanted = steps.to_rewrite(dirty, steps.unwanted(rows)).repartition(tasks, "bundle")
    for done in wanted.mapInArrow(task, REWRITE_DDL).collect():
        verdict: Verified = wave.owners[done.bundle]
        if done.problem:
            verdict.error = verdict.error or done.problem
