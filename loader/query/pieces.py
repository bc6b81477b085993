"""Divide a large bundle into pieces of whole blocks, which several tasks read.

**Invariant:** the pieces of a bundle have each of its rows once, in order, and are only made where
no other bundle can hold the same files.  A piece cannot see damage elsewhere in the bundle: whoever
uses the rows of all pieces must ask `Pieces.problem` first.

A bundle is divided by the blocks of its index.  One without an index, or whose rows must be judged,
or that is no row of blocks (such as another program's single stream), stays whole.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from isal import isal_zlib

from jostler.format.names import BundleName, Kind
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.query.fetching import index_files
from loader.query.scan import Bundle, Piece
from loader.spark.gunzip import CorruptError
from loader.spark.limits import PACKED_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jostler.archive.files import File
    from loader.query.reading import Count

LEAST_BYTES = 4 * 1024 * 1024
"""Of a piece: each costs its task a request, and the index again if times are asked for."""
READERS = 8
_END_BYTES = 10  # the empty last block and the trailer: docs/format.md, "Bundles"
_TRAILER = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one bundle.

    Attributes:
        bundles: the bundle once for each piece, in order.
        crc: CRC-32 of its rows, by its trailer.
        size_bytes: length of its rows modulo 2^32, by its trailer.
    """

    bundles: tuple[Bundle, ...]
    crc: int
    size_bytes: int

    @property
    def url(self) -> str:
        """The URL of the bundle."""
        return self.bundles[0].url

    def problem(self, counts: Mapping[str, Count]) -> str:
        """Say what is wrong with the bundle by what was read of it so far; empty for nothing."""
        found = [counts[one.key] for one in self.bundles if one.key in counts]
        for count in found:
            if count.problem:
                return count.problem
        checks = [count.check for count in found if count.check is not None]
        if len(checks) < len(self.bundles):  # left early, or blocks were left out by their times
            return ""
        crc = size_bytes = 0
        for one, length in checks:
            crc = isal_zlib.crc32_combine(crc, one, length)
            size_bytes += length
        whole = (crc, size_bytes % 2**32) == (self.crc, self.size_bytes)
        return "" if whole else "its rows have another checksum than its trailer"


def has_large(bundles: Iterable[Bundle]) -> bool:
    """Return whether any bundle may be worth being divided."""
    return any(_is_divisible(one, LEAST_BYTES) for one in bundles)


def divided(
    groups: Sequence[list[Bundle]], most_bytes: int, wanted: int, patience_s: float
) -> tuple[list[list[Bundle]], list[Pieces]]:
    """Divide the large bundles among the parts of a table, if there are too few parts.

    Args:
        groups: the parts, as `scan.parts` makes them.
        most_bytes: how large a piece should be at the most.
        wanted: how many parts are enough.
        patience_s: how long a failing request is retried.

    Returns:
        The parts, with pieces in the place of bundles that were divided; and these.
    """
    size_bytes = max(most_bytes, LEAST_BYTES)
    large = [
        group[0] for group in groups if len(group) == 1 and _is_divisible(group[0], size_bytes)
    ]
    if len(groups) >= wanted or not large:
        return list(groups), []
    with ThreadPoolExecutor(READERS, thread_name_prefix="pieces") as pool:
        found = pool.map(partial(_pieces, most_bytes=size_bytes, patience_s=patience_s), large)
        made = {one.url: one for one in found if one is not None}
    parts: list[list[Bundle]] = []
    for group in groups:
        pieces = made.get(group[0].url) if len(group) == 1 else None
        parts += [[one] for one in pieces.bundles] if pieces else [group]
    return parts, list(made.values())


def _is_divisible(bundle: Bundle, most_bytes: int) -> bool:
    """Return whether a bundle that is alone in its part may be divided."""
    large = most_bytes < bundle.size_bytes <= PACKED_MAX_BYTES
    # With token filters few blocks are read.
    return large and bundle.trusted and not bundle.filters


def _pieces(bundle: Bundle, most_bytes: int, patience_s: float) -> Pieces | None:
    """Divide a bundle; None if it must be read as a whole, for whatever reason."""
    try:
        bucket = open_bucket(bundle.bucket, patience_s)
        index, generation = bundle.index, bundle.index_generation
        if not index:  # it was not listed
            index = str(replace(BundleName.parse(bundle.name), kind=Kind.INDEX))
            same = [one for one in bucket.list(index) if one.name == index]
            if not same:
                return None
            generation = same[0].generation
        indexed = replace(bundle, index=index)
        cuts = _cuts(index_files(bucket.read(index, generation), indexed), bundle, most_bytes)
        end = bundle.size_bytes
        trailer = bucket.read_range(bundle.name, end - _TRAILER.size, end, bundle.generation)
        crc, length = _TRAILER.unpack(trailer)
    except (BucketError, CorruptError, struct.error):  # the task that reads it says it better
        return None
    if len(cuts) < 2:  # noqa: PLR2004 - one piece is the bundle
        return None
    return Pieces(tuple(replace(bundle, piece=piece) for piece in cuts), crc, length)


def _cuts(files: Sequence[File], bundle: Bundle, most_bytes: int) -> list[Piece]:
    """Return pieces of about equal size; nothing if its index does not show its blocks."""
    blocks = [list(same) for _, same in groupby(files, key=lambda file: file.offset)]
    places = [(block[0].offset or 0, block[0].length or 0) for block in blocks]
    lines = [file.line for file in files]
    follow = all(one + length == other for (one, length), (other, _) in pairwise(places))
    if not files or not follow or lines != list(range(1, len(files) + 1)):
        return []
    end = sum(places[-1])
    if not places[0][0] or end != bundle.size_bytes - _END_BYTES:
        return []
    starts = [offset for offset, _ in places]
    count = -(-(end - starts[0]) // most_bytes)
    targets = [starts[0] + (end - starts[0]) * nth // count for nth in range(count)]
    firsts = sorted({bisect_left(starts, target) for target in targets} - {len(starts)})
    made = []
    for nth, (first, last) in enumerate(pairwise([*firsts, len(blocks)])):
        rows = [file for block in blocks[first:last] for file in block]
        nodes = tuple(
            (node, sum(1 for _ in same)) for node, same in groupby(rows, key=lambda file: file.node)
        )
        made.append(
            Piece(
                nth=nth,
                offset=starts[first],
                end=sum(places[last - 1]),
                line=rows[0].line,
                nodes=nodes,
            )
        )
    return made
