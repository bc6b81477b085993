"""Run a question on Spark over the bundles.

**Invariant:** the driver holds names and counts of bundles, and a bounded part of the answer; rows
are read, judged and parsed by the executors.  A question has a job group of its own, which ends
when its answer is left.
"""

from __future__ import annotations

import pickle
import re
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from jostler.format.names import INDEX
from loader.errors import RunError
from loader.query import counting
from loader.query.answer import Answer, Notes, limited
from loader.query.collapsing import without_repeats
from loader.query.collecting import collected, nothing, rounds, schema_of
from loader.query.googlesql.types import pruned
from loader.query.pieces import divided, has_large
from loader.query.question import TIME
from loader.query.reading import What, read_part
from loader.query.scan import Scan, parts, scan, span_of
from loader.spark import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from loader.query.counting import Counts
    from loader.query.googlesql.reads import Read, SparkText
    from loader.query.lookups import Lookups
    from loader.query.pieces import Pieces
    from loader.query.scan import Bundle
    from loader.query.tables import Tables

PARTS_PER_CORE = 4
PART_BYTES = 32 * 1024 * 1024
STREAMED_BYTES = 4 * 1024 * 1024
"""Of bundles in one part, when rows are shown as they are found: the first ones come soon."""
_LIMIT_RE = re.compile(r"\sLIMIT\s+([0-9]+)\s*\Z", re.IGNORECASE)
_SHUFFLED_RE = re.compile(r"(?<!Broadcast)Exchange")
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
        return self._frame(text.sql, readings, register, PART_BYTES).frame

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
        ends = _LIMIT_RE.search(text.sql)
        if ends:
            # A limit of rows as they come ends the reading early here, which Spark's would not.
            bare = text.sql[: ends.start()]
            made = self._frame(bare, readings, register, STREAMED_BYTES)
            if _is_narrow(made.frame):
                rows = int(ends[1])
                limit = min(rows, limit) if limit else rows
                return self._streamed(made, readings, limit, none=rows == 0)
        made = self._frame(text.sql, readings, register, STREAMED_BYTES)
        if _is_narrow(made.frame):
            return self._streamed(made, readings, limit)
        again = partial(self._frame, text.sql, readings, register, PART_BYTES)
        # Before a shuffle each row is read when the first one of the answer comes.
        divide = _SHUFFLED_RE.search(_executed(made.frame)) is not None
        scans = [one.scan for one in readings if one.scan]
        divide &= any(has_large(one.bundles) for one in scans)
        # Two readings of a table count the same pieces: one would hide what the other found.
        divide &= len({str(one.table.name) for one in scans}) == len(scans)
        sizes = [_part_bytes(self._spark, one, PART_BYTES) for one in readings]
        if divide or max(sizes, default=0) > STREAMED_BYTES:
            made = again(divide=divide)
        return self._whole(made, again, readings, limit)

    def _frame(
        self,
        sql: str,
        readings: list[Reading],
        register: Callable[[SparkSession], None],
        part_bytes: int,
        *,
        divide: bool = False,
    ) -> _Made:
        spark = self._spark.newSession()
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        register(spark)
        counts = counting.counts(spark)
        pieces: list[Pieces] = []
        for reading in readings:
            if reading.scan is None or reading.what is None:
                view = self._lookups.frame(spark, reading.read.table)
            else:
                most = _part_bytes(spark, reading, part_bytes)
                groups = parts(reading.scan.bundles, most)
                if divide:
                    patience_s = reading.what.patience_s
                    groups, made = divided(groups, most, _enough(spark), patience_s)
                    pieces += made
                view = _table(spark, groups, reading.what, counts)
            view.createOrReplaceTempView(reading.read.view)
        try:
            return _Made(spark.sql(sql), counts, pieces)
        except PySparkException as exc:
            raise RunError(f"Spark refuses the question: {failure.cause(exc)}") from exc

    def _streamed(
        self, made: _Made, readings: list[Reading], limit: int, *, none: bool = False
    ) -> Answer:
        """Return the rows part by part, as they are found."""
        schema = schema_of(made.frame)
        found = rounds(self._spark, made.frame, schema) if not none else nothing()
        return Answer(schema, limited(found, limit), lambda: _notes(readings, made))

    def _whole(
        self, made: _Made, again: Callable[[], _Made], readings: list[Reading], limit: int
    ) -> Answer:
        """Return the rows after Spark has seen all.

        If a bundle that was read in pieces is damaged, all is read `again`, without pieces: of
        such a bundle no row counts.
        """
        schema = schema_of(made.frame)
        used = made

        def batches() -> Generator[pa.RecordBatch]:
            nonlocal used
            any_given = False
            with closing(collected(self._spark, made.frame, schema)) as found:
                for batch in found:
                    if not any_given and made.problem():
                        break
                    any_given = True
                    yield batch
            if not (problem := made.problem()):
                return
            if any_given:
                raise RunError(f"{problem}; some rows of the answer have come, the others may not")
            used = again()
            yield from collected(self._spark, used.frame, schema)

        return Answer(schema, limited(batches(), limit), lambda: _notes(readings, used))


@dataclass(frozen=True, slots=True)
class _Made:
    """A question that Spark has understood.

    Attributes:
        frame: its answer.
        counts: what was read for it.
        pieces: the bundles that are read in pieces.
    """

    frame: DataFrame
    counts: Counts
    pieces: list[Pieces]

    def problem(self) -> str:
        """Say which bundle that is read in pieces is damaged, as far as is known."""
        found = ((one.url, one.problem(self.counts.by_key)) for one in self.pieces)
        return next((f"{url}: {why}" for url, why in found if why), "")


def _enough(spark: SparkSession) -> int:
    """Return how many parts keep all cores busy."""
    return PARTS_PER_CORE * spark.sparkContext.defaultParallelism


def _part_bytes(spark: SparkSession, reading: Reading, most: int) -> int:
    """Return how large the parts of a table are: several for each core, and none too large."""
    size_bytes = reading.scan.size_bytes if reading.scan else 0
    return min(most, size_bytes // _enough(spark) + 1)


def _table(
    spark: SparkSession, groups: list[list[Bundle]], what: What, counts: Counts
) -> DataFrame:
    schema = from_arrow_schema(what.schema, prefer_timestamp_ntz=True)
    if not groups:
        return spark.createDataFrame([], schema)
    # Every task gets all of this: as bytes it costs each of them little but its own part.
    packed = [pickle.dumps(group) for group in groups]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                group = pickle.loads(packed[number])  # noqa: S301 - the driver wrote it
                yield from counts.counted(group, read_part, what)

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(task, schema)


def _is_narrow(frame: DataFrame) -> bool:
    """Return whether each part of the input gives rows of the answer by itself."""
    return not _WIDE_RE.search(_executed(frame))


def _executed(frame: DataFrame) -> str:
    found: str = frame._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - PySpark has no public question
    return found


def _notes(readings: list[Reading], made: _Made) -> Notes:
    found = made.counts.notes()
    scans = [one.scan for one in readings if one.scan]
    bundles = [bundle for one in scans for bundle in one.bundles]
    bundles += [bundle for one in made.pieces for bundle in one.bundles]
    sizes = {bundle.key: bundle.reading_bytes for bundle in bundles}
    problems = [problem for one in scans for problem in one.problems]
    return replace(
        found,
        bundles=sum(len(one.bundles) for one in scans),
        size_bytes=sum(one.size_bytes for one in scans),
        done_bytes=made.counts.done_bytes(sizes),
        problems=problems,
    )
