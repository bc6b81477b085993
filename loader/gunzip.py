"""The lines of a bundle: inflated and split, chunk by chunk.

**Invariant:** `chunks` either yields every line of a whole gzip stream or raises `CorruptError`;
`salvaged` never raises and yields every line that can still be read.

Pure: bytes in, lines out.  A stream may have several members, as gzip allows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from isal import isal_zlib

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 256 * 1024
SALVAGE_BYTES = 512
_GZIP = zlib.MAX_WBITS | 16


class CorruptError(ValueError):
    """The bytes are not a whole gzip stream; the message says why."""


def chunks(data: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of a bundle in lists, without their line feeds.

    Raises:
        CorruptError: at the end or before it.
    """
    if not data:
        raise CorruptError("the object is empty")
    tail = b""
    for plain in _inflated(data):
        lines = plain.split(b"\n")
        lines[0] = tail + lines[0]
        tail = lines.pop()
        if lines:
            yield lines
    if tail:
        yield [tail]


def _inflated(data: bytes) -> Iterator[bytes]:
    inflate = isal_zlib.decompressobj(_GZIP)
    view = memoryview(data)
    at = 0
    try:
        while at < len(data):
            piece = view[at : at + CHUNK_BYTES]
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
    """Yield the lines of a corrupt bundle that can be read, and at last what cannot be a line."""
    inflate = zlib.decompressobj(_GZIP)
    tail = b""
    try:
        for at in range(0, len(data), SALVAGE_BYTES):
            plain = inflate.decompress(data[at : at + SALVAGE_BYTES])
            *lines, tail = (tail + plain).split(b"\n")
            yield from lines
    except zlib.error:
        pass
    yield tail
