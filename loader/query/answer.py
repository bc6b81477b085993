"""The answer to a question: columns, and rows that come in Arrow batches as they are found.

**Invariant:** at most some batches are in memory; whoever wants all rows at once says so by
`table` or `pandas`.  An answer that is left early, by `close` or the end of a `with`, ends the work
that it still costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import pandas as pd  # type: ignore[import-untyped]

    from loader.query.question import Pivot


@dataclass(slots=True, kw_only=True)
class Notes:
    """What a person should know beside the rows; complete when the last row has come.

    Attributes:
        bundles: bundles to read, by their names.
        size_bytes: their size.
        read_bytes: bytes of all requests to the bucket.
        read_rows: rows that were read and good.
        done_bytes: size of the bundles that are done, whether or not all of each was read.
        bad: bad rows, which were left out.
        repeated: rows of files stored twice, left out but for the first.
        collapsed: rows whose body is that of the row before, if these are to be left out.
        unindexed: bundles without index, whose rows have no `_time`.
        skipped: blocks that the text index left out.
        unfiltered: bundles without text index, read whole although words are asked for.
        damaged: bundles that were left out: pairs of URL and why.
        problems: other things that were left out: pairs of what and why.
    """

    bundles: int = 0
    size_bytes: int = 0
    read_bytes: int = 0
    read_rows: int = 0
    done_bytes: int = 0
    bad: int = 0
    repeated: int = 0
    collapsed: int = 0
    unindexed: int = 0
    skipped: int = 0
    unfiltered: int = 0
    damaged: list[tuple[str, str]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing had to be left out but repeated rows."""
        return not (self.bad or self.damaged or self.problems or self.unindexed)


class Answer:
    """The rows of an answer; iterate once.

    Args:
        schema: the columns.
        batches: the rows.
        notes: what to know beside them.
        pivot: how a chart is laid out; None for a table.

    Attributes:
        schema: the columns.
        notes: what to know beside the rows.
        pivot: how a chart is laid out.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Generator[pa.RecordBatch],
        notes: Callable[[], Notes],
        pivot: Pivot | None = None,
    ) -> None:
        self.schema = schema
        self.pivot = pivot
        self._batches = batches
        self._notes = notes

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def notes(self) -> Notes:
        """What is known so far beside the rows."""
        return self._notes()

    def again(self, table: pa.Table) -> Answer:
        """Return an answer of these rows, which are those of this one."""

        def batches() -> Generator[pa.RecordBatch]:
            yield from table.to_batches()

        return Answer(table.schema, batches(), self._notes, self.pivot)

    def close(self) -> None:
        """End the work for rows that have not come."""
        self._batches.close()

    def table(self) -> pa.Table:
        """Return all rows that have not come yet, as one Arrow table."""
        return pa.Table.from_batches(list(self), self.schema)

    def pandas(self) -> pd.DataFrame:
        """Return all rows that have not come yet, as a pandas DataFrame."""
        frame: Any = self.table().to_pandas()
        return frame


def limited(batches: Generator[pa.RecordBatch], most: int) -> Generator[pa.RecordBatch]:
    """Yield the first rows, and end the work for the others; 0 for all."""
    left = most
    try:
        for batch in batches:
            if not most or batch.num_rows <= left:
                left -= batch.num_rows
                yield batch
            else:
                yield batch.slice(0, left)
                left = 0
            if most and not left:
                return
    finally:
        batches.close()
