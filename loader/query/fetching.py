"""Read one bundle for a question: index and token filters, then the blocks that can match.

**Invariant:** a bundle is read at the generation that was listed, and either all of its lines are
delivered or those of each block that has a wanted row.  A bundle without a wanted row is not read.

Runs on an executor, in the threads that read ahead.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from jostler.archive import index_rows
from jostler.format.names import BundleName
from jostler.format.nodes import is_merged_node
from loader.bucket import open_bucket
from loader.errors import MissingError
from loader.query.text.filters import unpack
from loader.spark.gunzip import CorruptError, lines_of_blocks
from loader.spark.limits import PACKED_MAX_BYTES
from loader.spark.nodes import blocks_by_node, by_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.archive.files import File
    from loader.bucket import Bucket
    from loader.query.scan import Bundle, Piece, Span
    from loader.query.text.filters import Block as Filtered
    from loader.query.text.needed import Need

GAP_BYTES = 64 * 1024
"""Bytes between two wanted blocks that are read along rather than by a request of their own."""
PART_MOST = 0.5
"""Of the object: where more of it is wanted, one request for all of it is cheaper."""
KEPT_BYTES = 8 * 1024 * 1024
"""Up to this size of an object its lines are kept between the two passes; else inflated twice."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant(micros: int) -> datetime:
    """Return the instant of so many microseconds since 1970."""
    return _EPOCH + micros * _MICROSECOND


class Block(NamedTuple):
    """Lines of one node.

    Attributes:
        node: that stored them.
        line: the number of the first one in the bundle, from 1.
        lines: the text.
    """

    node: str
    line: int
    lines: bytes


@dataclass(slots=True, kw_only=True)
class Fetched:
    """What was read of a bundle.

    Attributes:
        bundle: the bundle.
        times: `_time` of each line from 1 on, microseconds since 1970; None if not asked for.
        read_bytes: of all requests.
        pieces: the blocks, if only some were read.
        data: the whole object or piece otherwise; empty if nothing of it is wanted.
        skipped: blocks that its token filters left out.
        unfiltered: why its token filters could not be used; empty if they were, or were not asked.
    """

    bundle: Bundle
    times: dict[int, int] | None = None
    read_bytes: int = 0
    pieces: list[Block] = field(default_factory=list)
    data: bytes = b""
    skipped: int = 0
    unfiltered: str = ""

    def blocks(self) -> Iterator[Block]:
        """Yield what was read; may be called again.

        Raises:
            CorruptError: the object is damaged; raised where the damage is found.
        """
        yield from self.pieces
        if not self.data:
            return
        piece = self.bundle.piece
        line = piece.line if piece else 1
        if piece:
            by_node = by_runs(lines_of_blocks(self.data), piece.nodes)
        else:
            by_node = blocks_by_node(self.data, self.bundle.node)
        for node, lines in by_node:
            yield Block(node, line, lines)
            line += lines.count(b"\n") + (not lines.endswith(b"\n"))


def fetch(bundle: Bundle, span: Span, patience_s: float, *, with_times: bool) -> Fetched:
    """Read what a question needs of a bundle.

    Args:
        bundle: the bundle.
        span: the rows that can answer.
        patience_s: how long a failing request is retried.
        with_times: whether `_time` is asked for.

    Raises:
        BucketError: an object cannot be read.
        CorruptError: it is larger than any bundle, or its index or a block is damaged.
    """
    found = Fetched(bundle=bundle)
    if bundle.size_bytes > PACKED_MAX_BYTES:
        raise CorruptError("the object is too large")
    bucket = open_bucket(bundle.bucket, patience_s)
    matching = _matching(bucket, found, span.need) if span.need and bundle.filters else None
    if matching == []:
        return found
    if bundle.index and (with_times or span.by_time or _by_node(bundle, span)):
        files = _in_piece(_with_times(bucket, found), bundle.piece)
        wanted = [
            file
            for file in files
            if span.has(file.begin) and _is_in(file.line, matching) and span.of(file.node)
        ]
        if not wanted:
            return found
        chunks = _chunks(wanted, files, bundle)
    elif span.by_time:  # without index `_time` is NULL, which no range has
        return found
    else:
        chunks = _runs(_places(bundle, matching or []), bundle)
    if bundle.trusted and chunks:
        _read(bucket, found, chunks)
        return found
    if bundle.piece:
        begin, end = bundle.piece.offset, bundle.piece.end
        found.data = bucket.read_range(bundle.name, begin, end, bundle.generation)
    else:
        found.data = bucket.read(bundle.name, bundle.generation)
    found.read_bytes += len(found.data)
    if not found.data:
        raise CorruptError("the object is empty")
    return found


def _in_piece(files: list[File], piece: Piece | None) -> list[File]:
    """Return the files that lie in a piece; None for all."""
    if piece is None:
        return files
    return [file for file in files if piece.line <= file.line < piece.end_line]


def _by_node(bundle: Bundle, span: Span) -> bool:
    """Return whether the index may say that blocks of a merged bundle need not be read."""
    cheap = bundle.index_bytes <= PART_MOST * bundle.size_bytes
    return span.nodes is not None and is_merged_node(bundle.node) and cheap


def _read(bucket: Bucket, found: Fetched, chunks: list[list[_Place]]) -> None:
    for chunk in chunks:
        name, generation = found.bundle.name, found.bundle.generation
        data = bucket.read_range(name, chunk[0].offset, chunk[-1].end, generation)
        found.read_bytes += len(data)
        found.pieces += _inflated(data, chunk)


def _matching(bucket: Bucket, found: Fetched, need: Need) -> list[Filtered] | None:
    """Return the blocks that may have the words; None if the token filters cannot be used."""
    bundle = found.bundle
    try:
        packed = bucket.read(bundle.filters, bundle.filters_generation)
        found.read_bytes += len(packed)
        filters = unpack(packed)
    except (MissingError, ValueError) as exc:  # removed, or another's, since it was listed
        found.unfiltered = str(exc)
        return None
    if filters.made != (bundle.generation, bundle.size_bytes):
        found.unfiltered = "they were made of another object"
        return None
    matching = filters.matching(need)
    found.skipped = len(filters.blocks) - len(matching)
    return matching


def _is_in(line: int, blocks: list[Filtered] | None) -> bool:
    """Return whether a line is in one of some blocks; None stands for all."""
    if blocks is None:
        return True
    nth = bisect_right(blocks, line, key=lambda block: block.line) - 1
    return nth >= 0 and line < blocks[nth].line + blocks[nth].rows


def _places(bundle: Bundle, blocks: list[Filtered]) -> list[_Place]:
    """Return blocks by their filters; none of a merged bundle, whose rows are of many nodes."""
    if is_merged_node(bundle.node):
        return []
    return [
        _Place(one.offset, one.offset + one.length, one.line, (bundle.node,) * one.rows)
        for one in blocks
    ]


def blocks_left_out(bundle: Bundle, need: Need, patience_s: float) -> tuple[int, int]:
    """Return how many blocks token filters leave out, and of how many; 0 of 0 without filters.

    Raises:
        BucketError: they cannot be read.
    """
    found = Fetched(bundle=bundle)
    matching = None
    if bundle.filters:
        matching = _matching(open_bucket(bundle.bucket, patience_s), found, need)
    return found.skipped, found.skipped + len(matching or ())


def _with_times(bucket: Bucket, found: Fetched) -> list[File]:
    """Read the index of a bundle, and note the time of each line."""
    packed = bucket.read(found.bundle.index, found.bundle.index_generation)
    found.read_bytes += len(packed)
    files = index_files(packed, found.bundle)
    found.times = {file.line: (file.begin - _EPOCH) // _MICROSECOND for file in files}
    return files


def index_files(packed: bytes, bundle: Bundle) -> list[File]:
    """Parse the index of a bundle.

    Raises:
        CorruptError: it is no index.
    """
    try:
        files, _problems = index_rows.parse(packed, BundleName.parse(bundle.index), bundle.bucket)
    except ValueError as exc:
        raise CorruptError(f"its index: {exc}") from exc
    return files


class _Place(NamedTuple):
    """A block by its index rows."""

    offset: int
    end: int
    line: int
    nodes: tuple[str, ...]


def _chunks(wanted: Sequence[File], files: Sequence[File], bundle: Bundle) -> list[list[_Place]]:
    """Return the wanted blocks in runs that one request reads; nothing to read the whole object."""
    if any(file.offset is None or not file.length for file in files):
        return []
    offsets = {file.offset for file in wanted}
    ordered = sorted(files, key=lambda file: file.line)
    places = []
    for offset, same in groupby(ordered, key=lambda file: file.offset):
        block = list(same)
        if offset in offsets and offset is not None:
            end = offset + (block[0].length or 0)
            places.append(_Place(offset, end, block[0].line, tuple(one.node for one in block)))
    return _runs(places, bundle)


def _runs(places: list[_Place], bundle: Bundle) -> list[list[_Place]]:
    """Return blocks in runs that one request reads; nothing to read the whole object."""
    if sum(place.end - place.offset for place in places) > PART_MOST * bundle.reading_bytes:
        return []
    chunks: list[list[_Place]] = []
    for place in places:
        if not chunks or place.offset - chunks[-1][-1].end > GAP_BYTES:
            chunks.append([])
        chunks[-1].append(place)
    return chunks


def _inflated(data: bytes, chunk: list[_Place]) -> Iterator[Block]:
    start = chunk[0].offset
    for place in chunk:
        try:
            # A block ends with a full flush and not with the end of the stream.
            packed = data[place.offset - start : place.end - start]
            lines = isal_zlib.decompressobj(-15).decompress(packed)
        except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
            raise CorruptError(f"the block at {place.offset} is broken: {exc}") from exc
        if lines.count(b"\n") != len(place.nodes):
            raise CorruptError(f"the block at {place.offset} has not the lines of its index")
        at, line = 0, place.line
        for node, same in groupby(place.nodes):
            count = len(list(same))
            till = at
            for _ in range(count):
                till = lines.index(b"\n", till) + 1
            yield Block(node, line, lines[at:till])
            at, line = till, line + count
