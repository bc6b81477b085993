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
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from jostler.cli.archive_flags import Format
from jostler.words import DASH, ago, count, rfc3339, shown, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jostler.archive.files import Bundle, File
    from jostler.archive.totals import DayTotal

T = TypeVar("T")
PART = 500
"""Rows of a table that are aligned together."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How records of one kind are written.

    Attributes:
        members: the values for programs, by name.
        headings: of the table's columns; those that begin with `>` are aligned to the right.
        cells: the texts of a record's row of the table.
        address: the text for `-format url`.
    """

    members: Callable[[T], dict[str, Any]]
    headings: tuple[str, ...]
    cells: Callable[[T, datetime], Sequence[str]]
    address: Callable[[T], str]


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
            return (f"{_line(kind.members(record))}\n" for record in records)
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
    for record in records:
        yield before + _line(kind.members(record))
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _csv(records: Iterable[T], kind: Kind[T]) -> Iterator[str]:
    is_first = True
    for record in records:
        members = {
            key: rfc3339(value) if isinstance(value, datetime) else value
            for key, value in kind.members(record).items()
        }
        out = io.StringIO()
        writer = csv.DictWriter(out, list(members), lineterminator="\n")
        if is_first:
            writer.writeheader()
        writer.writerow(members)
        yield out.getvalue()
        is_first = False


def _line(members: dict[str, Any]) -> str:
    printable = {
        key: rfc3339(value) if isinstance(value, datetime) else value
        for key, value in members.items()
    }
    return orjson.dumps(printable).decode().replace("\x7f", "\\u007f")


def file_members(file: File) -> dict[str, Any]:
    """Return the columns of index1 for a file, and its address."""
    return {
        "Filename": file.filename,
        "Size": file.size,
        "TimeAdded": file.added,
        "Datatype": file.datatype,
        "Node": file.node,
        "ArchiveURL": file.origin.url,
        "Line": file.line,
        "Hash": file.hash,
        "Offset": file.offset,
        "Length": file.length,
        "Start": file.start,
        "End": file.end,
        "WorkID": file.work_id,
        "Address": file.address,
    }


def _file_cells(file: File, now: datetime) -> Sequence[str]:
    begin = f"{file.begin.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    return (
        *(begin, ago(file.begin, now), size(file.size), file.datatype, file.node),
        file.filename,
    )


FILES: Kind[File] = Kind(
    file_members,
    ("BEGIN", ">AGE", ">SIZE", "DATATYPE", "NODE", "FILENAME"),
    _file_cells,
    lambda file: file.address,
)


def _bundle_members(bundle: Bundle) -> dict[str, Any]:
    origin = bundle.origin
    return {
        "Day": origin.day.isoformat(),
        "Datatype": origin.datatype,
        "Node": origin.node,
        "Files": bundle.files,
        "Size": bundle.size_bytes,
        "Packed": bundle.packed_bytes,
        "First": bundle.first,
        "Last": bundle.last,
        "ArchiveURL": origin.url,
    }


BUNDLES: Kind[Bundle] = Kind(
    _bundle_members,
    ("DAY", "DATATYPE", "NODE", ">FILES", ">SIZE", ">PACKED", "BUNDLE"),
    lambda bundle, _now: (
        *(bundle.origin.day.isoformat(), bundle.origin.datatype, bundle.origin.node),
        *(count(bundle.files), size(bundle.size_bytes), size(bundle.packed_bytes or None)),
        bundle.origin.data.rpartition("/")[2],
    ),
    lambda bundle: bundle.origin.url,
)


def _day_members(day: DayTotal) -> dict[str, Any]:
    return {
        "Day": day.day.isoformat(),
        "Datatype": day.datatype,
        "Files": day.files,
        "Size": day.size_bytes,
        "Nodes": day.nodes,
        "Bundles": day.bundles,
        "Rejected": day.rejected,
        "First": day.first,
        "Last": day.last,
    }


def _clock(when: datetime | None, day: date) -> str:
    """Write a time of day, with the date if it is another day's."""
    if when is None:
        return DASH
    return f"{when:%H:%M:%S}" if when.date() == day else f"{when:%Y-%m-%d %H:%M:%S}"


DAYS: Kind[DayTotal] = Kind(
    _day_members,
    ("DAY", "DATATYPE", ">FILES", ">SIZE", ">NODES", ">REJECTED", ">FIRST", ">LAST"),
    lambda day, _now: (
        *(day.day.isoformat(), day.datatype, count(day.files), size(day.size_bytes)),
        *(count(day.nodes), count(day.rejected)),
        *(_clock(day.first, day.day), _clock(day.last, day.day)),
    ),
    lambda day: f"{day.day.isoformat()} {day.datatype}",
)
