"""Counts of what executors read, on the driver: by bundle, so that nothing counts twice.

**Invariant:** a bundle that is read again, because a task was repeated or the plan scans a table
twice, replaces its own counts.

Spark delivers the values of an accumulator when a task ends (RDD Programming Guide, Accumulators).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.accumulators import AccumulatorParam

from loader.query.answer import Notes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from loader.query.reading import Count, What
    from loader.query.scan import Bundle

ByBundle = dict[str, "Count"]


class _Union(AccumulatorParam[ByBundle]):
    """Dictionaries that are united; of two values the later one."""

    def zero(self, value: ByBundle) -> ByBundle:  # noqa: ARG002 - as PySpark calls it
        return {}

    def addInPlace(self, value1: ByBundle, value2: ByBundle) -> ByBundle:  # noqa: N802 - as above
        value1.update(value2)
        return value1


class Counts:
    """What executors have read so far; goes with the tasks.

    Args:
        found: the accumulator.
    """

    def __init__(self, found: Accumulator[ByBundle]) -> None:
        self._found = found

    def counted(
        self,
        part: Sequence[Bundle],
        read: Callable[[Sequence[Bundle], What, ByBundle], Iterator[pa.RecordBatch]],
        what: What,
    ) -> Iterator[pa.RecordBatch]:
        """Read a part on an executor, and report its counts even if it is left early."""
        counts: ByBundle = {}
        try:
            yield from read(part, what, counts)
        finally:
            self._found.add(counts)

    @property
    def by_key(self) -> ByBundle:
        """What was read of each bundle, or of each piece of one, by its key."""
        return dict(self._found.value)

    def done_bytes(self, sizes: dict[str, int]) -> int:
        """Return the size of the bundles that are done, by their keys."""
        return sum(sizes.get(url, 0) for url in list(self._found.value))

    def notes(self) -> Notes:
        """Return the sums."""
        notes = Notes()
        for url, count in sorted(self._found.value.items()):
            notes.read_bytes += count.read_bytes
            notes.read_rows += count.rows
            notes.bad += count.bad
            notes.repeated += count.repeated
            notes.collapsed += count.collapsed
            notes.unindexed += count.unindexed
            notes.skipped += count.skipped
            notes.unfiltered += count.unfiltered
            if count.problem:
                notes.damaged.append((url, count.problem))
        return notes


def counts(spark: SparkSession) -> Counts:
    """Return counts that are 0."""
    return Counts(spark.sparkContext.accumulator({}, _Union()))
