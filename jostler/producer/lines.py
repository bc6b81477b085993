"""The rows of a JSONL file: its lines, with their numbers, in bounded memory.

**Invariant:** a row is a line without its line break, byte for byte.  Lines of white space are no
rows, but they count.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from isal import igzip, isal_zlib

from jostler.errors import RecordError
from jostler.format.row import BOM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
READ_BYTES = 256 * 1024
_BLANKS = b" \t\r\n"


class Line(NamedTuple):
    """One row.

    Attributes:
        number: of the line, from 1.
        content: the line, without line break; empty if it is too long.
        size: its bytes.
    """

    number: int
    content: bytes
    size: int


def ending(name: str) -> str:
    """Return what a name of a file of rows ends with; empty if it is none."""
    return next((end for end in reversed(ENDINGS) if name.lower().endswith(end)), "")


def opened(stream: BinaryIO, name: str) -> BinaryIO:
    """Return the uncompressed bytes of a file of rows, which is compressed if it is named so."""
    if ending(name).endswith(".gz"):
        return igzip.open(stream, "rb")  # type: ignore[no-untyped-call, no-any-return]
    return stream


def lines(stream: BinaryIO, most: int, name: str) -> Iterator[Line]:
    """Yield the rows of a file.

    Args:
        stream: its uncompressed bytes.
        most: bytes of the longest line whose content is held.
        name: of the file, for errors.

    Raises:
        RecordError: it is compressed, and damaged or cut off.
    """
    splitter = Splitter(most)
    while True:
        try:
            data = stream.read(READ_BYTES)
        except (gzip.BadGzipFile, EOFError, isal_zlib.error) as exc:  # type: ignore[misc]
            raise RecordError(f"{name}: cannot be decompressed: {exc}") from exc
        if not data:
            yield from splitter.end()
            return
        yield from splitter.feed(data)


class Splitter:
    """Takes bytes as they come and gives the rows that are complete.

    Args:
        most: bytes of the longest line whose content is held.
        too_long: called with the bytes of longer lines, piece by piece.
    """

    def __init__(self, most: int, too_long: Callable[[bytes], object] | None = None) -> None:
        self._most = most
        self._too_long = too_long or (lambda _piece: None)
        self._part = b""
        self._dropped = 0
        self._number = 0

    def feed(self, data: bytes) -> Iterator[Line]:
        """Yield the rows that end in some more bytes."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield from self._ended(line)
        self._part += rest
        if len(self._part) > self._most:
            self._drop(self._part)
            self._part = b""

    def end(self) -> Iterator[Line]:
        """Yield the last row, if the file does not end with a line break."""
        if self._part or self._dropped:
            yield from self._ended(b"")

    def _ended(self, line: bytes) -> Iterator[Line]:
        self._number += 1
        if self._part:
            line, self._part = self._part + line, b""
        if self._number == 1 and not self._dropped:
            line = line.removeprefix(BOM)
        if self._dropped:
            self._drop(line + b"\n")
            size, self._dropped = self._dropped - 1, 0
            yield Line(self._number, b"", size)
            return
        line = line.removesuffix(b"\r")
        if line.strip(_BLANKS):
            yield Line(self._number, line, len(line))

    def _drop(self, piece: bytes) -> None:
        self._too_long(piece)
        self._dropped += len(piece)
