"""Write the rows of an answer as they come: a table, CSV, JSON lines, Parquet.

**Invariant:** at most some batches are held; the first rows of a table, or all if they are few, set
the widths of its columns.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import pyarrow as pa
from pyarrow import parquet

from loader.cli.cells import cell, csv_field, padded, plain, width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loader.query.answer import Answer

MEASURED_ROWS = 200
"""So many rows of a table are held back to measure its columns."""


class Writer(Protocol):
    """Writes one answer."""

    def add(self, rows: list[tuple[Any, ...]], batch: pa.RecordBatch) -> None:
        """Write more rows; `rows` are those of `batch`."""

    def end(self) -> None:
        """Write what is held back."""


class TableWriter:
    """Writes a table with aligned columns, numbers to the right."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._out = out
        self._names = schema.names
        self._right = [_is_number(field.type) for field in schema]
        self._held: list[list[str]] | None = []
        self._widths: list[int] = []

    def add(self, rows: list[tuple[Any, ...]], batch: pa.RecordBatch) -> None:  # noqa: ARG002 - see Writer
        """Write rows, or hold them while they are few."""
        texts = [[cell(value) for value in row] for row in rows]
        if self._held is None:
            self._lines(texts)
            return
        self._held += texts
        if len(self._held) >= MEASURED_ROWS:
            self._begin()

    def end(self) -> None:
        """Write the rows that are held."""
        if self._held is not None:
            self._begin()

    def _begin(self) -> None:
        held, self._held = self._held or [], None
        names = [cell(name) for name in self._names]
        self._widths = [max(map(width, column)) for column in zip(names, *held, strict=True)]
        self._lines([names, ["-" * wide for wide in self._widths], *held])

    def _lines(self, rows: list[list[str]]) -> None:
        for row in rows:
            texts = (
                padded(text, wide, right=right)
                for text, wide, right in zip(row, self._widths, self._right, strict=True)
            )
            self._out.write(f"{'  '.join(texts).rstrip()}\n".encode())
        self._out.flush()


class CsvWriter:
    """Writes CSV with a heading; NULL is an empty field, nested values are JSON."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._out = out
        self._write([tuple(schema.names)])

    def add(self, rows: list[tuple[Any, ...]], batch: pa.RecordBatch) -> None:  # noqa: ARG002 - see Writer
        """Write rows."""
        self._write([tuple(map(csv_field, row)) for row in rows])

    def end(self) -> None:
        """Nothing is held back."""

    def _write(self, rows: list[tuple[str, ...]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._out.write(text.getvalue().encode())
        self._out.flush()


class JsonWriter:
    """Writes one JSON object a line, in a form that a load job accepts."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._out = out
        self._names = schema.names

    def add(self, rows: list[tuple[Any, ...]], batch: pa.RecordBatch) -> None:  # noqa: ARG002 - see Writer
        """Write rows."""
        for row in rows:
            value = dict(zip(self._names, map(plain, row), strict=True))
            self._out.write(f"{json.dumps(value, ensure_ascii=False)}\n".encode())
        self._out.flush()

    def end(self) -> None:
        """Nothing is held back."""


class ParquetWriter:
    """Writes one Parquet file; it can be read after the end."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._writer = parquet.ParquetWriter(out, schema)

    def add(self, rows: list[tuple[Any, ...]], batch: pa.RecordBatch) -> None:  # noqa: ARG002 - see Writer
        """Write a batch."""
        self._writer.write_batch(batch)

    def end(self) -> None:
        """Write the file's end."""
        self._writer.close()


FORMATS: dict[str, Callable[[BinaryIO, pa.Schema], Writer]] = {
    "table": TableWriter,
    "csv": CsvWriter,
    "jsonl": JsonWriter,
    "parquet": ParquetWriter,
}


def rows_of(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a batch; its columns may have equal names."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def write(answer: Answer, form: str, out: BinaryIO, first: Callable[[], None]) -> int:
    """Write an answer; return the number of its rows.

    Args:
        answer: the answer.
        form: one of `FORMATS`.
        out: where to.
        first: called before the first rows are written.
    """
    writer: Writer | None = None
    count = 0
    for batch in answer:
        if writer is None:
            first()
            writer = FORMATS[form](out, answer.schema)
        writer.add(list(rows_of(batch)), batch)
        count += batch.num_rows
    if writer is None:
        first()
        writer = FORMATS[form](out, answer.schema)
    writer.end()
    return count


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
