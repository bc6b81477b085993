"""The lines of a bundle: inflated and split, block by block.

**Invariant:** `blocks` either yields every line of a whole gzip stream or raises `CorruptError`;
`salvaged` never raises and yields the lines that can still be read, up to `BAD_MAX`.  Neither
holds more than a row that BigQuery would take and what one piece inflates to: of a longer line the
beginning stands for the whole, and is long enough to be known as too long.

Pure: bytes in, lines out.  A stream may have several members, as gzip allows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from isal import isal_zlib

from loader.spark.limits import BAD_MAX, PLAIN_MAX_BYTES, ROW_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 16 * 1024
"""Inflated at once: what comes of it stays in the cache of a core until it has been judged."""
SALVAGE_BYTES = 512
_GZIP = zlib.MAX_WBITS | 16


class CorruptError(ValueError):
    """The bytes are not a whole gzip stream, or too long a one; the message says why."""


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a bundle, some at a time, with their line feeds; the last may lack one.

    Raises:
        CorruptError: at the end or before it.
    """
    if not data:
        raise CorruptError("the object is empty")
    begun = Begun()
    total = 0
    for plain in _inflated(data):
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
    """A line whose end is still to come; what is beyond any row that loads is not kept."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        """Let the line go on."""
        if self._size <= ROW_MAX_BYTES:
            self._parts.append(part)
            self._size += len(part)

    def ended(self, part: bytes) -> bytes:
        """Return the line, which ends with this part; the next one begins."""
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


def _inflated(data: bytes) -> Iterator[bytes]:
    inflate = isal_zlib.decompressobj(_GZIP)
    view = memoryview(data)
    at = 0
    try:
        while at < len(data):
            piece = view[at : at + PIECE_BYTES]
            yield inflate.decompress(piece)
            at += len(piece)
            if inflate.eof:
                at -= len(inflate.unused_data)
                if at < len(data):
                    inflate = isal_zlib.decompressobj(_GZIP)
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise CorruptError(f"the gzip stream is broken: {exc}") from exc
    if not inflate.eof:
        raise CorruptError("the gzip stream is cut short")


def salvaged(data: bytes) -> Iterator[bytes]:
    """Yield lines of a corrupt bundle: all that can be read, and at last what cannot be a line.

    After `BAD_MAX` of them, or `PLAIN_MAX_BYTES`, the last one stands for all that follow.
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
    """Inflate as far as it goes, in small pieces: what comes before a break is not lost."""
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
