"""Compact groups of bundles on executors: one task for each group, the same code as in a thread.

**Invariant:** no row comes to the driver.  A task may run twice, or beside its own repetition, for
compaction allows any number of compactors (see `jostler.archive.compact`).
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from jostler.archive.compact import FAILED, Compacted, Left, compact
from jostler.archive.compact_repeats import WholeDay, compact_day
from loader.bucket import open_bucket
from loader.errors import BucketError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from jostler.archive.compact_plan import Group


def compact_group(
    url: str, group: Group, *, target_bytes: int, version: str, patience_s: float
) -> Compacted:
    """Compact one group of a bucket, or a day whose repeats are to be left out.

    If the bucket cannot be opened, each bundle has that as its error.
    """
    try:
        storage = open_bucket(url, patience_s).storage
    except BucketError as exc:
        left = [
            Left(url=f"{url}/{member.name}", reason=FAILED, why=str(exc))
            for member in group.members
        ]
        return Compacted(left=left)
    if isinstance(group, WholeDay):
        return compact_day(storage, group, target_bytes=target_bytes, version=version)
    return compact(storage, group, target_bytes=target_bytes, version=version)


def compact_groups(
    spark: SparkSession,
    groups: Sequence[tuple[str, Group]],
    *,
    target_bytes: int,
    version: str,
    patience_s: float,
) -> Iterator[Compacted]:
    """Compact groups, each with the URL of its bucket; yield the results."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        for batch in batches:
            for number in batch.column(0).to_pylist():
                url, group = groups[number]
                found = compact_group(
                    url, group, target_bytes=target_bytes, version=version, patience_s=patience_s
                )
                yield pa.RecordBatch.from_pydict({"found": [pickle.dumps(found)]})

    numbers = spark.range(0, len(groups), 1, len(groups))
    for row in numbers.mapInArrow(task, "found BINARY").collect():
        yield pickle.loads(row.found)  # noqa: S301 - our own executors wrote it
