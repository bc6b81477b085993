"""The lines of a bundle: inflated and split, block by block.

**Invariant:** `blocks` either yields every line of a whole gzip stream or raises `CorruptError`;
`salvaged` never raises and yields every line that can still be read.

Pure: bytes in, lines out.  A stream may have several members, as gzip allows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from isal import isal_zlib

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 16 * 1024
"""Inflated at once: what comes of it stays in the cache of a core until it has been judged."""
SALVAGE_BYTES = 512
_GZIP = zlib.MAX_WBITS | 16


class CorruptError(ValueError):
    """The bytes are not a whole gzip stream; the message says why."""


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield the lines of a bundle, some at a time, with their line feeds; the last may lack one.

    Raises:
        CorruptError: at the end or before it.
    """
    if not data:
        raise CorruptError("the object is empty")
    begun: list[bytes] = []  # of a line whose end is still to come
    for plain in _inflated(data):
        end = plain.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, plain[:end]])
            begun.clear()
        begun.append(plain[end:])
    if rest := b"".join(begun):
        yield rest


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
    """Yield the lines of a corrupt bundle that can be read, and at last what cannot be a line."""
    inflate = zlib.decompressobj(_GZIP)
    begun: list[bytes] = []
    try:
        for at in range(0, len(data), SALVAGE_BYTES):
            piece = data[at : at + SALVAGE_BYTES]
            while piece:
                end, *lines = inflate.decompress(piece).split(b"\n")
                begun.append(end)
                for line in lines:
                    yield b"".join(begun)
                    begun = [line]
                piece = inflate.unused_data
                if inflate.eof:
                    inflate = zlib.decompressobj(_GZIP)
    except zlib.error:
        pass
    yield b"".join(begun)
