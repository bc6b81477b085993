"""Find out what is wrong with a bundle and its index, line by line.

**Invariant:** it shares no code with the writer: it checks against docs/format.md.  Bundles of
m-lab's Go agent are recognized by their rows.  Their index has only file, size and time of each
row, so only these are checked.

Pure: takes bytes, returns problems.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from jostler.archive.audit.problem import NO_INDEX, Kind
from jostler.archive.audit.stream import end_of_blocks
from jostler.archive.hashes import digest
from jostler.archive.lines import Row, RowError, lines_of, members, row
from jostler.format.go import is_bare, loadable_index
from jostler.format.names import REJECTED, BundleName
from jostler.format.names import Kind as Half
from jostler.format.node_table import runs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

INDEX_TYPES = {
    **dict.fromkeys(("Filename", "TimeAdded", "Datatype", "Node", "ArchiveURL", "Hash"), str),
    **dict.fromkeys(("Size", "Line", "Offset", "Length"), int),
}
FACTS = ("Start", "End", "WorkID")
_Instant = Annotated[datetime, msgspec.Meta(tz=True)]
INTEGER_MOST = 2**63 - 1
_Number = Annotated[int, msgspec.Meta(ge=0, le=INTEGER_MOST)]
_GO_INDEX_KEYS = {"Filename", "Size", "TimeAdded"}


class IndexValues(msgspec.Struct, gc=False):
    """The members of an index row of which not every text or number is a value of its column."""

    Size: _Number
    Line: _Number
    Offset: _Number
    Length: _Number
    TimeAdded: _Instant
    Start: _Instant | None = None
    End: _Instant | None = None


@dataclass(slots=True)
class Explained:
    """What a bundle has.

    Attributes:
        lines: how many lines its stream has.
        rows: how many of them are rows.
        plain_bytes: of its lines.
        go: whether the Go agent wrote it.
        files: node, datatype, Filename, digest of `raw`, Hash of the index row, whether rejected;
            as far as rows and index rows can be held against each other.
        problems: object, line, kind and detail of each problem.
    """

    lines: int = 0
    rows: int = 0
    plain_bytes: int = 0
    go: bool = False
    files: list[tuple[str, str, str, str, str, bool]] = field(default_factory=list)
    problems: list[tuple[str, int, Kind, str]] = field(default_factory=list)

    def add(self, name: BundleName, kind: Kind, detail: str, line: int = 0) -> None:
        """Add a problem of an object, or of one of its lines."""
        self.problems.append((str(name), line, kind, detail))


class Explainer:
    """Explains one data bundle; unreadable parts are reported and skipped.

    Args:
        name: of the data object.
        bucket: URL of the bucket.
    """

    def __init__(self, name: BundleName, bucket: str) -> None:
        self._name = name
        self._bucket = bucket
        self._found = Explained()
        self._nodes: list[str] = []

    def explain(self, data: bytes, index_name: BundleName | None, index: bytes | None) -> Explained:
        """Check each row alone and against its index row."""
        found, name = self._found, self._name
        rows, is_whole = self._data_rows(data)
        self._nodes = self._nodes_of_rows(data, len(rows) if is_whole else 0)
        found.go = any(one.go for one in rows if one)
        if index_name is None or index is None:
            if is_whole and not rows:
                found.add(name, Kind.DAMAGED, "it has neither rows nor an index")
            else:
                found.add(name, Kind.NO_INDEX, NO_INDEX)
            self._note_all(rows)
            return found
        if not is_whole:  # the stream explains all that its rows lack
            self._note_all(rows)
            return found
        entries = self._go_index(index_name, index) if found.go else self._index(index_name, index)
        if len(entries) != len(rows):
            # Without any row there is nothing that an index could be made of.
            kind = Kind.DISAGREES if rows else Kind.DAMAGED
            found.add(name, kind, f"{len(rows)} rows, but {len(entries)} in its index")
            self._note_all(rows)
            return found
        blocks = _Blocks(data)
        for line, (one, entry) in enumerate(zip(rows, entries, strict=True), 1):
            if one is None or not entry:  # already reported
                continue
            for detail in self._differences(one, entry, line, blocks):
                found.add(name, Kind.DISAGREES, detail, line)
            self._note(one, entry, line)
        return found

    def _differences(
        self, one: Row, entry: dict[str, Any], line: int, blocks: _Blocks
    ) -> list[str]:
        if self._found.go:
            return go_problems(one, entry)
        problems = self._row_problems(one, entry, line)
        if problem := blocks.problem(one, entry, is_last=line == self._found.lines):
            problems.append(problem)
        return problems

    def _data_rows(self, data: bytes) -> tuple[list[Row | None], bool]:
        """Return the rows of the data object, and whether its stream is whole."""
        found, name = self._found, self._name
        try:
            lines = lines_of(data)
        except RowError as exc:
            found.add(name, Kind.DAMAGED, str(exc))
            return [], False
        found.lines, found.plain_bytes = len(lines), sum(map(len, lines))
        rows = list(self._rows(name, lines, Kind.BAD_ROW))
        found.rows = sum(one is not None for one in rows)
        return rows, True

    def _rows(self, name: BundleName, lines: list[bytes], kind: Kind) -> Iterator[Row | None]:
        """Yield the rows of an object; report each line that is not a row, and yield None."""
        for number, line in enumerate(lines, 1):
            try:
                one = row(line)
            except RowError as exc:
                self._found.add(name, kind, str(exc), number)
                yield None
                continue
            if not one.go and not line.endswith(b"\n"):
                self._found.add(name, kind, "the line has no end", number)
            for is_of_day, detail in _column_problems(name, one, f"{self._bucket}/{name}"):
                reported = Kind.OTHER_DAY if is_of_day and kind is Kind.BAD_ROW else kind
                self._found.add(name, reported, detail, number)
            yield one

    def _index_lines(self, name: BundleName, index: bytes) -> list[bytes]:
        try:
            return lines_of(index)
        except RowError as exc:
            self._found.add(name, Kind.DISAGREES, str(exc))
            return []

    def _index(self, name: BundleName, index: bytes) -> list[dict[str, Any]]:
        """Return the index rows; report each bad one and return an empty dict for it."""
        entries = []
        lines = self._index_lines(name, index)
        for number, one in enumerate(self._rows(name, lines, Kind.DISAGREES), 1):
            entry = self._members(name, one.raw, number) if one else {}
            bad = [key for key, kind in INDEX_TYPES.items() if type(entry.get(key)) is not kind]
            bad += [key for key in FACTS if not isinstance(entry.get(key), str | None)]
            bad = bad or _wrong_values(entry)
            if one and not bad and one.archiver["Filename"] != entry["Filename"]:
                detail = f"archiver has Filename {one.archiver['Filename']!r}, raw has another"
                self._found.add(name, Kind.DISAGREES, detail, number)
            if entry and bad:
                detail = f"the index row has no good {', '.join(bad)}"
                self._found.add(name, Kind.DISAGREES, detail, number)
            entries.append({} if bad else entry)
        return entries

    def _go_index(self, name: BundleName, index: bytes) -> list[dict[str, Any]]:
        """Return the index lines of the Go agent; report bad ones and return empty dicts."""
        entries = []
        for number, line in enumerate(self._index_lines(name, index), 1):
            entry = self._members(name, line, number) if is_bare(line) else {}
            if set(entry) != _GO_INDEX_KEYS or loadable_index(line) == line:
                detail = "no index line as the Go agent writes it"
                self._found.add(name, Kind.DISAGREES, detail, number)
                entry = {}
            entries.append(entry)
        return entries

    def _members(self, name: BundleName, value: bytes, number: int) -> dict[str, Any]:
        try:
            return members(value)
        except RowError as exc:
            self._found.add(name, Kind.DISAGREES, str(exc), number)
            return {}

    def _row_problems(self, one: Row, entry: dict[str, Any], line: int) -> list[str]:
        """Return where a row and its index row differ."""
        expected = {
            "Filename": one.archiver["Filename"],
            "Datatype": self._name.datatype,
            "Node": self._node(line),
            "ArchiveURL": f"{self._bucket}/{self._name}",
            "Line": line,
        }
        problems = [
            f"index has {key} {entry.get(key)!r}, expected {value!r}"
            for key, value in expected.items()
            if entry.get(key) != value
        ]
        if self._name.datatype == REJECTED:
            return problems + _rejected_problems(one, entry)
        if any(digest(content) != entry["Hash"] for content in _hashed(one, entry)):
            problems.append(f"Hash {entry['Hash']} is not that of its bytes")
        if len(one.raw) > entry["Size"]:
            problems.append(f"raw has {len(one.raw)} bytes, the file had {entry['Size']}")
        return problems

    def _note_all(self, rows: list[Row | None]) -> None:
        for line, one in enumerate(rows, 1):
            if one:
                self._note(one, {}, line)

    def _node(self, line: int) -> str:
        """Return the node of a row: a merged bundle has rows of several."""
        return self._nodes[line - 1] if line <= len(self._nodes) else self._name.node

    def _nodes_of_rows(self, data: bytes, rows: int) -> list[str]:
        """Return the node of each row of a merged bundle; nothing for a bundle of one node."""
        try:
            nodes = nodes_of(data)
        except ValueError as exc:
            self._found.add(self._name, Kind.DAMAGED, str(exc))
            return []
        if nodes and rows and len(nodes) != rows:
            detail = f"{rows} rows, but {len(nodes)} in its table of nodes"
            self._found.add(self._name, Kind.DAMAGED, detail)
        return nodes

    def _note(self, one: Row, entry: dict[str, Any], line: int) -> None:
        """Remember the file of a row."""
        datatype = self._name.datatype
        filename = str(one.archiver["Filename"])
        if one.go:  # the path is absolute; its last four parts are the day and the name
            filename = "/".join(filename.split("/")[-4:])
        rejected = datatype == REJECTED
        if rejected:
            try:
                datatype = str(members(one.raw).get("Datatype", ""))
            except RowError:
                datatype = ""
        found = "" if one.go else str(entry.get("Hash", ""))
        node = self._node(line)
        self._found.files.append((node, datatype, filename, digest(one.raw), found, rejected))


def _wrong_values(entry: dict[str, Any]) -> list[str]:
    """Return the members that have the right type, and no value that their column takes."""
    wrong = []
    for one in msgspec.structs.fields(IndexValues):
        try:
            msgspec.convert(entry.get(one.name), one.type)
        except msgspec.ValidationError:
            wrong.append(one.name)
    return wrong


def _column_problems(name: BundleName, one: Row, url: str) -> list[tuple[bool, str]]:
    """Return what is wrong with the standard columns; and of each, whether it is about the day.

    The Filename of an index row is compared with that of its row, whatever day that is of.
    """
    date, filename = one.date, str(one.archiver["Filename"])
    archive_url = one.archiver["ArchiveURL"]
    wrong = [(archive_url != url, False, f"ArchiveURL {archive_url!r} is not this bundle")]
    if one.go:  # its folder is the day of upload, its Filename an absolute path
        other = f"/{str(date).replace('-', '/')}/" not in filename
        detail = f"Filename {filename!r} lies in another day than date {date!r}"
        wrong.append((other, True, detail))
    else:
        # A rejected file may lie in a directory that is no day.
        is_free = name.datatype == REJECTED or name.kind is Half.INDEX
        day = "" if is_free else f"{name.day.path}/"
        wrong += [
            (date != name.day.iso, True, f"date {date!r} is not the bundle's day"),
            (not filename.startswith(day), True, f"Filename {filename!r} lies in another day"),
        ]
    return [(of_day, detail) for is_so, of_day, detail in wrong if is_so]


def _hashed(one: Row, entry: dict[str, Any]) -> list[bytes]:
    """Return the byte strings of which an index row's Hash may be; each must have that hash.

    An index row without `Start` has the hash of the file's bytes.  `raw` lacks the file's line
    breaks and byte order mark, so that hash is known only of a file that had none of them, or just
    one line feed at its end.
    """
    if "Start" in entry:
        return [one.raw]
    return [part for part in (one.raw, one.raw + b"\n") if len(part) == entry["Size"]]


def _rejected_problems(one: Row, entry: dict[str, Any]) -> list[str]:
    """Return what is wrong with the hash of a rejected file, if all its bytes are in the row."""
    try:
        columns = members(one.raw)
        content = b64decode(str(columns.get("Content", "")), validate=True)
    except (RowError, ValueError) as exc:
        return [f"Content is not base64: {exc}"] if entry["Hash"] else []
    if not entry["Hash"]:
        is_lost = "Start" in entry and content and len(content) == columns.get("Size")
        return ["the index row has no Hash of a whole Content"] if is_lost else []
    return [] if digest(content) == entry["Hash"] else [f"Hash {entry['Hash']} is not Content's"]


def go_problems(one: Row, entry: dict[str, Any]) -> list[str]:
    """Return where a row of the Go agent and its index line differ."""
    expected = {"Filename": one.archiver["Filename"], "Size": len(one.line.rstrip(b"\n"))}
    return [
        f"index has {key} {entry[key]!r}, expected {value!r}"
        for key, value in expected.items()
        if entry[key] != value
    ]


class _Blocks:
    """Reads single blocks of one object; keeps the last block, as its rows follow one another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = end_of_blocks(data)
        self._where = (-1, -1)
        self._plain = b""
        self._at = 0

    def problem(self, one: Row, entry: dict[str, Any], *, is_last: bool) -> str:
        """Return why a row cannot be read through its block; an empty text if it can.

        Nothing but the end of the stream follows the last block: a compaction refuses other places.
        """
        where = offset, length = entry["Offset"], entry["Length"]
        if where != self._where:
            packed = self._data[max(offset, 0) : max(offset + length, 0)]
            try:
                self._plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
            except zlib.error as exc:
                return f"block {offset}+{length} does not inflate alone: {exc}"
            self._where, self._at = where, 0
        # Rows that follow one another lie so in the block, too: a search for each would take long.
        if self._plain.startswith(one.line, self._at):
            self._at += len(one.line)
        elif one.line not in self._plain:
            return f"block {offset}+{length} does not hold the row"
        if is_last and offset + length != self._end:
            return f"block {offset}+{length} does not end at {self._end}, where the rows end"
        return ""


def nodes_of(data: bytes) -> list[str]:
    """Return the node of each row of a merged bundle; nothing for a bundle of one node.

    Raises:
        ValueError: its table of nodes is damaged.
    """
    return [run.node for run in runs_of(data) for _ in range(run.rows)]
