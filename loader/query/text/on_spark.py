"""Make token filters on a cluster: executors do for each bundle what threads of the driver do."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.query.text.indexing import Indexed, index_bundle
from loader.spark.index import groups
from loader.spark.wave import GROUPS_PER_CORE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from loader.query.text.indexing import IndexTask


def indexed(task: IndexTask, patience_s: float) -> Indexed:
    """Make the filters of one bundle; that the bucket cannot be opened is its problem."""
    try:
        storage = open_bucket(task.bucket, patience_s).storage
    except BucketError as exc:
        return Indexed(url=f"{task.bucket}/{task.name}", problem=str(exc))
    return index_bundle(storage, task)


def index_bundles(
    spark: SparkSession, tasks: list[IndexTask], patience_s: float
) -> Iterator[Indexed]:
    """Make the filters of some bundles; yield what became of each."""
    parts = groups(tasks, GROUPS_PER_CORE * spark.sparkContext.defaultParallelism)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        for batch in batches:
            for number in batch.column(0).to_pylist():
                for one in parts[number]:
                    found = pickle.dumps(indexed(one, patience_s))
                    yield pa.RecordBatch.from_pydict({"found": [found]})

    numbers = spark.range(0, len(parts), 1, len(parts))
    for row in numbers.mapInArrow(task, "found BINARY").toLocalIterator():
        yield pickle.loads(row.found)  # noqa: S301 - our own executors wrote it
