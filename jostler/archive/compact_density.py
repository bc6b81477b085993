"""How a merged bundle is compressed: as densely as its inputs, so that no archive grows by it.

An agent compresses a bundle fast or small, by what waits when it is opened.  Which one it was is
not written anywhere; compressing a piece of it again shows it.

Pure: takes bytes, returns values.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from isal import isal_zlib

from jostler.format.blocks import BLOCK_BYTES
from jostler.format.compression import FAST, SMALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.format.compression import Compression

PIECE_BYTES = 64 * 1024
SAMPLES = 9
DENSER = 0.95
"""Of the size that `FAST` gives; `SMALL` takes 0.7 to 0.85 of it."""


def as_dense_as(objects: Sequence[bytes]) -> Compression:
    """Return how to compress what replaces some bundles: as most of a sample of them.

    Args:
        objects: bytes of the data objects.
    """
    small = fast = 0
    for data in objects[:: -(-len(objects) // SAMPLES)]:
        piece = memoryview(data)[:PIECE_BYTES]
        try:
            plain = isal_zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(piece)
        except isal_zlib.error:  # type: ignore[misc] # the stub says value for class
            continue
        if len(piece) < DENSER * len(FAST.deflate(plain, BLOCK_BYTES)):
            small += 1
        else:
            fast += 1
    return SMALL if small > fast else FAST
