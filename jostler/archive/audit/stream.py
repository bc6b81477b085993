"""Take the gzip stream of a bundle apart: its blocks, its lines, and what a damaged one still has.

**Invariant:** `by_blocks` ends without an error only if the bytes are one gzip stream whose check
sum and length are right, made of exactly the given blocks.

Written from docs/format.md, "Bundles"; pure: takes bytes, returns bytes.
"""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from jostler.format.blocks import BLOCK_BYTES, Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEADER_BYTES = 10
END_BYTES = 10
"""The empty last block of the deflate stream, check sum and length."""
_TRAILER_BYTES = 8
_BEGIN = b"\x1f\x8b\x08"
_END = b"\x03\x00"
_RESERVED = 0xE0
"""Flags that must not be set: zlib refuses such a stream."""
_FLUSHED = b"\x00\x00\xff\xff"
_BEHIND_BYTES = 12
"""Bits that may stand between the last compressed byte of a block and its flush, and the flush."""
PIECE_BYTES = 512
RATIO_MOST = 50
"""Rows seldom shrink to less than a fiftieth."""


class BlocksError(Exception):
    """A stream is damaged, or is not made of the given blocks."""


def by_blocks(data: bytes, places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    """Yield the lines of each block; only at the end it is known that the stream is good.

    So a block is looked at while it is in the processor's cache, and its memory used again.

    Args:
        data: the whole object.
        places: offset and length of each block, in order.

    Raises:
        BlocksError: the stream is damaged, or is not made of these blocks.
    """
    at = header_bytes(data)
    if not at:
        raise BlocksError
    crc = size = 0
    view = memoryview(data)
    for offset, length in places:
        if offset != at:
            raise BlocksError
        at += length
        inflate = isal_zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            plain = inflate.decompress(view[offset:at])
            # All rows may be there although the flush behind them is damaged: then this block
            # inflates alone, and the stream does not.  An end is accepted only where a block ends.
            if inflate.decompress(_END) or not inflate.eof or inflate.unused_data:
                raise BlocksError
        except isal_zlib.error as exc:  # type: ignore[misc]
            raise BlocksError from exc
        crc = isal_zlib.crc32(plain, crc)
        size += len(plain)
        yield plain
    if data[at:] != _END + struct.pack("<LL", crc, size & 0xFFFFFFFF):
        raise BlocksError


def blocks_of(data: bytes, lines: Sequence[bytes]) -> list[Block]:
    """Find the blocks of a whole stream; if it has none, all of it is one block.

    A writer of jostler fills a block with whole rows up to 256 KiB, or with one longer row, so the
    rows tell where a block ends; in the stream a block ends with a full flush.

    Args:
        data: the whole object, which inflates to the lines.
        lines: its lines, with their line feeds.
    """
    found: list[Block] = []
    begin = at = header_bytes(data)
    for line, size in _filled(lines):
        end = _end_of_block(data, at, size)
        if not end:
            break
        found.append(Block(line, at, end - at))
        at = end
    else:
        if data[at : at + len(_END)] == _END and len(data) - at == END_BYTES:
            return found
    # A block has ended early for lack of memory, or it is another program's: the deflate stream
    # behind the header inflates alone, too.
    return [Block(1, begin, end_of_blocks(data) - begin)] if lines else []


def end_of_blocks(data: bytes) -> int:
    """Return where the last block of a whole stream ends."""
    return len(data) - (END_BYTES if data[-END_BYTES:].startswith(_END) else _TRAILER_BYTES)


def _filled(lines: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the first line and the bytes of each block, as a writer fills them."""
    first, size = 1, 0
    for number, line in enumerate(lines, 1):
        if size and size + len(line) > BLOCK_BYTES:
            yield first, size
            first, size = number, 0
        size += len(line)
    if size:
        yield first, size


def _end_of_block(data: bytes, at: int, size: int) -> int:
    """Return where the block ends that begins here and inflates to so many bytes; 0 if none."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    begin, got = at, 0
    while got < size:
        end = data.find(_FLUSHED, at) + len(_FLUSHED)
        if end < len(_FLUSHED) or end <= begin:
            return 0
        try:
            got += len(inflate.decompress(data[at:end]))
        except zlib.error:
            return 0
        at = end
    # The four bytes may occur by chance right before the flush, when all is inflated already.
    real = data.find(_FLUSHED, at, at + _BEHIND_BYTES)
    if got == size and real >= 0:
        try:
            alone = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data[at : at + PIECE_BYTES])
        except zlib.error:
            alone = b""
        if not alone:
            at = real + len(_FLUSHED)
    return at if got == size else 0


def header_bytes(data: bytes) -> int:
    """Return the length of a gzip header (RFC 1952 §2.3); 0 if there is none."""
    if data[:3] != _BEGIN or len(data) < HEADER_BYTES:
        return 0
    flags, at = data[3], HEADER_BYTES
    if flags & _RESERVED:
        return 0
    if flags & 4:  # a merged bundle has its table of nodes there
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (8, 16):  # name, comment
        if flags & flag:
            at = data.find(b"\x00", at) + 1
            if not at:
                return 0
    return at + (2 if flags & 2 else 0)


def part(packed: bytes) -> bytes:
    """Inflate as much of one block as can be inflated, up to the first error."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    plain = bytearray()
    with suppress(zlib.error):
        for at in range(0, len(packed), PIECE_BYTES):
            before = inflate.copy()
            piece = packed[at : at + PIECE_BYTES]
            try:
                plain += inflate.decompress(piece)
            except zlib.error:  # byte by byte, so that nothing before the error is lost
                for nth in range(len(piece)):
                    plain += before.decompress(piece[nth : nth + 1])
    return bytes(plain)


class Readable(NamedTuple):
    """What can be inflated of a damaged stream.

    Attributes:
        parts: without the blocks in which an error was met, each a run of whole blocks, but for
            the last one if the stream is cut.
        doubtful: bytes inflated of blocks in which an error was met: any of them may be wrong.
        is_sure: whether all wrong bytes are in those blocks; not if only the check sum is wrong.
    """

    parts: list[bytes]
    doubtful: int
    is_sure: bool


def readable(data: bytes) -> Readable:
    """Inflate what can be inflated: a block does not need those before it.

    Behind an error it begins anew at the next flush, for there begins a block, or a part of a row
    that is longer than one.
    """
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    parts: list[bytes] = []
    plain = bytearray()  # since the last error
    block = 0  # where in it the block begins that is being inflated
    doubtful, has_error = 0, False
    at = header_bytes(data) or HEADER_BYTES
    while at < len(data) and not _ended(inflate):
        flush = data.find(_FLUSHED, at)
        piece = data[at : flush + len(_FLUSHED)] if flush >= 0 else data[at:]
        at += len(piece)
        try:
            plain += inflate.decompress(piece)
            is_broken = _ended(inflate) and flush >= 0  # a block that is the last one in the middle
        except zlib.error:
            is_broken = True
            doubtful += len(part(piece)) if block == len(plain) else 0  # the first piece of a block
        if is_broken:
            has_error = True
            doubtful += len(plain) - block
            parts.append(bytes(plain[:block]))
            plain.clear()
            block = 0
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        elif flush >= 0 and plain.endswith(b"\n") and _is_at_boundary(inflate):
            block = len(plain)
    parts.append(bytes(plain))
    trailer = inflate.unused_data
    if has_error:
        is_sure = True
    elif _ended(inflate):
        is_sure = len(trailer) < 8 or trailer[:4] == struct.pack("<L", zlib.crc32(plain))  # noqa: PLR2004 - check sum and length
    else:  # cut off; or wrong bytes made the end be read as rows
        is_sure = not _has_trailer(data)
    return Readable([one for one in parts if one], doubtful, is_sure)


def _ended(inflate: zlib._Decompress) -> bool:
    return inflate.eof


def _is_at_boundary(inflate: zlib._Decompress) -> bool:
    """Say whether all bytes so far are whole blocks of deflate: then an end may follow at once."""
    after = inflate.copy()
    try:
        return not after.decompress(_END) and after.eof and not after.unused_data
    except zlib.error:
        return False


def _has_trailer(data: bytes) -> bool:
    """Say whether the last bytes can be the length of the rows: then nothing was cut off."""
    size = int.from_bytes(data[-4:], "little")
    return len(data) // 2 <= size <= RATIO_MOST * len(data)
