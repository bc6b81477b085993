"""The object with the token filters of a bundle: one filter for each of its blocks.

**Invariant:** `unpack(pack(...))` is what was packed; equal blocks give equal bytes.  The object
says for which generation of a data object it was made, and is used for no other.

The form is in docs/format.md, "Token filters".

Pure.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from loader.query.text import bloom
from loader.query.text.needed import may_answer
from loader.query.text.words import line_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loader.query.text.needed import Need

FORM = 1
CRC_BYTES = 4


class Block(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A block of a bundle.

    Attributes:
        line: number of its first row, from 1.
        rows: how many it has.
        offset: where it begins in the data object.
        length: of its compressed bytes.
        pieces: how many members its filter has.
    """

    line: int
    rows: int
    offset: int
    length: int
    pieces: int


class Made(NamedTuple):
    """What a data object is known by.

    Attributes:
        generation: its version in the bucket.
        size_bytes: its size.
    """

    generation: str
    size_bytes: int


class _Head(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    form: int
    generation: str
    size: int
    blocks: list[Block]


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """The filters of a bundle.

    Attributes:
        made: the data object that they were made of.
        blocks: its blocks, in order, without a gap between their lines.
        data: the filter of each.
    """

    made: Made
    blocks: tuple[Block, ...]
    data: tuple[bytes, ...]

    def matching(self, need: Need) -> list[Block]:
        """Return the blocks that may have a row which fulfils a need."""
        return [
            block
            for block, data in zip(self.blocks, self.data, strict=True)
            if may_answer(need, lambda piece, data=data: bloom.has(data, piece))  # type: ignore[misc]
        ]


def of_lines(lines: bytes, *, line: int, offset: int, length: int) -> tuple[Block, bytes]:
    """Return a block and its filter.

    Args:
        lines: its rows.
        line: number of the first one.
        offset: where it begins in the data object.
        length: of its compressed bytes.
    """
    found = line_pieces(lines)
    return Block(line, rows_in(lines), offset, length, len(found)), bloom.made(found)


def rows_in(lines: bytes) -> int:
    """Return how many rows there are; the last one may have no line feed."""
    return lines.count(b"\n") + (not lines.endswith(b"\n"))


def pack(made: Made, found: Iterable[tuple[Block, bytes]]) -> bytes:
    """Return the object of the filters of a bundle."""
    blocks, data = zip(*found, strict=True)
    head = _Head(FORM, made.generation, made.size_bytes, list(blocks))
    body = b"%b\n%b" % (msgspec.json.encode(head), b"".join(data))
    return body + zlib.crc32(body).to_bytes(CRC_BYTES, "little")


def unpack(packed: bytes) -> Filters:
    """Return what `pack` has written.

    Raises:
        ValueError: it is something else, or damaged.
    """
    body, crc = packed[:-CRC_BYTES], packed[-CRC_BYTES:]
    if len(packed) < CRC_BYTES or zlib.crc32(body).to_bytes(CRC_BYTES, "little") != crc:
        raise ValueError("the token filters are damaged")
    text, _, rest = body.partition(b"\n")
    try:
        head = _HEAD.decode(text)
    except msgspec.DecodeError as exc:
        raise ValueError(f"these are no token filters: {exc}") from exc
    if head.form != FORM:
        raise ValueError(f"these token filters have the form {head.form}, and {FORM} is known")
    sizes = [bloom.bits_for(block.pieces) // 8 for block in head.blocks]
    if not sizes or sum(sizes) != len(rest) or not _in_order(head.blocks):
        raise ValueError("the token filters do not fit their blocks")
    data = []
    at = 0
    for size in sizes:
        data.append(rest[at : at + size])
        at += size
    return Filters(
        made=Made(head.generation, head.size),
        blocks=tuple(head.blocks),
        data=tuple(data),
    )


def _in_order(blocks: Sequence[Block]) -> bool:
    line = 1
    for block in blocks:
        if block.line != line or block.rows < 1:
            return False
        line += block.rows
    return True
