"""Decompress a bundle and split it into lines, block by block.

**Invariant:** `blocks` yields every line of a complete gzip stream or raises `CorruptError`.
`salvaged` never raises and yields the lines that can still be read, up to `BAD_MAX`.  Both keep at
most one row of BigQuery's maximum size and one decompressed piece in memory: a longer line is cut,
but remains long enough to be recognized as too long.

Pure: takes bytes, yields lines.  A stream may have several members, as gzip allows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from isal import isal_zlib

from loader.spark.limits import BAD_MAX, PLAIN_MAX_BYTES, ROW_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PLAIN_PIECE_BYTES = 96 * 1024
"""About how much comes of one call: a core's cache holds it, and malloc needs no new pages."""
PIECES_BYTES = range(1024, 64 * 1024)
"""How much is decompressed in one call."""
SALVAGE_BYTES = 512
_GZIP = zlib.MAX_WBITS | 16
_RAW = -zlib.MAX_WBITS


class CorruptError(ValueError):
    """The bytes are not a complete gzip stream, or exceed a limit; the message says why."""


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a bundle, several at a time, with line feeds; the last may have none.

    Raises:
        CorruptError: the stream is broken; raised where the break is found, possibly at the end.
    """
    if not data:
        raise CorruptError("the object is empty")
    yield from _lines(_inflated(data))


def lines_of_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the lines of some blocks that follow one another in a bundle, several at a time.

    Each ends with a full flush, so that they are a stream that has no end (docs/format.md).

    Raises:
        CorruptError: as `blocks`.
    """
    yield from _lines(_inflated(data, _RAW))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    begun = Begun()
    total = 0
    for plain in pieces:
        total += len(plain)
        if total > PLAIN_MAX_BYTES:
            raise CorruptError(f"it inflates to more than {PLAIN_MAX_BYTES:,} bytes")
        end = plain.rfind(b"\n") + 1
        if end:
            yield begun.ended(plain[:end])
        begun.add(plain[end:])
    if rest := begun.ended(b""):
        yield rest


class Begun:
    """A line whose end is not read yet; bytes beyond BigQuery's row limit are dropped."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Append a part to the line."""
        if self._size <= ROW_MAX_BYTES:
            self._parts.append(part)
            self._size += len(part)

    def ended(self, part: bytes) -> bytes:
        """Append the last part; return the line and begin the next one."""
        whole = b"".join([*self._parts, part]) if self._size else part
        self._parts.clear()
        self._size = 0
        return whole


def split(block: bytes) -> list[bytes]:
    """Return the lines of a block, without line feeds."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _inflated(data: bytes, bits: int = _GZIP) -> Iterator[bytes]:
    inflate = isal_zlib.decompressobj(bits)
    view = memoryview(data)
    at, most = 0, 8 * PIECES_BYTES.start
    try:
        while at < len(data):
            piece = view[at : at + most]
            plain = inflate.decompress(piece)
            yield plain
            at += len(piece)
            wanted = len(piece) * PLAIN_PIECE_BYTES // (len(plain) + 1)
            most = min(max(wanted, PIECES_BYTES.start), PIECES_BYTES.stop)
            if inflate.eof and bits == _GZIP:
                # A gzip file may have several members (RFC 1952, 2.2): the next one begins here.
                at -= len(inflate.unused_data)
                if at < len(data):
                    inflate = isal_zlib.decompressobj(_GZIP)
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise CorruptError(f"the gzip stream is broken: {exc}") from exc
    if not inflate.eof and bits == _GZIP:
        raise CorruptError("the gzip stream is cut short")


def salvaged(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a corrupt bundle that can be read, and at last the incomplete rest.

    After `BAD_MAX` lines or `PLAIN_MAX_BYTES`, the last line stands for all that follow.
    """
    begun = Begun()
    count = 1
    for plain in _readable(data):
        end, *lines = plain.split(b"\n")
        begun.add(end)
        for line in lines:
            yield begun.ended(b"")
            if count == BAD_MAX:
                return
            count += 1
            begun.add(line)
    yield begun.ended(b"")


def _readable(data: bytes) -> Iterator[bytes]:
    """Decompress up to the break, in small pieces, so that little before the break is lost."""
    inflate = zlib.decompressobj(_GZIP)
    total = 0
    try:
        for at in range(0, len(data), SALVAGE_BYTES):
            piece = data[at : at + SALVAGE_BYTES]
            while piece:
                plain = inflate.decompress(piece)
                total += len(plain)
                if total > PLAIN_MAX_BYTES:
                    return
                yield plain
                piece = inflate.unused_data
                if inflate.eof:
                    inflate = zlib.decompressobj(_GZIP)
    except zlib.error:
        return
