"""A gzip stream made of blocks that can be decompressed separately.

**Invariant:** header, blocks and trailer form one ordinary gzip stream.  Each block starts on a
byte boundary and does not refer to earlier data, so it can be decompressed alone.  Equal rows in
equal order give equal bytes, because the header contains no time and no name.

RFC 1952 (gzip), RFC 1951 §3.2.4 (a full flush ends with an empty stored block).
One thread (`deflating`) compresses the blocks of all writers, in the order in which they were
filled.  The libraries release the interpreter's lock meanwhile, so rows can be written beside it.
"""

from __future__ import annotations

import io
import struct
import zlib
from bisect import bisect_right
from collections import deque
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Protocol

from isal import isal_zlib

from jostler.format.deflating import Deflating

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.format.compression import Compression
    from jostler.format.deflating import Packed

BLOCK_BYTES = 256 * 1024
AHEAD = 8
"""Blocks of one bundle that wait to be deflated, at most: more than a batch of large rows makes."""
# ID1 ID2, deflate, no flags, mtime 0, no extra flags, unknown system: RFC 1952 §2.3.
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
# One last empty block with fixed codes: RFC 1951 §3.2.6.
_END = b"\x03\x00"

_RATIO_MOST = 64
_ROOM_LEAST = 1024

_DEFLATING = Deflating()


class Block(NamedTuple):
    """The position of a block: line number of its first row (from 1), offset and length."""

    line: int
    offset: int
    length: int


class Digest(Protocol):
    """A hash object such as `hashlib` makes."""

    def update(self, data: bytes, /) -> None:
        """Hash more bytes."""


class BlockWriter:
    """Compresses rows one by one; holds all compressed bytes and a few uncompressed blocks.

    One thread owns it.  `held_bytes` changes only in calls of methods.

    Args:
        compression: library and level.
        digest: is updated with the bytes of the stream as they are made, by the thread that
            compresses; after `finish` it has all of them.
        header: the gzip header, that of a merged bundle is longer (see `node_table`).
    """

    def __init__(
        self, compression: Compression, digest: Digest | None = None, header: bytes = HEADER
    ) -> None:
        self.lines = 0
        self.plain_bytes = 0
        self.blocks: list[Block] = []
        self._compression = compression
        self._digest = digest
        self._pending: list[bytes] = []  # joined once, at the end of the block
        self._pending_bytes = 0
        self._pending_line = 1
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        # BytesIO.getvalue() returns its buffer without a copy; joining parts would need it twice.
        self._packed = io.BytesIO()
        self._crc = 0
        self._write(header)

    @property
    def held_bytes(self) -> int:
        """Bytes in memory, compressed and not yet compressed."""
        return self._packed.tell() + self.loose_bytes

    @property
    def loose_bytes(self) -> int:
        """Bytes in memory that are not yet compressed."""
        return self._waiting_bytes + self._pending_bytes

    @property
    def room_bytes(self) -> int:
        """Bytes that the last block still takes; none behind a row that is longer than a block."""
        return max(0, BLOCK_BYTES - self._pending_bytes)

    def add(self, text: bytes, rows: int = 1) -> None:
        """Append one row, its line feed included, or several that go into one block."""
        if self._pending and self._pending_bytes + len(text) > BLOCK_BYTES:
            self._end_block()
        self._take_ready()
        self._append([text], len(text), rows)

    def add_rows(self, rows: Sequence[bytes]) -> None:
        """Append rows; the blocks are those that `add` makes of the same rows one by one."""
        self._take_ready()
        ends = list(accumulate(map(len, rows), initial=0))
        at = 0
        while at < len(rows):
            room_bytes = BLOCK_BYTES - self._pending_bytes
            till = bisect_right(ends, ends[at] + room_bytes) - 1
            if till <= at:  # the next row begins a block, or is larger than one
                self.add(rows[at])
                at += 1
                continue
            self._append(rows[at:till], ends[till] - ends[at], till - at)
            at = till

    def end_block(self) -> None:
        """Compress all rows there are; the next one begins a block."""
        while self._waiting:
            self._take_packed()
        if self._pending:
            # It has to be waited for at once: small bundles are faster without the other thread.
            # That has done all its blocks, so this one is the next.
            line, packed = self._pending_line, self._deflate(self._take_pending())
            self.blocks.append(Block(line, self._packed.tell(), len(packed)))
            self._packed.write(packed)

    def finish(self) -> bytes:
        """Return the whole gzip stream; after that, no row can be added."""
        self.end_block()
        self._write(_END + struct.pack("<LL", self._crc, self.plain_bytes & 0xFFFFFFFF))
        return self._packed.getvalue()

    def _write(self, framing: bytes) -> None:
        """Append bytes that are no block's; no block is waiting."""
        self._packed.write(framing)
        if self._digest:
            self._digest.update(framing)

    def _end_block(self) -> None:
        line, plain = self._pending_line, self._take_pending()
        packed = _DEFLATING.put(self._deflate, plain)
        self._waiting.append(_Waiting(line, len(plain), packed))
        self._waiting_bytes += len(plain)

    def _append(self, texts: Sequence[bytes], size_bytes: int, rows: int) -> None:
        """Append rows to the block that is not full."""
        self._pending += texts
        self._pending_bytes += size_bytes
        self.lines += rows
        self.plain_bytes += size_bytes

    def _take_pending(self) -> bytes:
        """Return the rows of the block, and begin with the next one."""
        plain = b"".join(self._pending)
        self._pending = []
        self._pending_bytes, self._pending_line = 0, self.lines + 1
        return plain

    def _take_ready(self) -> None:
        """Append the blocks that are compressed; wait for one if too many are not."""
        while self._waiting and (self._waiting[0].packed.is_done or len(self._waiting) > AHEAD):
            self._take_packed()

    def _take_packed(self) -> None:
        """Wait until the oldest waiting block is compressed, and append it."""
        block = self._waiting.popleft()
        packed = block.packed.take()
        self.blocks.append(Block(block.line, self._packed.tell(), len(packed)))
        self._packed.write(packed)
        self._waiting_bytes -= block.plain_bytes

    def _deflate(self, plain: bytes) -> bytes:
        """Compress a block; in the compressing thread, which has all blocks in their order.

        Check sum and digest are therefore carried on from block to block without a lock; the
        owner reads them after it has waited for the last block.
        """
        packed = self._compression.deflate(plain, BLOCK_BYTES)
        self._crc = isal_zlib.crc32(plain, self._crc)
        if self._digest:
            self._digest.update(packed)
        return packed


class _Waiting(NamedTuple):
    """A block that is compressed, or waits for it."""

    line: int
    plain_bytes: int
    packed: Packed


def inflated(packed: bytes) -> bytes:
    """Decompress exactly one gzip stream into one piece of memory, of the size that its end names.

    Without that the library doubles its memory again and again and copies what it has, which takes
    an index several times as long.

    Raises:
        isal_zlib.error: it is no gzip stream, is damaged, or something follows it.
    """
    size = int.from_bytes(packed[-4:], "little")
    # What a damaged end names is bounded; rows and indexes shrink less.  Without the one byte more
    # the library doubles its memory before it sees the end.
    room = min(size + 1, _RATIO_MOST * len(packed))
    inflate = isal_zlib.decompressobj(zlib.MAX_WBITS | 16)
    plain: bytes = inflate.decompress(packed, max(room, _ROOM_LEAST))
    if not inflate.eof:  # larger than its end names
        plain += inflate.flush()
    if not inflate.eof or inflate.unused_data:
        problem = "truncated, or more than one gzip stream"
        raise isal_zlib.error(problem)  # type: ignore[operator] # the stub says value for class
    return plain


def read_block(packed: bytes) -> bytes:
    """Decompress the bytes of one block.

    Raises:
        ValueError: `packed` is not a block.
    """
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
    except zlib.error as exc:
        raise ValueError(f"not a block of a bundle: {exc}") from exc
