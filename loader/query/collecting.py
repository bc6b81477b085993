"""Bring the rows of an answer from the executors to the driver, a bounded part at a time.

**Invariant:** the jobs of an answer are cancelled if it is left before its end.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema

from loader.errors import RunError
from loader.spark import failure

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

ROUND_BYTES = 64 * 1024 * 1024
"""About how much of the answer one round of parts may bring to the driver."""
GROWTH = 4


def schema_of(frame: DataFrame) -> pa.Schema:
    """Return the columns of an answer."""
    return to_arrow_schema(frame.schema, timezone="UTC")


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


def nothing() -> Generator[pa.RecordBatch]:
    """Yield no rows."""
    yield from ()


def rounds(spark: SparkSession, frame: DataFrame, schema: pa.Schema) -> Generator[pa.RecordBatch]:
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


def collected(
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
