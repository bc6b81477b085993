"""A gzip stream in blocks that can each be read alone.

**Invariant:** the blocks, between a gzip header and trailer, are one ordinary gzip stream, and
every block starts on a byte, refers to nothing before it and inflates by itself.  Equal rows in
equal order give equal bytes: the header has no time and no name.

RFC 1952 (gzip), RFC 1951 §3.2.4 (the empty stored block that a full flush ends with).
Bytes in, bytes out; blocks are deflated in a thread beside the one that writes rows, which lets go
of the interpreter meanwhile.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCK_BYTES = 256 * 1024
LEVELS = range(4)
AHEAD = 4  # blocks of one bundle that wait to be deflated, at most
# ID1 ID2, deflate, no flags, mtime 0, no extra flags, unknown system: RFC 1952 §2.3.
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
# One last empty block with fixed codes: RFC 1951 §3.2.6.
_END = b"\x03\x00"


_DEFLATING = ThreadPoolExecutor(1, thread_name_prefix="deflate")


class Block(NamedTuple):
    """Where some rows lie: the first one's line (from 1), and the bytes in the object."""

    line: int
    offset: int
    length: int


class BlockWriter:
    """Compresses rows as they come; holds compressed bytes and a few blocks of plain ones.

    One thread owns it.  `held_bytes` changes in calls of `add` and `finish` alone.

    Args:
        level: of ISA-L, 0 (fastest) to 3 (smallest).
    """

    def __init__(self, level: int) -> None:
        self.lines = 0
        self.plain_bytes = 0
        self.blocks: list[Block] = []
        self._level = level
        self._pending = bytearray()
        self._pending_line = 1
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        # A BytesIO hands its buffer over without a copy; joined parts would be held twice.
        self._packed = io.BytesIO()
        self._packed.write(_HEADER)
        self._crc = 0

    @property
    def held_bytes(self) -> int:
        """Bytes in memory: compressed ones and those that are not yet."""
        return self._packed.tell() + self._waiting_bytes + len(self._pending)

    def add(self, row: bytes) -> None:
        """Append one row, its line feed included."""
        if self._pending and len(self._pending) + len(row) > BLOCK_BYTES:
            self._end_block()
        while self._waiting and (self._waiting[0].packed.done() or len(self._waiting) > AHEAD):
            self._take_packed()
        self._pending += row
        self.lines += 1
        self.plain_bytes += len(row)

    def finish(self) -> bytes:
        """Return the whole gzip stream; nothing can be added after that."""
        if self._pending:
            self._end_block()
        while self._waiting:
            self._take_packed()
        self._packed.write(_END)
        self._packed.write(struct.pack("<LL", self._crc, self.plain_bytes & 0xFFFFFFFF))
        return self._packed.getvalue()

    def _end_block(self) -> None:
        plain = bytes(self._pending)
        packed = _DEFLATING.submit(_deflate, plain, self._level)
        self._waiting.append(_Waiting(self._pending_line, len(plain), packed))
        self._waiting_bytes += len(plain)
        self._crc = isal_zlib.crc32(plain, self._crc)
        self._pending.clear()
        self._pending_line = self.lines + 1

    def _take_packed(self) -> None:
        """Append the oldest block that waits, as soon as it is deflated."""
        block = self._waiting.popleft()
        packed = block.packed.result()
        self.blocks.append(Block(block.line, self._packed.tell(), len(packed)))
        self._packed.write(packed)
        self._waiting_bytes -= block.plain_bytes


class _Waiting(NamedTuple):
    """A block on its way through the other thread."""

    line: int
    plain_bytes: int
    packed: Future[bytes]


def _deflate(plain: bytes, level: int) -> bytes:
    """Compress a block on its own, with a full flush after at most BLOCK_BYTES of input."""
    deflate = isal_zlib.compressobj(level, isal_zlib.DEFLATED, -zlib.MAX_WBITS)
    parts = []
    for start in range(0, len(plain), BLOCK_BYTES):
        parts.append(deflate.compress(plain[start : start + BLOCK_BYTES]))
        parts.append(deflate.flush(isal_zlib.Z_FULL_FLUSH))
    return b"".join(parts)


def read_block(packed: bytes) -> bytes:
    """Inflate the bytes of one block.

    Raises:
        ValueError: they are not a block.
    """
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
    except zlib.error as exc:
        raise ValueError(f"not a block of a bundle: {exc}") from exc
