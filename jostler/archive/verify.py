"""`jostler verify`: read a bucket and prove that every file is in it once, whole and findable.

**Invariant:** reads only.  Everything is checked against docs/format.md, nothing is taken from the
code that writes: rows are parsed as any reader would, blocks are inflated with zlib.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostler.errors import JostlerError, MissingError
from jostler.format.names import BUNDLE_SUFFIX, REJECTED, BundleName, Kind
from jostler.storage import open_storage

if TYPE_CHECKING:
    from jostler.storage import Storage

USAGE = """usage: jostler verify BUCKET-URL [PREFIX] [-originals DIR]

Reads the data, rejected1 and index1 bundles below PREFIX and checks that they agree with each
other, that every row can be found by its index row, and that no file was stored twice.
With -originals, also that every file of DIR (<datatype>/<yyyy>/<mm>/<dd>/<name>) is there with
its own bytes.
Exit status: 0 all well, 1 a difference was found, 2 wrong use."""

_RAW = b'},"raw":'
_LINE_KEYS = ("date", "archiver", "raw")
_ARCHIVER_KEYS = ("Version", "GitCommit", "ArchiveURL", "Filename")


@dataclass(slots=True)
class Report:
    """What was read and what was wrong.

    Attributes:
        bundles: data bundles read.
        rows: rows of data bundles by datatype.
        problems: one line each.
        files: of each (datatype, Filename) what was stored: the file's hash as its index row has
            it, and the hash of the bytes of `raw`.
    """

    bundles: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    files: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a bundle: its bytes and the parts that were found in it."""

    line: bytes
    columns: dict[str, Any]
    raw: bytes


def main(argv: list[str]) -> int:
    """Run the command; return its exit status."""
    originals = None
    words = list(argv)
    for flag in ("-originals", "--originals"):
        if flag in words:
            at = words.index(flag)
            originals = Path(words[at + 1]) if at + 1 < len(words) else None
            del words[at : at + 2]
    if not 1 <= len(words) <= 2 or any(word.startswith("-") for word in words):  # noqa: PLR2004
        print(USAGE, file=sys.stderr)  # noqa: T201 - a command's output
        return 2
    try:
        storage = open_storage(words[0])
        report = verify(storage, words[1] if len(words) > 1 else "", originals)
    except ValueError as exc:
        print(f"jostler verify: {exc}", file=sys.stderr)  # noqa: T201 - as above
        return 2
    except JostlerError as exc:
        print(f"jostler verify: {exc}", file=sys.stderr)  # noqa: T201 - as above
        return 1
    for problem in report.problems:
        print(f"PROBLEM {problem}")  # noqa: T201 - as above
    rows = ", ".join(f"{count} {datatype}" for datatype, count in sorted(report.rows.items()))
    print(  # noqa: T201 - as above
        f"{report.bundles} bundles, rows: {rows or 'none'}; {len(report.problems)} problems"
    )
    return 1 if report.problems else 0


def verify(storage: Storage, prefix: str, originals: Path | None = None) -> Report:
    """Check all bundles below a prefix.

    Raises:
        TransientError: the bucket cannot be asked.
    """
    report = Report()
    data, index = _bundles(storage, prefix, report)
    for key, name in data.items():
        index_name = index.pop(key, None)
        _check_bundle(storage, name, index_name, report)
    for index_name in index.values():
        report.problems.append(f"{index_name}: there is no data bundle for this index")
    for (datatype, filename), stored in report.files.items():
        for digest, count in Counter(digest for digest, _ in stored).items():
            if count > 1:
                report.problems.append(f"{datatype}/{filename}: stored {count} times ({digest})")
    if originals:
        _check_originals(originals, report)
    return report


def _bundles(
    storage: Storage, prefix: str, report: Report
) -> tuple[dict[str, BundleName], dict[str, BundleName]]:
    """Return data and index bundles, each by what both of a pair share."""
    found: dict[Kind, dict[str, BundleName]] = {Kind.DATA: {}, Kind.INDEX: {}}
    for info in storage.list(prefix):
        if not info.name.endswith(BUNDLE_SUFFIX):
            continue
        try:
            name = BundleName.parse(info.name)
        except ValueError as exc:
            report.problems.append(str(exc))
            continue
        pair = f"{name.place.root} {name.day.path} {name.created} {name.datatype} {name.node}"
        found[name.kind][pair] = name
    return found[Kind.DATA], found[Kind.INDEX]


def _check_bundle(
    storage: Storage, name: BundleName, index_name: BundleName | None, report: Report
) -> None:
    report.bundles += 1
    data = storage.read(str(name)).data
    rows = _rows(storage, name, data, report)
    report.rows[name.datatype] += len(rows)
    if index_name is None:
        report.problems.append(f"{name}: has no index bundle")
        return
    try:
        index_data = storage.read(str(index_name)).data
    except MissingError:
        report.problems.append(f"{index_name}: went away while it was looked at")
        return
    index = _rows(storage, index_name, index_data, report)
    if len(index) != len(rows):
        report.problems.append(f"{name}: {len(rows)} rows, but {len(index)} in its index")
        return
    url = f"{storage.url}/{name}"
    blocks = _Blocks(data)
    for line, (row, entry) in enumerate(zip(rows, index, strict=True), 1):
        where = f"{name}: line {line}"
        for problem in _row_problems(name, row, entry.columns["raw"], line, url):
            report.problems.append(f"{where}: {problem}")
        if problem := blocks.problem(row, entry.columns["raw"]):
            report.problems.append(f"{where}: {problem}")
        _note_file(name, row, entry.columns["raw"], report)


def _rows(storage: Storage, name: BundleName, data: bytes, report: Report) -> list[Row]:
    """Return the rows of a bundle that are rows, and report the others."""
    try:
        plain = _gunzip(data)
    except zlib.error as exc:
        report.problems.append(f"{name}: not one gzip stream: {exc}")
        return []
    if not plain.endswith(b"\n"):
        report.problems.append(f"{name}: the last line has no end")
    rows = []
    for number, line in enumerate(plain.split(b"\n")[:-1], 1):
        try:
            columns = json.loads(line)
            raw = line[line.index(_RAW) + len(_RAW) : -1]
        except ValueError as exc:
            report.problems.append(f"{name}: line {number}: no row: {exc}")
            continue
        problem = _column_problem(storage, name, columns)
        if problem:
            report.problems.append(f"{name}: line {number}: {problem}")
            continue
        rows.append(Row(line + b"\n", columns, raw))
    return rows


def _gunzip(data: bytes) -> bytes:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    plain = inflate.decompress(data)
    if not inflate.eof or inflate.unused_data:
        raise zlib.error("truncated, or more than one stream")
    return plain


def _column_problem(storage: Storage, name: BundleName, columns: Any) -> str:  # noqa: ANN401 - JSON
    """Return what is wrong with the standard columns, or nothing."""
    if not isinstance(columns, dict) or tuple(columns) != _LINE_KEYS:
        return f"expected the columns {_LINE_KEYS}"
    archiver, raw = columns["archiver"], columns["raw"]
    if not isinstance(archiver, dict) or tuple(archiver) != _ARCHIVER_KEYS:
        return f"expected archiver to have {_ARCHIVER_KEYS}"
    if not all(isinstance(value, str) and value for value in archiver.values()):
        return "a field of archiver is empty"
    day = "" if name.datatype == REJECTED else f"{name.day.path}/"  # its paths may have no day
    wrong = {
        f"date {columns['date']!r} is not the bundle's day": columns["date"] != name.day.iso,
        f"ArchiveURL {archiver['ArchiveURL']!r} is not this bundle": (
            archiver["ArchiveURL"] != f"{storage.url}/{name}"
        ),
        f"Filename {archiver['Filename']!r} lies in another day": (
            not archiver["Filename"].startswith(day)
        ),
        "raw is not an object": not isinstance(raw, dict),
    }
    return "; ".join(problem for problem, is_so in wrong.items() if is_so)


def _row_problems(
    name: BundleName, row: Row, entry: dict[str, Any], line: int, url: str
) -> list[str]:
    """Return where a row and its index row differ."""
    expected = {
        "Filename": row.columns["archiver"]["Filename"],
        "Datatype": name.datatype,
        "Node": name.node,
        "ArchiveURL": url,
        "Line": line,
    }
    problems = [
        f"index has {key} {entry.get(key)!r}, expected {value!r}"
        for key, value in expected.items()
        if entry.get(key) != value
    ]
    if name.datatype == REJECTED:
        return problems
    # The file may have had line breaks or a byte order mark, which raw has not; without them,
    # or with the one at its end, its hash can be computed here.
    problems += [
        f"Hash {entry['Hash']} is not that of its bytes"
        for content in (row.raw, row.raw + b"\n")
        if len(content) == entry["Size"] and _hash(content) != entry["Hash"]
    ]
    if len(row.raw) > entry["Size"]:
        problems.append(f"raw has {len(row.raw)} bytes, the file had {entry['Size']}")
    return problems


class _Blocks:
    """Reads single blocks of one object; rows of the same block come one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._where = (-1, -1)
        self._plain = b""

    def problem(self, row: Row, entry: dict[str, Any]) -> str:
        """Return why a row cannot be read alone, or nothing."""
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


def _note_file(name: BundleName, row: Row, entry: dict[str, Any], report: Report) -> None:
    datatype = row.columns["raw"]["Datatype"] if name.datatype == REJECTED else name.datatype
    stored = report.files.setdefault((datatype, entry["Filename"]), [])
    stored.append((entry["Hash"], _hash(row.raw)))


def _check_originals(originals: Path, report: Report) -> None:
    """Report each file of a directory that is not in the bucket with its own bytes."""
    for path in sorted(path for path in originals.rglob("*") if path.is_file()):
        datatype, _, filename = path.relative_to(originals).as_posix().partition("/")
        content = path.read_bytes()
        raw = content.removeprefix(b"\xef\xbb\xbf").translate(None, b"\r\n")
        stored = report.files.get((datatype, filename), [])
        if (_hash(content), _hash(raw)) not in stored:
            report.problems.append(f"{datatype}/{filename}: is not in the bucket as it is here")


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
