"""Take the keys of a bundle's rows from its index, and compare both, with the native module.

**Invariant:** a bundle is taken only if its index has exactly the form that an agent writes, with
one row for each of its rows, in order, and says where the bundle ends; and if the bundle is read as
well, only if each row is good and has the Filename and the Hash of its index row.  Whatever is not
taken is left to `index`, which does the same in Python and says what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from jostler.archive.native_index import index_reader
from jostler.format.index_row import IndexRow
from jostler.format.names import BundleName
from loader.spark.gunzip import blocks
from loader.spark.limits import GZIP_END_BYTES, PACKED_MAX_BYTES
from loader.spark.nodes import nodes_of
from loader.spark.verdicts import Verdicts

if TYPE_CHECKING:
    from jostler.archive.native_index import IndexReader, NativeIndex
    from jostler.schema import Fields
    from loader.spark.verify import Task

COMPARED_ROWS_MAX = 500_000
"""Of more rows an index is not held in memory as a whole; an agent's bundle has fewer."""
_ROWS = msgspec.json.Decoder(IndexRow)


def keys_of(index: bytes, task: Task, rows: int) -> bytes:
    """Return 8 bytes for each row of an index; nothing if it is not taken.

    It is inflated and read block by block, so that all of it happens in the processor's cache.

    Args:
        index: the object.
        task: the bundle that it belongs to.
        rows: how many rows the bundle has.

    Raises:
        CorruptError: it is no gzip stream.
    """
    reader, part = None, None
    keys: list[bytes] = []
    first = 0
    for block in blocks(index):
        reader = reader or _reader(block, task)
        part = reader.read(block, first) if reader else None
        if part is None:
            return b""
        keys.append(part.name_keys())
        first += len(part)
    return b"".join(keys) if part and first == rows and _ends(part, task) else b""


def keys_of_both(index: bytes, data: bytes, task: Task, rows: int, fields: Fields) -> bytes:
    """Judge the rows of a bundle and hold each against its index row; return what `keys_of` does.

    Args:
        index: the index object.
        data: the data object.
        task: the bundle.
        rows: how many rows the bundle has.
        fields: the columns of its table.

    Raises:
        CorruptError: one of them is no complete gzip stream.
    """
    if rows > COMPARED_ROWS_MAX or task.size_bytes > PACKED_MAX_BYTES or nodes_of(data):
        return b""
    text = b"".join(blocks(index))
    reader = _reader(text, task)
    known = reader.read(text) if reader else None
    if known is None or len(known) != rows or not _ends(known, task):
        return b""
    verdicts = Verdicts(task, fields)
    line = 0
    for block in blocks(data):
        verdicts.take(block)
        if verdicts.bad:
            return b""
        taken, end = known.take(block, 0, line, rows, head=verdicts.head[:-1])
        if end != len(block):
            return b""
        line += taken
    return known.name_keys() if line == rows else b""


def _reader(text: bytes, task: Task) -> IndexReader | None:
    """Return what reads an index that begins with this text; None if it is not the bundle's."""
    try:
        # A copied bucket has the URLs of another one.
        first = _ROWS.decode(text[: text.find(b"\n") + 1])
        name = BundleName.parse(task.name)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
        return None
    url = first.raw.ArchiveURL
    if not url.endswith(f"/{task.name}") or (name.node, name.day) != (task.node, task.day):
        return None
    return index_reader(name, url=url, index_url=first.archiver.ArchiveURL)


def _ends(index: NativeIndex, task: Task) -> bool:
    """Return whether the bundle ends where the last row of its index says."""
    offset, length, _ = index.blocks()[-1]
    return offset + length + GZIP_END_BYTES == task.size_bytes
