"""One bundle to merge: data and index, read whole and compared with each other.

**Invariant:** each row that is handed out is the one that its index row says: the same line, node,
Filename, and Hash.  A bundle that differs from its index, is cut off, or has another form is an
InputError, and nothing of it may be removed.

Pure: takes bytes, reads no bucket.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import orjson
from isal import isal_zlib

from jostler.format.go import is_bare
from jostler.format.index_row import IndexRow
from jostler.format.names import REJECTED, BundleName, display
from jostler.format.node_table import Run, runs_of
from jostler.format.row import Archiver, content_hash, row_head

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.archive.compact_plan import Member
    from jostler.format.names import Day

PIECE_BYTES = 64 * 1024
"""Bytes of an object that are inflated at once."""
END_BYTES = 10
"""What follows the last block of a bundle: an empty block, checksum and length."""
_HEAD_END = b'},"raw":'  # never inside of a string: there quotes are escaped
_ROW_END = b"}\n"
_HASH_CHARS = 32


class InputError(Exception):
    """A bundle cannot be merged, and stays as it is; the message says why.

    Attributes:
        foreign: it has nothing wrong, but a form that is not merged.
    """

    def __init__(self, message: str, *, foreign: bool = False) -> None:
        super().__init__(message)
        self.foreign = foreign


_ROWS = msgspec.json.Decoder(IndexRow)


class Taken(NamedTuple):
    """A row of a bundle.

    Attributes:
        filename: its Filename.
        digest: the hash of its `raw`.
        archiver: the program that archived it.
        rest: its bytes from the Filename on, as JSON, to the line feed.
    """

    filename: str
    digest: bytes
    archiver: Archiver
    rest: bytes


@dataclass(slots=True, kw_only=True)
class Input:
    """A bundle.

    Attributes:
        member: as it was listed.
        data: bytes of the data object.
        runs: the nodes of its rows.
        index: its index rows; empty if it has no index object.
        identities: Filename and hash of `raw` of each row, in the order of lines.
    """

    member: Member
    data: bytes
    runs: tuple[Run, ...]
    index: list[IndexRow] = field(default_factory=list)
    identities: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def plain_bytes(self) -> int:
        """Bytes of its rows, as the gzip trailer has them (RFC 1952, ISIZE); modulo 2^32."""
        (size,) = struct.unpack("<L", self.data[-4:])
        return int(size)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.identities)

    def keys(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield node, Filename and hash of each row."""
        lines = iter(self.identities)
        for run in self.runs:
            for _ in range(run.rows):
                yield (run.node, *next(lines))

    def reader(self) -> InputReader:
        """Return a reader of its rows, which begins with the first one."""
        return InputReader(self)


def read_input(member: Member, data: bytes, index: bytes) -> Input:
    """Take apart a bundle and its index.

    Args:
        member: as it was listed.
        data: bytes of the data object.
        index: bytes of the index object; empty if there is none.

    Raises:
        InputError: it cannot be merged.
    """
    name = member.name
    try:
        runs = runs_of(data)
    except ValueError as exc:
        raise InputError(str(exc)) from exc
    if not index:
        return _without_index(member, data, runs)
    rows = _index_rows(index)
    made = Input(member=member, data=data, runs=runs or (Run(name.node, len(rows)),), index=rows)
    _check(made)
    if name.datatype == REJECTED:  # its Hash is that of Content
        made.identities = [(row.filename, row.digest) for row in _all_rows(data, name)]
        if [one.raw.Filename for one in rows] != [filename for filename, _ in made.identities]:
            raise InputError("it has other files than its index")
    else:
        made.identities = [(one.raw.Filename, bytes.fromhex(one.raw.Hash)) for one in rows]
    return made


def _without_index(member: Member, data: bytes, runs: tuple[Run, ...]) -> Input:
    identities = [(row.filename, row.digest) for row in _all_rows(data, member.name)]
    runs = runs or (Run(member.name.node, len(identities)),)
    if sum(run.rows for run in runs) != len(identities):
        raise InputError("it has another number of rows than its table of nodes")
    return Input(member=member, data=data, runs=runs, identities=identities)


def _index_rows(index: bytes) -> list[IndexRow]:
    try:
        plain = isal_zlib.decompress(index, wbits=31)
        rows = _ROWS.decode_lines(plain)
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise InputError(f"its index is no gzip stream: {exc}") from exc
    except msgspec.DecodeError as exc:
        line = plain.partition(b"\n")[0]
        older = is_bare(line) or (line.endswith(b"}}") and b',"Start":' not in line)
        raise InputError(f"its index has another form than today's: {exc}", foreign=older) from exc
    if not rows:
        raise InputError("its index is empty")
    return rows


def _check(made: Input) -> None:
    """Check that the index is that of the object, as far as the index alone shows it."""
    name, rows = made.member.name, made.index
    if sum(run.rows for run in made.runs) != len(rows):
        raise InputError("its index has another number of rows than its table of nodes")
    nodes = iter([run.node for run in made.runs for _ in range(run.rows)])
    url, last = rows[0].raw.ArchiveURL, rows[-1].raw
    if not url.endswith(f"/{name}"):
        raise InputError(f"its index is that of {url}")
    for line, (one, node) in enumerate(zip(rows, nodes, strict=True), 1):
        raw = one.raw
        if raw.Line != line or raw.ArchiveURL != url or raw.Node != node:
            raise InputError(f"line {line} of its index is about another row")
        if raw.Filename != one.archiver.Filename or one.date != name.day.iso:
            raise InputError(f"line {line} of its index contradicts itself")
        if raw.Datatype != name.datatype:
            raise InputError(f"line {line} of its index is about another datatype")
        if len(raw.Hash) != _HASH_CHARS and name.datatype != REJECTED:
            raise InputError(f"line {line} of its index has no hash")
    if last.Offset + last.Length + END_BYTES != len(made.data):
        raise InputError("by its index the object has another size")


class InputReader:
    """Reads the rows of a bundle in order, the rows of one node at a time.

    Raises of `take` and `finish`:
        InputError: the object is not what its index says, or no complete gzip stream.
    """

    def __init__(self, one: Input) -> None:
        self._of = one
        self._rows = _all_rows(one.data, one.member.name)
        self._runs = iter(one.runs)
        self._next = next(self._runs, None)
        self._line = 0

    @property
    def node(self) -> str | None:
        """The node of the next rows; None at the end."""
        return self._next.node if self._next else None

    def take(self) -> tuple[int, list[Taken]]:
        """Return the rows of the next node, and the number of the first of them, from 0."""
        assert self._next
        first = self._line
        wanted = self._of.identities[first : first + self._next.rows]
        found = list(islice(self._rows, len(wanted)))
        if [(row.filename, row.digest) for row in found] != wanted:
            same = takewhile(lambda both: both[0][:2] == both[1], zip(found, wanted, strict=False))
            line = first + sum(1 for _ in same) + 1
            raise InputError(f"line {line} is not the row of its index")
        self._line += len(found)
        self._next = next(self._runs, None)
        return first, found

    def finish(self) -> None:
        """Check that there are no further rows, and that the object is complete."""
        if next(self._rows, None) is not None:
            raise InputError("it has more rows than its index")


def _all_rows(data: bytes, name: BundleName) -> Iterator[Taken]:
    """Yield the rows of an object; at the end it is known to be complete.

    Raises:
        InputError: a row has another form, or the object is not exactly one gzip stream.
    """
    heads = _Heads(name)
    for lines in _lines(data):
        yield from heads.take(lines)


class _Heads:
    """Takes rows apart; the part before the Filename is the same in most of them."""

    def __init__(self, name: BundleName) -> None:
        self._day: Day = name.day
        self._name = name
        self._head = b"\n"  # no row begins so
        self._archiver = Archiver(version="", commit="")

    def take(self, lines: bytes) -> Iterator[Taken]:
        """Yield the rows of some whole lines."""
        # A view: rows are hashed where they lie, and copied once.
        view, find, begins = memoryview(lines), lines.find, lines.startswith
        head, archiver = self._head, self._archiver
        at = 0
        while at < len(lines):
            end = find(b"\n", at) + 1
            if not begins(head, at, end):
                self._learn(lines[at:end])
                head, archiver = self._head, self._archiver
            start = at + len(head)
            stop = find(_HEAD_END, start, end)
            if stop < 0 or not lines.endswith(_ROW_END, start, end):
                raise InputError(f"a row is no row: {lines[at : min(end, at + 80)]!r}")
            quoted = lines[start:stop]
            if b"\\" in quoted:
                filename = _text(quoted)
            else:
                filename = quoted[1:-1].decode(errors="backslashreplace")
            raw = view[stop + len(_HEAD_END) : end - len(_ROW_END)]
            yield Taken(filename, content_hash(raw), archiver, lines[start:end])
            at = end

    def _learn(self, line: bytes) -> None:
        """Learn how rows of another version of jostler begin."""
        try:
            columns = orjson.loads(line[: line.find(_HEAD_END)] + b"}}")
            fields = columns["archiver"]
            self._archiver = Archiver(version=fields["Version"], commit=fields["GitCommit"])
            head = row_head(self._archiver, self._day, fields["ArchiveURL"])
        except (ValueError, KeyError, TypeError) as exc:
            raise InputError(f"a row has another form than jostler's: {exc!r}") from exc
        if not line.startswith(head):
            raise InputError("its rows are written in another way than jostler's", foreign=True)
        if not fields["ArchiveURL"].endswith(f"/{self._name}"):
            raise InputError(f"a row says that it lies in {fields['ArchiveURL']}")
        self._head = head


def _text(quoted: bytes) -> str:
    try:
        return display(str(orjson.loads(quoted)))
    except ValueError as exc:
        raise InputError(f"a row has no Filename: {exc}") from exc


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the text of an object, some whole lines at a time; at the end it is complete.

    Raises:
        InputError: it is not exactly one gzip stream, or its last line has no end.
    """
    inflate = isal_zlib.decompressobj(31)
    view, rest = memoryview(data), b""
    try:
        for at in range(0, len(data), PIECE_BYTES):
            plain = inflate.decompress(view[at : at + PIECE_BYTES])
            end = plain.rfind(b"\n") + 1
            if end:
                yield rest + plain[:end]
                rest = plain[end:]
            else:
                rest += plain
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise InputError(f"the gzip stream is broken: {exc}") from exc
    # Inflating stops silently at the end of the first member: what follows would be left out, and
    # lost with the object.
    if not inflate.eof or inflate.unused_data:
        raise InputError("it is not exactly one whole gzip stream")
    if rest:
        raise InputError("its last line has no end")
