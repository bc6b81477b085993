"""Run a question on Spark over the bundles.

**Invariant:** the driver holds names and counts of bundles, and a bounded part of the answer; rows
are read, judged and parsed by the executors.  A question has a job group of its own, which ends
when its answer is left.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from jostler.format.names import INDEX
from loader.errors import RunError
from loader.query import counting
from loader.query.answer import Answer, Notes, limited
from loader.query.collapsing import without_repeats
from loader.query.googlesql.types import pruned
from loader.query.question import TIME
from loader.query.reading import What, read_part
from loader.query.scan import Scan, parts, scan, span_of
from loader.spark import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from loader.query.counting import Counts
    from loader.query.googlesql.reads import Read, SparkText
    from loader.query.lookups import Lookups
    from loader.query.scan import Bundle
    from loader.query.tables import Tables

PARTS_PER_CORE = 4
PART_BYTES = 32 * 1024 * 1024
STREAMED_BYTES = 4 * 1024 * 1024
"""Of bundles in one part, when rows are shown as they are found: the first ones come soon."""
ROUND_BYTES = 64 * 1024 * 1024
"""About how much of the answer one round of parts may bring to the driver."""
GROWTH = 4
_LIMIT_RE = re.compile(r"\sLIMIT\s+([0-9]+)\s*\Z", re.IGNORECASE)
_WIDE_RE = re.compile(
    r"(?<!Broadcast)Exchange|Aggregate|\bSort\b|\bWindow|TakeOrdered|Limit|CartesianProduct|Sample"
)
SETTINGS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"}


@dataclass(frozen=True, slots=True)
class Reading:
    """One use of a table: what is read of it.

    Attributes:
        read: the use.
        scan: its bundles; None for a table for lookups.
        what: how they are read; None for a table for lookups.
    """

    read: Read
    scan: Scan | None
    what: What | None


def plan(
    text: SparkText, tables: Tables, patience_s: float, *, collapse: bool = False
) -> list[Reading]:
    """List what a question reads.

    Args:
        text: the question.
        tables: the tables.
        patience_s: how long a failing request is retried.
        collapse: whether repeats are left out; their indexes are then read here.

    Raises:
        BucketError: a bucket cannot be listed.
    """
    return [_reading(read, tables, patience_s, collapse=collapse) for read in text.reads]


def _reading(read: Read, tables: Tables, patience_s: float, *, collapse: bool) -> Reading:
    table, columns = tables.table(read.table), tables.columns(read.table)
    if table is None or columns is None:
        return Reading(read, None, None)
    span = span_of(read.range)
    # A view needs a column, and the day costs nothing.
    fields = pruned(columns, read.paths or (("date",),))
    timed = span.by_time or any(field.key == TIME for field in fields)
    what = What(
        datatype=table.sources[0].datatype,
        fields=fields,
        table=table.fields,
        span=span,
        patience_s=patience_s,
    )
    found = scan(table, span, indexes=timed or collapse or span.nodes is not None)
    if collapse and what.datatype != INDEX:  # a row may repeat one of another node
        found.bundles = without_repeats(found.bundles, patience_s)
    found.keep_nodes(span.nodes)
    return Reading(read, found, what)


class SparkRunner:
    """Runs questions in one Spark session.

    Args:
        spark: the session; each question gets a session of its own beside it, for its views.
        lookups: the tables for lookups.
    """

    def __init__(self, spark: SparkSession, lookups: Lookups) -> None:
        self._spark = spark
        self._lookups = lookups

    def frame(
        self, text: SparkText, readings: list[Reading], register: Callable[[SparkSession], None]
    ) -> DataFrame:
        """Return the answer as a DataFrame of Spark; nothing is read yet."""
        return self._frame(text.sql, readings, register, PART_BYTES)[0]

    def answer(
        self,
        text: SparkText,
        readings: list[Reading],
        register: Callable[[SparkSession], None],
        limit: int = 0,
    ) -> Answer:
        """Run a question.

        Args:
            text: the question.
            readings: what it reads.
            register: makes its functions known in a session.
            limit: how many rows to return at the most; 0 for all.

        Raises:
            RunError: Spark refuses it.
        """
        found = _LIMIT_RE.search(text.sql)
        if found:
            # A limit of rows as they come ends the reading early here, which Spark's would not.
            bare = text.sql[: found.start()]
            frame, counts = self._frame(bare, readings, register, STREAMED_BYTES)
            if _is_narrow(frame):
                rows = int(found[1])
                limit = min(rows, limit) if limit else rows
                return self._streamed(frame, counts, readings, limit, none=rows == 0)
        frame, counts = self._frame(text.sql, readings, register, STREAMED_BYTES)
        if _is_narrow(frame):
            return self._streamed(frame, counts, readings, limit)
        if any(_part_bytes(self._spark, one, PART_BYTES) > STREAMED_BYTES for one in readings):
            frame, counts = self._frame(text.sql, readings, register, PART_BYTES)
        return self._whole(frame, counts, readings, limit)

    def _frame(
        self,
        sql: str,
        readings: list[Reading],
        register: Callable[[SparkSession], None],
        part_bytes: int,
    ) -> tuple[DataFrame, Counts]:
        spark = self._spark.newSession()
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        register(spark)
        counts = counting.counts(spark)
        for reading in readings:
            view = self._view(spark, reading, counts, part_bytes)
            view.createOrReplaceTempView(reading.read.view)
        try:
            return spark.sql(sql), counts
        except PySparkException as exc:
            raise RunError(f"Spark refuses the question: {failure.cause(exc)}") from exc

    def _view(
        self, spark: SparkSession, reading: Reading, counts: Counts, part_bytes: int
    ) -> DataFrame:
        if reading.scan is None or reading.what is None:
            return self._lookups.frame(spark, reading.read.table)
        most = _part_bytes(spark, reading, part_bytes)
        return _table(spark, parts(reading.scan.bundles, most), reading.what, counts)

    def _streamed(
        self,
        frame: DataFrame,
        counts: Counts,
        readings: list[Reading],
        limit: int,
        *,
        none: bool = False,
    ) -> Answer:
        """Return the rows part by part, as they are found."""
        schema = _schema(frame)
        found = _rounds(self._spark, frame, schema) if not none else _nothing()
        return Answer(schema, limited(found, limit), lambda: _notes(readings, counts))

    def _whole(
        self, frame: DataFrame, counts: Counts, readings: list[Reading], limit: int
    ) -> Answer:
        """Return the rows after Spark has seen all."""
        schema = _schema(frame)
        batches = limited(_collected(self._spark, frame, schema), limit)
        return Answer(schema, batches, lambda: _notes(readings, counts))


def _part_bytes(spark: SparkSession, reading: Reading, most: int) -> int:
    """Return how large the parts of a table are: several for each core, and none too large."""
    cores = spark.sparkContext.defaultParallelism
    size_bytes = reading.scan.size_bytes if reading.scan else 0
    return min(most, size_bytes // (PARTS_PER_CORE * cores) + 1)


def _table(
    spark: SparkSession, groups: list[list[Bundle]], what: What, counts: Counts
) -> DataFrame:
    schema = from_arrow_schema(what.schema, prefer_timestamp_ntz=True)
    if not groups:
        return spark.createDataFrame([], schema)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from counts.counted(groups[number], read_part, what)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(task, schema)


def _schema(frame: DataFrame) -> pa.Schema:
    return to_arrow_schema(frame.schema, timezone="UTC")


def _is_narrow(frame: DataFrame) -> bool:
    """Return whether each part of the input gives rows of the answer by itself."""
    found = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - PySpark has no public question
    return not _WIDE_RE.search(found)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write each batch as bytes, which the driver gets without Spark making rows of them."""
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"batch": [sink.getvalue().to_pybytes()]})


def _bytes_of(frame: DataFrame) -> DataFrame:
    # The names of an answer's columns may be equal, or have dots, at which Spark would divide them.
    numbered = frame.toDF(*(f"c{nth}" for nth in range(len(frame.columns))))
    return numbered.mapInArrow(_packed, "batch BINARY")


def _unpacked(packed: bytes, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pa.ipc.open_stream(packed) as reader:
        for batch in reader:
            yield batch.rename_columns(schema.names).cast(schema)


def _nothing() -> Generator[pa.RecordBatch]:
    yield from ()


def _rounds(spark: SparkSession, frame: DataFrame, schema: pa.Schema) -> Generator[pa.RecordBatch]:
    """Run the parts some at a time: the more, the less they bring."""
    rdd = _bytes_of(frame).rdd
    total, done = rdd.getNumPartitions(), 0
    count = max(1, spark.sparkContext.defaultParallelism)
    with _job_group(spark):
        while done < total:
            numbers = list(range(done, min(done + count, total)))
            found = spark.sparkContext.runJob(
                rdd, lambda rows: [row.batch for row in rows], numbers
            )
            done += len(numbers)
            size_bytes = sum(map(len, found))
            for one in found:
                yield from _unpacked(bytes(one), schema)
            fitting = ROUND_BYTES * len(numbers) // (size_bytes + 1)
            count = max(1, min(count * GROWTH, fitting))


def _collected(
    spark: SparkSession, frame: DataFrame, schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    """Bring the answer to the driver, one partition at a time."""
    with _job_group(spark):
        for row in _bytes_of(frame).toLocalIterator():
            yield from _unpacked(bytes(row.batch), schema)


class _job_group:  # noqa: N801 - used as a function
    """The jobs of one question: cancelled if its answer is left before the end."""

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._name = f"jostler-query-{uuid.uuid4().hex[:12]}"

    def __enter__(self) -> None:
        self._context.setJobGroup(self._name, "jostler-query", interruptOnCancel=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._context.cancelJobGroup(self._name)
        if isinstance(exc, PySparkException) or (kind and kind.__name__ == "Py4JJavaError"):
            raise RunError(f"Spark: {failure.cause(exc)}") from exc  # type: ignore[arg-type]


def _notes(readings: list[Reading], counts: Counts) -> Notes:
    found = counts.notes()
    scans = [one.scan for one in readings if one.scan]
    sizes = {bundle.url: bundle.size_bytes for one in scans for bundle in one.bundles}
    problems = [problem for one in scans for problem in one.problems]
    return replace(
        found,
        bundles=sum(len(one.bundles) for one in scans),
        size_bytes=sum(one.size_bytes for one in scans),
        done_bytes=counts.done_bytes(sizes),
        problems=problems,
    )
