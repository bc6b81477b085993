"""Prove that a bundle is good by comparing its bytes with those that its index promises.

**Invariant:** what is proven is good by each rule of `bundle`.  What is not proven may be good,
too: of an older form, or of the Go agent; `explain` looks at each of its lines.

Rows of the usual form are compared by the native module, others here; a proof is the same by both.
Pure: takes bytes, returns values.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Protocol

import msgspec
from isal import isal_zlib
from orjson import dumps

from jostler.archive.audit.explain import IndexValues, nodes_of
from jostler.archive.audit.stream import BlocksError, by_blocks, header_bytes
from jostler.archive.lines import RowError, row
from jostler.archive.native_index import native_index
from jostler.format.blocks import inflated
from jostler.format.index_row import IndexRow
from jostler.format.names import REJECTED
from jostler.format.node_table import runs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.archive.native_index import NativeIndex
    from jostler.format.index_row import IndexRaw
    from jostler.format.names import BundleName


HASH_BYTES = 16
ROWS_AT_ONCE = 256
"""Rows that are compared together: enough to hash several at once, and few enough for the cache."""
BLOCKS_AT_ONCE = 16
"""Blocks that are compared together at most, where rows are large."""
_HEAD_END = b'},"raw":'
_FILENAME = b'"Filename":'
_OPENED = ord("{")


class _Values(msgspec.Struct, gc=False):
    raw: IndexValues


# Only a row with Start, null or not, has the hash of `raw`: an older form proves nothing here.
_ROWS = msgspec.json.Decoder(IndexRow)
_VALUES = msgspec.json.Decoder(_Values)


class Proof(Protocol):
    """A good bundle."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def plain_bytes(self) -> int:
        """Bytes of its lines."""

    @property
    def native(self) -> NativeIndex | None:
        """Its index, if the native module has read it."""

    def keys(self) -> Sequence[bytes]:
        """Return the key of each row; see `bundle.keys`."""

    def identities(self) -> Sequence[tuple[str, str, bytes]]:
        """Return node, Filename and hash of `raw` of each row."""


def proven(
    name: BundleName, bucket: str, data: bytes, index_name: BundleName, index: bytes
) -> Proof | None:
    """Return the proof that a bundle is good; None if it is not proven.

    None says that bytes differ from what they are in a good bundle of today's form;
    `bundle.check` says what is wrong, or that nothing is.

    Args:
        name: of the data object.
        bucket: URL of the bucket.
        data: bytes of the data object.
        index_name: of the index object.
        index: its bytes.
    """
    if name.datatype == REJECTED:  # their Hash is that of Content
        return None
    if not header_bytes(index):
        return None
    try:
        text = inflated(index)
        runs = runs_of(data)
    except (isal_zlib.error, EOFError, ValueError):  # type: ignore[misc]
        return None
    url, index_url = f"{bucket}/{name}", f"{bucket}/{index_name}"
    native = native_index(name, text, runs, url=url, index_url=index_url)
    if native:
        by_native = _Native(name, url, native)
        if by_native.is_of(data):
            return by_native
    by_python = _Python(name, url, index_url)
    return by_python if by_python.is_of(data, text) else None


@dataclass(slots=True)
class _Native:
    """The proof by the native module."""

    _name: BundleName
    _url: str
    native: NativeIndex
    plain_bytes: int = 0

    @property
    def rows(self) -> int:
        return len(self.native)

    def keys(self) -> Sequence[bytes]:
        return self.native.keys(self._name.datatype)

    def identities(self) -> Sequence[tuple[str, str, bytes]]:
        return self.native.identities()

    def is_of(self, data: bytes) -> bool:
        """Return whether the data object is what the index says."""
        places = self.native.blocks()
        blocks = by_blocks(data, ((offset, length) for offset, length, _ in places))
        try:
            return self._has(zip(blocks, (rows for *_, rows in places), strict=True))
        except BlocksError:
            return False

    def _has(self, blocks: Iterable[tuple[bytes, int]]) -> bool:
        """Return whether the lines of all blocks, so many in each, are those of the index."""
        head, line = b"", 0
        for some in _together(blocks):
            self.plain_bytes += sum(len(plain) for plain, _ in some)
            head = head or head_of(some[0][0], 0, self._name, self._url)
            while head and some:
                taken = self.native.take_blocks(some, line, head=head)
                line += sum(rows for _, rows in some[:taken])
                del some[:taken]
                if some:  # a merged bundle's rows have several heads
                    plain, rows = some.pop(0)
                    head = self._head_after(plain, line, rows, head)
                    line += rows
            if not head:
                return False
        return True

    def _head_after(self, plain: bytes, line: int, rows: int, head: bytes) -> bytes:
        """Return the head of a block's last line; empty if it has not these rows."""
        at, end = 0, line + rows
        while line < end:
            taken, at = self.native.take(plain, at, line, end - line, head=head)
            line += taken
            if line < end:
                before, head = head, head_of(plain, at, self._name, self._url)
                if head in {b"", before}:
                    return b""
        return head if at == len(plain) else b""


def _together(blocks: Iterable[tuple[bytes, int]]) -> Iterator[list[tuple[bytes, int]]]:
    """Yield some blocks after another, each with the number of its rows."""
    some: list[tuple[bytes, int]] = []
    for block in blocks:
        some.append(block)
        if len(some) == BLOCKS_AT_ONCE or sum(rows for _, rows in some) >= ROWS_AT_ONCE:
            yield some
            some = []
    if some:
        yield some


class _Python:
    """The proof by Python; if it fails, nothing is known yet."""

    native = None

    def __init__(self, name: BundleName, url: str, index_url: str) -> None:
        self.plain_bytes = 0
        self._name = name
        self._head = b""
        self._url = url
        self._index_url = index_url
        self._rows: list[IndexRaw] = []

    @property
    def rows(self) -> int:
        return len(self._rows)

    def keys(self) -> Sequence[bytes]:
        return [
            blake2b(
                f"{one.Node}\0{one.Datatype}\0{one.Filename}\0{one.Hash}\0False".encode(),
                digest_size=HASH_BYTES,
            ).digest()
            for one in self._rows
        ]

    def identities(self) -> Sequence[tuple[str, str, bytes]]:
        return [(one.Node, one.Filename, bytes.fromhex(one.Hash)) for one in self._rows]

    def is_of(self, data: bytes, text: bytes) -> bool:
        """Return whether the data object is what an index of today's form says."""
        try:
            index_rows = _ROWS.decode_lines(text)
            _VALUES.decode_lines(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        # The decoder passes over empty lines.
        if not text.endswith(b"\n") or len(index_rows) != text.count(b"\n"):
            return False
        if not self._is_index(data, index_rows):
            return False
        self._rows = rows = [one.raw for one in index_rows]
        places = _places(rows)
        blocks = by_blocks(data, ((offset, length) for offset, length, _ in places))
        at = 0
        try:
            for plain, (_, _, many) in zip(blocks, places, strict=True):
                if not self._has(plain, rows[at : at + many]):
                    return False
                at += many
                self.plain_bytes += len(plain)
        except BlocksError:
            return False
        return True

    def _is_index(self, data: bytes, index_rows: Sequence[IndexRow]) -> bool:
        """Return whether rows of an index are those of this bundle, as far as they show it."""
        name, date = self._name, self._name.day.iso
        datatype, url, index_url = name.datatype, self._url, self._index_url
        folder = f"{name.day.path}/"
        try:
            nodes = nodes_of(data) or [name.node] * len(index_rows)
        except ValueError:
            return False
        return len(nodes) == len(index_rows) and all(
            (raw := one.raw).Line == line
            and one.date == date
            and (archiver := one.archiver).ArchiveURL == index_url
            and archiver.Filename == (filename := raw.Filename)
            and raw.ArchiveURL == url
            and raw.Datatype == datatype
            and raw.Node == node
            and filename.startswith(folder)
            for line, one, node in zip(count(1), index_rows, nodes, strict=False)
        )

    def _has(self, plain: bytes, index_rows: Sequence[IndexRaw]) -> bool:
        """Return whether the lines of one block are those of these index rows."""
        head = self._head
        view, begins, ends = memoryview(plain), plain.startswith, plain.endswith
        at = 0
        for one in index_rows:
            end = plain.find(b"\n", at)
            begin = head + dumps(one.Filename) + _HEAD_END
            if not head or not begins(begin, at, end):  # a merged bundle's rows have several heads
                head = self._head = head_of(plain, at, self._name, self._url)
                begin = head + dumps(one.Filename) + _HEAD_END
                if not head or not begins(begin, at, end):
                    return False
            start = at + len(begin)
            # A view: rows are hashed where they lie, for to copy long ones takes as long again.
            raw = view[start : end - 1]
            # With this Hash it is the file that the agent found to be one JSON object.
            if (
                blake2b(raw, digest_size=HASH_BYTES).hexdigest() != one.Hash
                or len(raw) > one.Size
                or not ends(b"}}", start, end)
                or plain[start] != _OPENED
            ):
                return False
            at = end + 1
        return at == len(plain)


def head_of(plain: bytes, at: int, name: BundleName, url: str) -> bytes:
    """Return the bytes before the Filename, which good rows share; empty if a line is no good row.

    Args:
        plain: lines.
        at: where the line begins.
        name: of the data object.
        url: of the data object.
    """
    end = plain.find(b"\n", at)
    line = plain[at : end if end >= 0 else len(plain)]
    try:
        first = row(line)
    except RowError:
        return b""
    if first.go or first.date != name.day.iso or first.archiver["ArchiveURL"] != url:
        return b""
    found = line.find(_FILENAME)
    return line[: found + len(_FILENAME)] if found >= 0 else b""


def _places(rows: Sequence[IndexRaw]) -> list[tuple[int, int, int]]:
    """Return offset and length of each block, and how many rows it has, in order."""
    found: list[tuple[int, int, int]] = []
    for one in rows:
        if found and found[-1][0] == one.Offset and found[-1][1] == one.Length:
            offset, length, many = found[-1]
            found[-1] = offset, length, many + 1
        else:
            found.append((one.Offset, one.Length, 1))
    return found
