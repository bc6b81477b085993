"""What an archive holds: a file, its bundle, and the counts of a node's day, as frozen values.

**Invariant:** values are as the index has them.  What an index does not have is None, 0 or an empty
text, as each attribute says; nothing is guessed.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from jostler.format.names import Day

_DAY_PARTS = 4  # yyyy, mm, dd and the name


class Position(NamedTuple):
    """The place of a file in the order of results: day, name of the index object, line."""

    day: date
    index_name: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The bundle that files come from.

    Attributes:
        bucket: URL of the bucket, `gs://bucket` or `file:///dir`.
        data: name of the data object.
        index: name of the index object.
        datatype: the files' datatype; `rejected1` for rejected files.
        node: the node that stored them.
        day: the day of the folder.
    """

    bucket: str
    data: str
    index: str
    datatype: str
    node: str
    day: date

    @property
    def url(self) -> str:
        """The URL of the data object."""
        return f"{self.bucket}/{self.data}"


NOWHERE = Origin(bucket="", data="", index="", datatype="", node="", day=date.min)
"""Stands for the origin of a file whose index has not been named yet; no result has it."""


class IndexRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an index has of one file; the cache keeps it in this form.

    Attributes:
        filename: the Filename of its row, `yyyy/mm/dd/<name>`; an absolute path if m-lab's Go agent
            stored it.
        size: bytes of the file on the node; for files of the Go agent bytes of the row.
        added: when the agent read the file.
        line: the line of its row in the data object, from 1.
        hash: BLAKE2b of 16 bytes, in hexadecimal; empty when the index has none.
        hash_of_raw: whether the hash is that of `raw`; else it is that of the file's bytes on the
            node, as agents built before 22 November 2026 wrote it.
        offset: where the block with its row begins in the data object; None when not known.
        length: length of that block in bytes; None when not known.
        start: when the measurement began; None when the index does not have it.
        end: when it ended; None when the index does not have it.
        work_id: the job that it belongs to; None when the index does not have it.
    """

    filename: str
    size: int
    added: datetime
    line: int
    hash: str
    hash_of_raw: bool
    offset: int | None
    length: int | None
    start: datetime | None
    end: datetime | None
    work_id: str | None


class File(IndexRow, frozen=True, array_like=True, kw_only=True, gc=False):
    """One stored file: a row of an index, and the bundle that it lies in.

    Attributes:
        origin: the bundle.
    """

    origin: Origin = NOWHERE

    @property
    def datatype(self) -> str:
        """The datatype; `rejected1` for a rejected file."""
        return self.origin.datatype

    @property
    def node(self) -> str:
        """The node that stored it."""
        return self.origin.node

    @property
    def path(self) -> str:
        """The path below the datatype's directory, whichever agent stored the file."""
        if self.filename.startswith("/"):
            return "/".join(self.filename.split("/")[-_DAY_PARTS:])
        return self.filename

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.filename.rpartition("/")[2]

    @property
    def begin(self) -> datetime:
        """The first instant of the file: Start, else End, else TimeAdded."""
        return self.start or self.end or self.added

    @property
    def finish(self) -> datetime:
        """The last instant of the file: End, but never before `begin`."""
        begin = self.begin
        return begin if self.end is None else max(self.end, begin)

    @property
    def address(self) -> str:
        """The text that names this row for `cat` and `fetch`: `<URL of the bundle>#<Filename>`."""
        return f"{self.origin.url}#{quote(self.filename, safe='/:._-~+=@,')}"

    @property
    def position(self) -> Position:
        """The place in the order of results."""
        return Position(self.origin.day, self.origin.index, self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """One bundle and the sums of its index; a file that is stored twice counts in both bundles.

    Attributes:
        origin: its names.
        files: the number of files.
        size_bytes: bytes of its files.
        packed_bytes: bytes of the data object; 0 when the index does not show them.
        first: the earliest instant of its files.
        last: the latest instant of its files.
    """

    origin: Origin
    files: int
    size_bytes: int
    packed_bytes: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDay:
    """The bundles of one datatype, node and day, summed up.

    Attributes:
        day: the day of the folders.
        datatype: `rejected1` for rejected files.
        node: the node that stored them.
        bundles: the number of bundles.
        files: the number of files in these bundles.
        size_bytes: bytes of these files.
        first: the earliest instant of these files.
        last: the latest instant of these files.
    """

    day: date
    datatype: str
    node: str
    bundles: int
    files: int
    size_bytes: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejects:
    """The number of files of one day, datatype and node that the agent rejected for one reason.

    Attributes:
        day: the day of the folder.
        datatype: the files' own datatype.
        node: the node that rejected them.
        reason: a label of the table in docs/format.md.
        files: how many.
    """

    day: date
    datatype: str
    node: str
    reason: str
    files: int


@dataclass(slots=True)
class Tally:
    """What a search has done so far, for progress and reports; the catalogue adds to it.

    Attributes:
        days: days that were searched.
        indexes: index objects whose rows were searched.
        read: index objects that were read from the bucket; the others came from the cache.
        rows: index rows that were searched.
        repeats: rows left out because an earlier bundle has the same file.
        others: objects in the folders of indexes that are no index.
        problems: one sentence for each index object or row that could not be read.
        absent: one sentence for each table that does not exist, if that of another place does: an
            archive may have rows in one layout only.
    """

    days: int = 0
    indexes: int = 0
    read: int = 0
    rows: int = 0
    repeats: int = 0
    others: int = 0
    problems: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def day_in(path: str) -> date | None:
    """Return the day that a path `yyyy/mm/dd/…` begins with; None if it does not."""
    try:
        return Day.parse(path[:10]).date
    except ValueError:
        return None


def utc(when: datetime) -> datetime:
    """Return the same instant in UTC.

    Raises:
        ValueError: it has no time zone.
    """
    if when.tzinfo is None:
        raise ValueError(f"{when} has no time zone")
    return when.astimezone(UTC)
