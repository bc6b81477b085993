"""Check that every file in a bucket is stored once, complete, and can be found by its index.

**Invariant:** it only reads, and shares no code with the writer: it checks against docs/format.md.
Bundles of m-lab's Go agent are recognized by their rows.  Their index has only file, size and time
of each row, so only these are checked.
"""

from __future__ import annotations

import hashlib
import zlib
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jostler.archive.lines import Row, RowError, lines_of, members, row
from jostler.archive.pairs import pairs
from jostler.errors import MissingError
from jostler.format.go import is_bare, loadable_index
from jostler.format.names import REJECTED, BundleName
from jostler.format.node_table import runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jostler.storage import Storage

_INDEX_TYPES = {
    **dict.fromkeys(("Filename", "TimeAdded", "Datatype", "Node", "ArchiveURL", "Hash"), str),
    **dict.fromkeys(("Size", "Line", "Offset", "Length"), int),
}
_FACTS = ("Start", "End", "WorkID")
_GO_INDEX_KEYS = {"Filename", "Size", "TimeAdded"}


@dataclass(frozen=True, slots=True)
class File:
    """A stored file.

    Attributes:
        node: the node that it comes from.
        raw_hash: the digest of the bytes of `raw`.
        index_hash: the Hash in the index; empty for the Go agent's bundles.
        rejected: whether it is a row of rejected1.
    """

    node: str
    raw_hash: str
    index_hash: str
    rejected: bool

    @property
    def content(self) -> str:
        """The digest that identifies the file's content."""
        return self.index_hash if self.rejected else self.raw_hash


@dataclass(slots=True)
class Report:
    """The counts and problems of one check.

    Attributes:
        bundles: the number of data bundles read.
        of_go: how many of them the Go agent wrote.
        rows: the number of rows in data bundles, by datatype.
        problems: one line each.
        files: the stored files of each (datatype, Filename), with their counts.
        originals: the number of original files compared.
    """

    bundles: int = 0
    of_go: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    files: dict[tuple[str, str], list[File]] = field(default_factory=dict)
    originals: int = 0

    def say(self, name: object, problem: str, line: int = 0) -> None:
        """Add a problem of an object, or of one of its lines."""
        where = f"{name}: line {line}" if line else f"{name}"
        self.problems.append(f"{where}: {problem}")


def verify(storage: Storage, prefix: str, originals: Path | None = None) -> Report:
    """Check all bundles whose data object or index object has a name that begins with a prefix.

    Args:
        storage: the bucket.
        prefix: the beginning of object names; empty for all.
        originals: a directory whose files `<datatype>/<yyyy>/<mm>/<dd>/<name>` must all be stored.

    Raises:
        TransientError: a request to the bucket fails.
    """
    report = Report()
    found = pairs(storage, prefix)
    report.problems += found.others
    for name, index_name in found.paired:
        try:
            _Bundle(storage, name, report).check(index_name)
        except MissingError:
            report.say(name, "went away while it was looked at")
    for index_name in found.lonely:
        report.say(index_name, "there is no data bundle for this index")
    for (datatype, filename), stored in report.files.items():
        for file, count in Counter((file.node, file.content) for file in stored).items():
            if count > 1:
                report.say(f"{datatype}/{filename}", f"stored {count} times ({file[1]})")
    if originals:
        _check_originals(originals, report)
    return report


class _Bundle:
    """The check of one data bundle and its index; unreadable parts are reported and skipped."""

    def __init__(self, storage: Storage, name: BundleName, report: Report) -> None:
        self._storage = storage
        self._name = name
        self._report = report
        self._data = storage.read(str(name)).data
        self._url = f"{storage.url}/{name}"
        self._nodes = self._nodes_of_rows()

    def check(self, index_name: BundleName | None) -> None:
        """Check each row alone and against its index row."""
        report, name = self._report, self._name
        report.bundles += 1
        rows = self._rows(name, self._data)
        report.rows[name.datatype] += sum(row is not None for row in rows)
        go = any(row.go for row in rows if row)
        report.of_go += go
        if index_name is None:
            report.say(name, "has no index bundle")
            return
        if self._nodes and len(self._nodes) != len(rows):
            report.say(name, f"{len(rows)} rows, but {len(self._nodes)} in its table of nodes")
        entries = self._go_index(index_name) if go else self._index(index_name)
        if len(entries) != len(rows):
            report.say(name, f"{len(rows)} rows, but {len(entries)} in its index")
            return
        blocks = _Blocks(self._data)
        for line, (found, entry) in enumerate(zip(rows, entries, strict=True), 1):
            if found is None or not entry:  # already reported by _rows or _index
                continue
            node = self._nodes[line - 1] if line <= len(self._nodes) else self._name.node
            problems = (
                _go_problems(found, entry) if go else self._row_problems(found, entry, line, node)
            )
            if not go and (problem := blocks.problem(found, entry)):
                problems.append(problem)
            for problem in problems:
                report.say(name, problem, line)
            self._note(found, entry, node, go=go)

    def _nodes_of_rows(self) -> list[str]:
        """Return the node of each row of a merged bundle; nothing for a bundle of one node."""
        try:
            runs = runs_of(self._data)
        except ValueError as exc:
            self._report.say(self._name, str(exc))
            return []
        return [run.node for run in runs for _ in range(run.rows)]

    def _rows(self, name: BundleName, data: bytes) -> list[Row | None]:
        """Return the rows of an object; report each line that is not a row, and return None."""
        rows: list[Row | None] = []
        for number, line in enumerate(self._lines(name, data), 1):
            try:
                found = row(line)
            except RowError as exc:
                self._report.say(name, str(exc), number)
                rows.append(None)
                continue
            if not found.go and not line.endswith(b"\n"):
                self._report.say(name, "the line has no end", number)
            if problem := _column_problem(name, found, f"{self._storage.url}/{name}"):
                self._report.say(name, problem, number)
            rows.append(found)
        return rows

    def _lines(self, name: BundleName, data: bytes) -> list[bytes]:
        try:
            return lines_of(data)
        except RowError as exc:
            self._report.say(name, str(exc))
            return []

    def _index(self, name: BundleName) -> list[dict[str, Any]]:
        """Return the index rows; report each bad one and return an empty dict for it."""
        entries = []
        for number, found in enumerate(self._rows(name, self._storage.read(str(name)).data), 1):
            entry = self._members(name, found.raw, number) if found else {}
            bad = [key for key, kind in _INDEX_TYPES.items() if type(entry.get(key)) is not kind]
            bad += [key for key in _FACTS if not isinstance(entry.get(key), str | None)]
            if entry and bad:
                self._report.say(name, f"the index row has no good {', '.join(bad)}", number)
            entries.append({} if bad else entry)
        return entries

    def _go_index(self, name: BundleName) -> list[dict[str, Any]]:
        """Return the index lines of the Go agent; report bad ones and return empty dicts."""
        entries = []
        for number, line in enumerate(self._lines(name, self._storage.read(str(name)).data), 1):
            entry = self._members(name, line, number) if is_bare(line) else {}
            if set(entry) != _GO_INDEX_KEYS or loadable_index(line) == line:
                self._report.say(name, "no index line as the Go agent writes it", number)
                entry = {}
            entries.append(entry)
        return entries

    def _members(self, name: BundleName, value: bytes, number: int) -> dict[str, Any]:
        try:
            return members(value)
        except RowError as exc:
            self._report.say(name, str(exc), number)
            return {}

    def _row_problems(self, row: Row, entry: dict[str, Any], line: int, node: str) -> list[str]:
        """Return where a row and its index row differ."""
        expected = {
            "Filename": row.archiver["Filename"],
            "Datatype": self._name.datatype,
            "Node": node,
            "ArchiveURL": self._url,
            "Line": line,
        }
        problems = [
            f"index has {key} {entry.get(key)!r}, expected {value!r}"
            for key, value in expected.items()
            if entry.get(key) != value
        ]
        if self._name.datatype == REJECTED:
            return problems + _rejected_problems(row, entry)
        if any(_hash(content) != entry["Hash"] for content in _hashed(row, entry)):
            problems.append(f"Hash {entry['Hash']} is not that of its bytes")
        if len(row.raw) > entry["Size"]:
            problems.append(f"raw has {len(row.raw)} bytes, the file had {entry['Size']}")
        return problems

    def _note(self, row: Row, entry: dict[str, Any], node: str, *, go: bool) -> None:
        """Remember the file of a row."""
        datatype = self._name.datatype
        filename = str(row.archiver["Filename"])
        if go:  # the path is absolute; its last four parts are the day and the name
            filename = "/".join(filename.split("/")[-4:])
        if datatype == REJECTED:
            datatype = str(members(row.raw).get("Datatype", ""))
        file = File(
            node=node,
            raw_hash=_hash(row.raw),
            index_hash="" if go else str(entry["Hash"]),
            rejected=self._name.datatype == REJECTED,
        )
        self._report.files.setdefault((datatype, filename), []).append(file)


def _column_problem(name: BundleName, row: Row, url: str) -> str:
    """Return what is wrong with the standard columns, or nothing."""
    date, filename = row.date, str(row.archiver["Filename"])
    archive_url = row.archiver["ArchiveURL"]
    wrong = {f"ArchiveURL {archive_url!r} is not this bundle": archive_url != url}
    if row.go:  # its folder is the day of upload, its Filename an absolute path
        wrong[f"Filename {filename!r} lies in another day than date {date!r}"] = (
            f"/{str(date).replace('-', '/')}/" not in filename
        )
    else:
        # A rejected file may lie in a directory that is no day.
        day = "" if name.datatype == REJECTED else f"{name.day.path}/"
        wrong[f"date {date!r} is not the bundle's day"] = date != name.day.iso
        wrong[f"Filename {filename!r} lies in another day"] = not filename.startswith(day)
    return "; ".join(problem for problem, is_so in wrong.items() if is_so)


def _hashed(row: Row, entry: dict[str, Any]) -> list[bytes]:
    """Return the bytes that an index row's Hash is of, each of which must have it.

    An index row without `Start` has the hash of the file's bytes.  `raw` lacks the file's line
    breaks and byte order mark, so that hash is known only of a file that had none of them, or just
    one line feed at its end.
    """
    if "Start" in entry:
        return [row.raw]
    return [one for one in (row.raw, row.raw + b"\n") if len(one) == entry["Size"]]


def _rejected_problems(row: Row, entry: dict[str, Any]) -> list[str]:
    """Return what is wrong with the hash of a rejected file, if all its bytes are in the row."""
    if not entry["Hash"]:
        return []
    try:
        content = b64decode(str(members(row.raw).get("Content", "")), validate=True)
    except (RowError, ValueError) as exc:
        return [f"Content is not base64: {exc}"]
    return [] if _hash(content) == entry["Hash"] else [f"Hash {entry['Hash']} is not Content's"]


def _go_problems(row: Row, entry: dict[str, Any]) -> list[str]:
    """Return where a row of the Go agent and its index line differ."""
    expected = {"Filename": row.archiver["Filename"], "Size": len(row.line.rstrip(b"\n"))}
    return [
        f"index has {key} {entry[key]!r}, expected {value!r}"
        for key, value in expected.items()
        if entry[key] != value
    ]


class _Blocks:
    """Reads single blocks of one object; keeps the last block, as its rows follow one another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._where = (-1, -1)
        self._plain = b""

    def problem(self, row: Row, entry: dict[str, Any]) -> str:
        """Return why a row cannot be read through its block; an empty text if it can."""
        where = offset, length = entry["Offset"], entry["Length"]
        if where != self._where:
            packed = self._data[offset : offset + length]
            try:
                self._plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
            except zlib.error as exc:
                return f"block {offset}+{length} does not inflate alone: {exc}"
            self._where = where
        if row.line not in self._plain:
            return f"block {offset}+{length} does not hold the row"
        return ""


def _check_originals(originals: Path, report: Report) -> None:
    """Report each original file that is not in the bucket with the same bytes."""
    for path in sorted(path for path in originals.rglob("*") if path.is_file()):
        report.originals += 1
        datatype, _, filename = path.relative_to(originals).as_posix().partition("/")
        content = path.read_bytes()
        raw = content.removeprefix(b"\xef\xbb\xbf").translate(None, b"\r\n")
        stored: Sequence[File] = report.files.get((datatype, filename), [])
        known = {"", _hash(content), _hash(raw)}
        if not any(f.raw_hash == _hash(raw) and f.index_hash in known for f in stored):
            report.say(f"{datatype}/{filename}", "is not in the bucket as it is here")


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
