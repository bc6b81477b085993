"""The Spark job of a wave: verify bundles, find repeated rows, write to staging.

**Invariant:** the driver gets one line per bundle and no rows.  Executors write cleaned copies and
bad rows to staging, from where load jobs read them.  A failure concerns only its own day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.spark import steps
from loader.spark.findings import DDL
from loader.spark.index import Examined, examined, groups
from loader.spark.limits import SAMPLE_ROWS
from loader.spark.rewrite import DDL as WRITTEN_DDL
from loader.spark.rewrite import Copy, written
from loader.spark.verify import verified
from loader.spark.wave import GROUPS_PER_CORE, refused_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, Row, SparkSession

    from jostler.schema import Fields
    from loader.spark.index import IndexTask
    from loader.spark.verify import Task
    from loader.spark.wave import Verified, Wave


def run(
    spark: SparkSession,
    wave: Wave,
    *,
    max_bad: float,
    patience_s: float,
    counted: Accumulator[int] | None = None,
    rejects: bool = True,
) -> list[Row]:
    """Verify the days of a wave, and write to staging what their load jobs need.

    Args:
        spark: the session.
        wave: the wave; the results are stored in its days.
        max_bad: the largest fraction of bad rows with which a day is loaded.
        patience_s: how long a failing request to a bucket is retried.
        counted: an accumulator of verified rows, updated at the end of each task.
        rejects: whether to write bad rows too.

    Returns:
        The columns of `steps.per_bundle` for each bundle.
    """
    cores = spark.sparkContext.defaultParallelism
    groups = wave.groups(cores)
    found = find(spark, groups, wave.tables, patience_s, counted)
    rows = steps.notable(steps.marked(found)).persist()
    try:
        bundles = steps.per_bundle(rows).collect()
        for bundle in bundles:
            _count(wave, bundle)
        copies = _choose(wave, bundles, max_bad, rejects=rejects)
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

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        for batch in batches:
            for number in batch.column(0).to_pylist():
                for one in examined(parts[number], tables, patience_s):
                    yield pa.RecordBatch.from_pydict(
                        {"bundle": [one.ordinal], "keys": [one.keys], "problem": [one.problem]}
                    )

    found = spark.range(0, len(parts), 1, len(parts)).mapInArrow(
        task, "bundle BIGINT, keys BINARY, problem STRING"
    )
    return [Examined(one.bundle, bytes(one.keys), one.problem) for one in found.collect()]


def find(
    spark: SparkSession,
    groups: list[list[Task]],
    tables: tuple[Fields, ...],
    patience_s: float,
    counted: Accumulator[int] | None = None,
) -> DataFrame:
    """Verify each group of bundles in one task; the resulting columns are `findings.DDL`."""

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


def _choose(wave: Wave, bundles: list[Row], max_bad: float, *, rejects: bool) -> dict[int, Copy]:
    """Set the objects to load for each day; return what must be written to staging first."""
    copies: dict[int, Copy] = {}
    left = {id(day): day.rejected if day.is_loadable(max_bad) else SAMPLE_ROWS for day in wave.days}
    for bundle in sorted(bundles, key=lambda bundle: bundle.bundle):
        verdict, task = wave.owners[bundle.bundle], wave.tasks[bundle.bundle]
        if verdict.error:
            continue
        most = min(bundle.bad, left[id(verdict)]) if rejects else 0
        left[id(verdict)] -= most
        unwanted = bundle.bad + bundle.repeated
        loads = verdict.is_loadable(max_bad) and (not unwanted or unwanted < bundle.rows)
        if loads and not unwanted and not bundle.bare:
            verdict.uris.append(f"{task.bucket}/{task.name}")
        elif loads or most:
            copies[bundle.bundle] = _copy(wave, bundle, most, max_bad, loads=loads)
    return copies


def _copy(wave: Wave, bundle: Row, most: int, max_bad: float, *, loads: bool) -> Copy:
    """Return which objects to write for a bundle, and add them to its day."""
    verdict, task = wave.owners[bundle.bundle], wave.tasks[bundle.bundle]
    refused = refused_id(verdict.job, wave.staging.run_id)
    copy = rejects = ""
    bucket, name = wave.copy_name(bundle.bundle)
    if loads:
        copy = name
        verdict.staged.append((bucket, name))
        verdict.rewritten += 1
        verdict.uris.append(f"{bucket}/{name}")
    if most:
        bucket, rejects = wave.rejects_name(bundle.bundle)
        verdict.staged.append((bucket, rejects))
        verdict.rejects.append(f"{bucket}/{rejects}")
    return Copy(
        task=task,
        bucket=bucket,
        copy=copy,
        bare=bool(bundle.bare),
        corrupt=bundle.corrupt,
        rejects=rejects,
        most=most,
        about={
            "table": str(verdict.day.table.name),
            "date": verdict.day.date.isoformat(),
            "ArchiveURL": f"{task.bucket}/{task.name}",
            "RunID": wave.staging.run_id,
            "JobID": verdict.job if verdict.is_loadable(max_bad) else refused,
        },
    )


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
        verdict: Verified = wave.owners[done.bundle]
        if done.problem:
            verdict.error = verdict.error or done.problem
        elif done.rejects != copies[done.bundle].most:
            verdict.error = verdict.error or f"Rejects: {done.rejects} rows were written"
