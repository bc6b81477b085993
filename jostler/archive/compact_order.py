"""The order of the rows of a merged bundle, and which of them are left out.

**Invariant:** the same rows are in the same order whoever merges them and in whatever order the
inputs were read, so every compactor makes the same name, and with the same library the same bytes.
Of rows with equal node, Filename and bytes of `raw`, the one with the earliest TimeAdded stays.

Where all indexes have the usual form, the native module puts the rows in order; the order is the
same.  Pure.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import orjson

from jostler.archive.native_index import MergedRows, native_merge
from jostler.format.blocks import BLOCK_BYTES
from jostler.format.index_row import IndexRaw, IndexRow, RowArchiver

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jostler.archive.audit.proof import Proof
    from jostler.archive.compact_input import Input
    from jostler.archive.compact_rows import Moved
    from jostler.archive.native_index import NativeMerge
    from jostler.archive.repeats import Identity
    from jostler.format.blocks import Block, BlockWriter

_encode = msgspec.json.Encoder().encode


class Order(MergedRows, Protocol):
    """The rows of a merged bundle, in order."""

    @property
    def collapsed(self) -> int:
        """How many are left out as repeats of a feed."""

    def is_order_of(self, proof: Proof) -> bool:
        """Return whether a bundle has these rows and no others, in this order."""

    def write(
        self, writer: BlockWriter, first: int, rows: int, moved: Sequence[tuple[int, int, Moved]]
    ) -> None:
        """Write some rows in order.

        Args:
            writer: of the data object.
            first: the number of the first row, from 0.
            rows: how many rows are wanted.
            moved: of each input that has some of them, its number, a row of it, and rows from that
                one on.
        """

    def index(
        self, date: str, datatype: str, url: str, index_url: str, blocks: Sequence[Block]
    ) -> Iterable[tuple[bytes, int]]:
        """Return the rows' own index rows, each with its new place, as texts with so many rows.

        Args:
            date: of the merged bundle, as all that follows.
            datatype: of the rows.
            url: of the data object.
            index_url: of the index object.
            blocks: of the data object.
        """


def order_of(inputs: Sequence[Input], left_out: frozenset[Identity] = frozenset()) -> Order:
    """Return the order of the rows of bundles.

    Args:
        inputs: the bundles, each with its index.
        left_out: rows that are repeats of a feed.
    """
    indexes = [one.native for one in inputs if one.native]
    if len(indexes) == len(inputs) and not left_out:
        return _Native(native_merge(indexes))
    found = _entries_of(inputs)
    kept = [next(equal) for _, equal in groupby(found, key=attrgetter("identity"))]
    entries = [entry for entry in kept if entry.identity not in left_out] if left_out else kept
    return _Python(inputs, entries, len(found) - len(kept), len(kept) - len(entries))


def digest_of(identities: Iterable[Identity]) -> str:
    """Return the hash of sorted identities, by which a merged bundle is named."""
    hashed = hashlib.blake2b(digest_size=16)
    for node, filename, digest in identities:
        hashed.update(orjson.dumps((node, filename, digest.hex())) + b"\n")
    return hashed.hexdigest()


class _Native:
    """The order by the native module."""

    collapsed = 0

    def __init__(self, merge: NativeMerge) -> None:
        self._merge = merge
        self.repeats = merge.repeats
        self.runs = merge.runs
        self.digest = merge.digest
        self.added = merge.added
        self.places = merge.places
        self.identities = merge.identities

    def __len__(self) -> int:
        return len(self._merge)

    def is_order_of(self, proof: Proof) -> bool:
        if proof.native:
            return self._merge.is_order_of(proof.native)
        return list(proof.identities()) == self.identities()

    def write(
        self, writer: BlockWriter, first: int, rows: int, moved: Sequence[tuple[int, int, Moved]]
    ) -> None:
        if any(isinstance(one, bytes) for *_, some in moved for one in some[:1]):
            writer.add_rows(_in_order(self.places(first, rows), moved))
            return
        end = first + rows
        while first < end:
            text, many = self._merge.text(first, end - first, moved, writer.room_bytes, BLOCK_BYTES)
            writer.add(text, many)
            first += many

    def index(
        self, date: str, datatype: str, url: str, index_url: str, blocks: Sequence[Block]
    ) -> Iterable[tuple[bytes, int]]:
        shared = {
            "date": _encode(date),
            "datatype": _encode(datatype),
            "url": _encode(url),
            "index_url": _encode(index_url),
        }
        line = 0
        while line < len(self):
            text, rows = self._merge.index_text(line, BLOCK_BYTES, **shared, blocks=blocks)
            yield text, rows
            line += rows


def _in_order(
    places: Iterable[tuple[int, int]], moved: Iterable[tuple[int, int, Moved]]
) -> list[bytes]:
    firsts, rows = {}, {}
    for source, first, some in moved:
        firsts[source] = first
        rows[source] = [
            row for one in some for row in ([one] if isinstance(one, bytes) else one.rows())
        ]
    return [rows[source][row - firsts[source]] for source, row in places]


class Entry(NamedTuple):
    """A row to merge; entries are sorted as tuples, so of equal identities the earliest is first.

    What follows `added` only makes the choice the same for everybody.
    """

    node: str
    filename: str
    digest: bytes
    added: str
    version: str
    commit: str
    more: tuple[object, ...]
    source: int
    line: int

    @property
    def identity(self) -> Identity:
        """Node, Filename and hash."""
        return self.node, self.filename, self.digest


def _entries_of(inputs: Sequence[Input]) -> list[Entry]:
    """Return the rows of bundles, in order."""
    found = []
    for number, one in enumerate(inputs):
        for line, ((node, filename, digest), row) in enumerate(
            zip(one.keys(), one.index, strict=True)
        ):
            raw = row.raw
            more = (raw.Size, raw.Start or "", raw.End or "", raw.WorkID or "", raw.Hash)
            archiver = row.archiver.Version, row.archiver.GitCommit
            found.append(
                Entry(node, filename, digest, raw.TimeAdded, *archiver, more, number, line)
            )
    found.sort()
    return found


class _Python:
    """The order of rows of any form that is merged."""

    def __init__(
        self, inputs: Sequence[Input], entries: list[Entry], repeats: int, collapsed: int
    ) -> None:
        self.repeats = repeats
        self.collapsed = collapsed
        self._inputs = inputs
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def is_order_of(self, proof: Proof) -> bool:
        return list(proof.identities()) == self.identities()

    def runs(self) -> list[tuple[str, int]]:
        by_node = groupby(self._entries, key=attrgetter("node"))
        return [(node, sum(1 for _ in same)) for node, same in by_node]

    def digest(self) -> str:
        return digest_of(self.identities())

    def added(self) -> tuple[str, str]:
        added = [entry.added for entry in self._entries]
        return min(added), max(added)

    def places(self, first: int, rows: int) -> list[tuple[int, int]]:
        return [(one.source, one.line) for one in self._entries[first : first + rows]]

    def write(
        self, writer: BlockWriter, first: int, rows: int, moved: Sequence[tuple[int, int, Moved]]
    ) -> None:
        writer.add_rows(_in_order(self.places(first, rows), moved))

    def identities(self) -> list[Identity]:
        return [entry.identity for entry in self._entries]

    def index(
        self, date: str, datatype: str, url: str, index_url: str, blocks: Sequence[Block]
    ) -> Iterable[tuple[bytes, int]]:
        starts = [block.line for block in blocks]
        for line, entry in enumerate(self._entries, 1):
            row = self._inputs[entry.source].index[entry.line]
            block = blocks[bisect_right(starts, line) - 1]
            archiver, raw = row.archiver, row.raw
            moved = IndexRow(
                date,
                RowArchiver(archiver.Version, archiver.GitCommit, index_url, archiver.Filename),
                IndexRaw(
                    raw.Filename,
                    raw.Size,
                    raw.TimeAdded,
                    datatype,
                    raw.Node,
                    url,
                    line,
                    raw.Hash,
                    block.offset,
                    block.length,
                    raw.Start,
                    raw.End,
                    raw.WorkID,
                ),
            )
            yield _encode(moved) + b"\n", 1
