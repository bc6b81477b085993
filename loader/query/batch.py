"""Rows that are taken apart become one Arrow batch of the named columns.

**Invariant:** `date`, `archiver`, `_time` and `_node` come from the bundle and its index, not from
a parser: the standard columns of a good row say the same.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from jostler.schema import INDEX1_FIELDS
from loader.query.columns import arrow_type, decoder
from loader.query.question import NODE, TIME

if TYPE_CHECKING:
    from jostler.schema import Field, Fields
    from loader.query.rows import Line
    from loader.query.scan import Bundle

MOST_BYTES = 4 * 1024 * 1024
MOST_ROWS = 16_384
OWN = tuple(one for one in INDEX1_FIELDS if one.name in {"Start", "End", "TimeAdded", "Node"})
"""The fields of `raw` by which a row of index1 says its time and node itself."""


@dataclass(slots=True)
class Batch:
    """Rows of one bundle, not parsed yet.

    Attributes:
        bundle: the bundle.
        lines: the rows.
        nodes: the node of each.
        times: `_time` of each, microseconds since 1970; None if the index does not have it.
    """

    bundle: Bundle
    lines: list[Line] = field(default_factory=list)
    nodes: list[str | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    _size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """Whether the batch is worth being parsed."""
        return self._size_bytes >= MOST_BYTES or len(self.lines) >= MOST_ROWS

    def add(self, line: Line, node: str, when: int | None) -> None:
        """Add a row."""
        self.lines.append(line)
        self.nodes.append(node)
        self.times.append(when)
        self._size_bytes += len(line[2])

    def drop(self, numbers: list[int]) -> None:
        """Remove rows by their numbers, from 0, in order."""
        for nth in reversed(numbers):
            del self.lines[nth], self.nodes[nth], self.times[nth]


def columns_of(batch: Batch, fields: Fields, *, own_times: bool) -> tuple[pa.RecordBatch, int]:
    """Parse the named columns.

    Args:
        batch: the rows; the bad ones are removed from it.
        fields: the columns that are named.
        own_times: whether the rows carry time and node themselves, as those of index1 do.

    Returns:
        The columns, and how many rows were bad.
    """
    raw = next((one for one in fields if one.key == "raw"), None)
    named = raw.fields if raw else ()
    wanted = _with(named, OWN) if own_times else named
    made = None
    bad: list[int] = []
    if wanted:
        made, bad = decoder(wanted).decode([raw for _, _, raw in batch.lines])
        batch.drop(bad)
    if own_times and made is not None:
        batch.times = _own_times(made)
        batch.nodes = made.field("Node").to_pylist()
        if raw and wanted != named:
            made = pa.StructArray.from_arrays(
                [made.field(one.name) for one in named], fields=list(arrow_type(raw))
            )
    arrays = [_column(one, batch, made) for one in fields]
    schema = pa.schema([pa.field(one.name, arrow_type(one)) for one in fields])
    return pa.RecordBatch.from_arrays(arrays, schema=schema), len(bad)


def _with(fields: Fields, others: Fields) -> Fields:
    known = {one.key for one in fields}
    return (*fields, *(one for one in others if one.key not in known))


def _own_times(raw: pa.StructArray) -> list[int | None]:
    found = pc.coalesce(raw.field("Start"), raw.field("End"), raw.field("TimeAdded"))
    micros: list[int | None] = found.cast(pa.int64()).to_pylist()
    return micros


def _column(field: Field, batch: Batch, raw: pa.StructArray | None) -> pa.Array:
    rows = len(batch.lines)
    kind = arrow_type(field)
    match field.key:
        case "date":
            return pa.array([batch.bundle.day.date] * rows, kind)
        case "raw":
            return raw
        case "archiver":
            children = [_archiver(one, batch) for one in field.fields]
            return pa.StructArray.from_arrays(children, fields=list(kind))
        case key if key == TIME:
            return pa.array(batch.times, pa.int64()).cast(kind)
        case key if key == NODE:
            return pa.array(batch.nodes, kind)
    return pa.nulls(rows, kind)


def _archiver(field: Field, batch: Batch) -> pa.Array:
    values: list[Any]
    if field.key == "filename":
        values = [name.decode(errors="replace") for _, name, _ in batch.lines]
    else:
        values = [archiver.get(field.key) for archiver, _, _ in batch.lines]
    return pa.array(values, arrow_type(field))
