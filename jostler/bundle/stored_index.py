"""Decide whether an index object that is already in the bucket is the index of a bundle.

**Invariant:** what counts is what the rows say, never the object's bytes: after a crash the index
may be there, written by another version of jostler or of a compression library, or made again from
the data by `jostler audit -fix`, which knows no TimeAdded and no line breaks of the file.

Pure: takes bytes, reads no bucket.
"""

from __future__ import annotations

import gzip
import io
import zlib
from typing import TYPE_CHECKING

import msgspec

from jostler.format.names import display
from jostler.format.row import instant

if TYPE_CHECKING:
    from jostler.bundle.bundle import Attempt, Header
    from jostler.bundle.entry import Entry
    from jostler.format.blocks import Block

LINE_MOST = 1 << 20
"""Bytes of the longest line that is looked at; a file's path has 4096 at the most."""


class _Raw(msgspec.Struct):
    """The columns of an index row that identify its file and its place."""

    Filename: str
    Size: int
    TimeAdded: str
    ArchiveURL: str
    Line: int
    Offset: int
    Length: int
    Hash: str = ""


class _Row(msgspec.Struct):
    raw: _Raw


_DECODER = msgspec.json.Decoder(_Row)


def describes(data: bytes, header: Header, attempt: Attempt) -> bool:
    """Say whether an index object has one row for each file of an attempt, in the order of lines.

    Two attempts differ in the microsecond at which some file was read, or in the files, so the
    index of one is never taken for that of another.  A row that was made again has the file's Hash
    instead: attempts with equal files in equal order have equal data, and one index fits both.
    """
    try:
        with gzip.open(io.BytesIO(data)) as lines:
            for line, entry, block in attempt.lines():
                found = _DECODER.decode(lines.readline(LINE_MOST)).raw
                if not _is_of(found, _expected(header, line, entry, block)):
                    return False
            return not lines.read(1)
    except (OSError, EOFError, zlib.error, ValueError):  # no gzip, cut off, or no row
        return False


def _is_of(found: _Raw, expected: _Raw) -> bool:
    same = ("Filename", "ArchiveURL", "Line")
    if any(getattr(found, name) != getattr(expected, name) for name in same):
        return False
    of_agent = ("Size", "TimeAdded", "Offset", "Length")
    is_the_agents = all(getattr(found, name) == getattr(expected, name) for name in of_agent)
    return is_the_agents or (bool(expected.Hash) and _is_again(found, expected))


def _is_again(found: _Raw, expected: _Raw) -> bool:
    """Say whether a row was made again for the same file, whose block lies in the one it names.

    Whoever makes an index again cannot tell where a block has ended early for lack of memory.
    """
    starts, ends = found.Offset <= expected.Offset, found.Offset + found.Length
    return found.Hash == expected.Hash and starts and expected.Offset + expected.Length <= ends


def _expected(header: Header, line: int, entry: Entry, block: Block) -> _Raw:
    return _Raw(
        Filename=display(entry.filename),
        Size=entry.state.size,
        TimeAdded=instant(entry.added_us),
        ArchiveURL=header.url,
        Line=line,
        Offset=block.offset,
        Length=block.length,
        Hash=entry.hash.hex(),
    )
