"""Compact groups of bundles on executors: one task for each group, the same code as in a thread.

**Invariant:** no row comes to the driver.  A task may run twice, or beside its own repetition, for
compaction allows any number of compactors (see `jostler.archive.compact`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.archive.compact import FAILED, Compacted, Left, compact
from jostler.archive.compact_repeats import WholeDay, compact_day
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark.parts import of_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from jostler.archive.compact_plan import Group
    from jostler.format.compression import Compression


def compact_group(
    url: str,
    group: Group,
    *,
    target_bytes: int,
    version: str,
    compression: Compression | None,
    patience_s: float,
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
        return compact_day(
            storage, group, target_bytes=target_bytes, version=version, compression=compression
        )
    return compact(
        storage, group, target_bytes=target_bytes, version=version, compression=compression
    )


def compact_groups(
    spark: SparkSession,
    groups: Sequence[tuple[str, Group]],
    *,
    target_bytes: int,
    version: str,
    compression: Compression | None,
    patience_s: float,
) -> list[Compacted]:
    """Compact groups, each with the URL of its bucket; return the results in order."""

    def work(part: tuple[str, Group]) -> Iterator[Compacted]:
        yield compact_group(
            *part,
            target_bytes=target_bytes,
            version=version,
            compression=compression,
            patience_s=patience_s,
        )

    return of_parts(spark, groups, work)
