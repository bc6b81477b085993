"""Write records of one kind for people or for programs: table, JSON, JSON lines, CSV, addresses.

**Invariant:** records are written as they come; memory holds one part of a table.  A table has no
control characters; JSON and CSV have the values as they are stored.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from jostler.cli.archive_flags import Format
from jostler.words import DASH, ago, count, rfc3339, shown, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from jostler.archive.files import Bundle, File
    from jostler.archive.totals import DayTotal

T = TypeVar("T")
PART = 500
"""Rows of a table that are aligned together."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How records of one kind are written.

    Attributes:
        columns: the columns for programs, each with the attribute that it shows.
        headings: of the table's columns; those that begin with `>` are aligned to the right.
        cells: the texts of a record's row of the table.
        address: the text for `-format url`.
    """

    columns: Mapping[str, str]
    headings: tuple[str, ...]
    cells: Callable[[T, datetime], Sequence[str]]
    address: Callable[[T], str]

    def rows(self, records: Iterable[T]) -> Iterator[dict[str, Any]]:
        """Yield the values for programs, by column."""
        values = attrgetter(*self.columns.values())
        return (dict(zip(self.columns, values(record), strict=True)) for record in records)


def written(records: Iterable[T], kind: Kind[T], how: Format, now: datetime) -> Iterator[str]:
    """Yield the text of records, in parts.

    Args:
        records: any number.
        kind: of record.
        how: the format.
        now: ages count from this instant.
    """
    match how:
        case Format.TABLE:
            return _table(records, kind, now)
        case Format.JSON:
            return _json(records, kind)
        case Format.JSONL:
            return (f"{_line(row)}\n" for row in kind.rows(records))
        case Format.CSV:
            return _csv(records, kind)
        case Format.URL:
            return (f"{kind.address(record)}\n" for record in records)


def _table(records: Iterable[T], kind: Kind[T], now: datetime) -> Iterator[str]:
    rows = ([shown(cell) for cell in kind.cells(record, now)] for record in records)
    names = [name.removeprefix(">") for name in kind.headings]
    right = [name.startswith(">") for name in kind.headings]
    widths = [len(name) for name in names]
    head: list[list[str]] = [names]
    while part := list(islice(rows, PART)):
        for row in part:
            widths = [max(pair) for pair in zip(widths, map(len, row), strict=True)]
        yield "".join(_aligned(row, widths, right) for row in chain(head, part))
        head = []


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = [
        cell.rjust(width) if is_right else cell.ljust(width)
        for cell, width, is_right in zip(row, widths, right, strict=True)
    ]
    return "  ".join(cells).rstrip() + "\n"


def _json(records: Iterable[T], kind: Kind[T]) -> Iterator[str]:
    before = "[\n"
    for row in kind.rows(records):
        yield before + _line(row)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _csv(records: Iterable[T], kind: Kind[T]) -> Iterator[str]:
    lines = ([*_printable(row).values()] for row in kind.rows(records))
    for line in chain([[*kind.columns]], lines):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(line)
        yield out.getvalue()


def _line(row: dict[str, Any]) -> str:
    return orjson.dumps(_printable(row)).decode().replace("\x7f", "\\u007f")


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: rfc3339(value) if isinstance(value, datetime) else value for key, value in row.items()
    }


def _file_cells(file: File, now: datetime) -> Sequence[str]:
    begin = f"{file.begin.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return (
        *(begin, ago(file.begin, now), size(file.size), file.datatype, file.node),
        file.filename,
    )


FILES: Kind[File] = Kind(
    {
        "Filename": "filename",
        "Size": "size",
        "TimeAdded": "added",
        "Datatype": "datatype",
        "Node": "node",
        "ArchiveURL": "origin.url",
        "Line": "line",
        "Hash": "hash",
        "Offset": "offset",
        "Length": "length",
        "Start": "start",
        "End": "end",
        "WorkID": "work_id",
        "Address": "address",
    },
    ("BEGIN", ">AGE", ">SIZE", "DATATYPE", "NODE", "FILENAME"),
    _file_cells,
    lambda file: file.address,
)


BUNDLES: Kind[Bundle] = Kind(
    {
        "Day": "origin.day",
        "Datatype": "origin.datatype",
        "Node": "origin.node",
        "Files": "files",
        "Size": "size_bytes",
        "Packed": "packed_bytes",
        "First": "first",
        "Last": "last",
        "ArchiveURL": "origin.url",
    },
    ("DAY", "DATATYPE", "NODE", ">FILES", ">SIZE", ">PACKED", "BUNDLE"),
    lambda bundle, _now: (
        *(bundle.origin.day.isoformat(), bundle.origin.datatype, bundle.origin.node),
        *(count(bundle.files), size(bundle.size_bytes), size(bundle.packed_bytes or None)),
        bundle.origin.data.rpartition("/")[2],
    ),
    lambda bundle: bundle.origin.url,
)


def _clock(when: datetime | None, day: date) -> str:
    """Write a time of day, with the date if it is another day's."""
    if when is None:
        return DASH
    return f"{when:%H:%M:%S}" if when.date() == day else f"{when:%Y-%m-%d %H:%M:%S}"


DAYS: Kind[DayTotal] = Kind(
    {
        "Day": "day",
        "Datatype": "datatype",
        "Files": "files",
        "Size": "size_bytes",
        "Nodes": "nodes",
        "Bundles": "bundles",
        "Rejected": "rejected",
        "First": "first",
        "Last": "last",
    },
    ("DAY", "DATATYPE", ">FILES", ">SIZE", ">NODES", ">REJECTED", ">FIRST", ">LAST"),
    lambda day, _now: (
        *(day.day.isoformat(), day.datatype, count(day.files), size(day.size_bytes)),
        *(count(day.nodes), count(day.rejected)),
        *(_clock(day.first, day.day), _clock(day.last, day.day)),
    ),
    lambda day: f"{day.day.isoformat()} {day.datatype}",
)
