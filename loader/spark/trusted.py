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
from jostler.format.nodes import is_merged_node
from loader.spark.gunzip import blocks
from loader.spark.limits import GZIP_END_BYTES, PACKED_MAX_BYTES
from loader.spark.nodes import runs
from loader.spark.row import NO_HEAD, head_of
from loader.spark.verdicts import Verdicts

if TYPE_CHECKING:
    from jostler.archive.native_index import IndexReader
    from jostler.schema import Fields
    from loader.spark.verify import Task

KEY_BYTES = 8
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
        part = reader.name_keys(block, first) if reader else None
        if part is None:
            return b""
        keys.append(part.keys)
        first += len(part.keys) // KEY_BYTES
    return b"".join(keys) if part and first == rows and _ends(part.block, task) else b""


def keys_of_both(index: bytes, data: bytes, task: Task, rows: int, fields: Fields) -> bytes:
    """Judge the rows of a bundle and hold each against its index row; return what `keys_of` does.

    The nodes of a merged bundle's rows are those of the table in its header.

    Args:
        index: the index object.
        data: the data object.
        task: the bundle.
        rows: how many rows the bundle has.
        fields: the columns of its table.

    Raises:
        CorruptError: one of them is no complete gzip stream.
    """
    by_node = runs(data)
    if rows > COMPARED_ROWS_MAX or task.size_bytes > PACKED_MAX_BYTES:
        return b""
    if by_node and not is_merged_node(task.node):
        return b""
    text = b"".join(blocks(index))
    reader = _reader(text, task)
    known = reader.read(text, runs=by_node) if reader else None
    if known is None or len(known) != rows or not _ends(known.blocks()[-1][:2], task):
        return b""
    verdicts = Verdicts(task, fields)
    line, head = 0, b""
    for block in blocks(data):
        verdicts.take(block)
        if verdicts.bad:
            return b""
        at = 0
        while at < len(block):
            taken, at = known.take(block, at, line, rows, head=head)
            line += taken
            if at < len(block):  # a merged bundle's rows have several heads
                before, head = head, _head(block[at : block.find(b"\n", at) + 1], task)
                if head in {b"", before}:
                    return b""
    return known.name_keys() if line == rows else b""


def _head(line: bytes, task: Task) -> bytes:
    """Return what a line has before its Filename; empty if it has not the usual form."""
    found = head_of(line, task.day)
    return b"" if found is NO_HEAD else found.start[:-1]


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


def _ends(block: tuple[int, int], task: Task) -> bool:
    """Return whether the bundle ends where, by its index, its last block does."""
    return sum(block) + GZIP_END_BYTES == task.size_bytes
