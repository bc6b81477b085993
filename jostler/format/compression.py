"""How blocks are compressed: by which library and at which level.

**Invariant:** one version of a library, on one kind of processor, gives equal bytes for equal input
and equal `Compression`.  Another version may give other bytes that inflate to the same, so nothing
may rely on the bytes of a bundle that was compressed again.
"""

from __future__ import annotations

import zlib
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib
from zlib_ng import zlib_ng

if TYPE_CHECKING:
    from types import ModuleType


class Method(StrEnum):
    """A library that writes deflate streams."""

    ISAL = "isal"
    """ISA-L: several times as fast as the other one, objects about a third larger."""
    ZLIB_NG = "zlib-ng"
    """zlib-ng: about as small as zlib, two to three times as fast."""


LEVELS = {Method.ISAL: range(4), Method.ZLIB_NG: range(1, 10)}
_LIBRARIES: dict[Method, ModuleType] = {Method.ISAL: isal_zlib, Method.ZLIB_NG: zlib_ng}


class Compression(NamedTuple):
    """A library and its level, one of `LEVELS`; a higher level is slower and smaller."""

    method: Method
    level: int

    def deflate(self, plain: bytes, flush_every: int) -> bytes:
        """Compress bytes into a deflate stream without an end, aligned to a byte.

        Args:
            plain: what to compress.
            flush_every: bytes of input after which a full flush is written, also at the end.
        """
        library = _LIBRARIES[self.method]
        stream = library.compressobj(self.level, library.DEFLATED, -zlib.MAX_WBITS)
        parts = []
        for start in range(0, len(plain), flush_every):
            parts.append(stream.compress(plain[start : start + flush_every]))
            parts.append(stream.flush(library.Z_FULL_FLUSH))
        return b"".join(parts)


FAST = Compression(Method.ISAL, 2)
SMALL = Compression(Method.ZLIB_NG, 7)


class CompressionChoice(NamedTuple):
    """How bundles are compressed, by what waits when they are opened.

    Attributes:
        idle: of a bundle that is opened while no other files wait.
        backlog: of a bundle that is opened while other files wait.
    """

    idle: Compression
    backlog: Compression


AUTO = CompressionChoice(idle=SMALL, backlog=FAST)
_NAMED = {
    "auto": AUTO,
    "fast": CompressionChoice(FAST, FAST),
    "small": CompressionChoice(SMALL, SMALL),
}


def compression_choice(text: str) -> CompressionChoice:
    """Read the value of `-compression`: auto, fast, small, or a level of zlib-ng, 1 to 9.

    Raises:
        ValueError: `text` is none of these.
    """
    if text in _NAMED:
        return _NAMED[text]
    levels = LEVELS[Method.ZLIB_NG]
    if text not in map(str, levels):
        choices = ", ".join(_NAMED)
        raise ValueError(f"{text!r} is none of {choices}, or a level {levels[0]} to {levels[-1]}")
    one = Compression(Method.ZLIB_NG, int(text))
    return CompressionChoice(one, one)
