"""Make the index of a bundle again from its rows.

**Invariant:** the index of a bundle that jostler wrote gets the bytes of the lost one, except where
only the agent had the value: TimeAdded becomes the time given here; a Size counts the row's `raw`,
without line breaks that the file may have had; Start, End and WorkID are null unless a field of
`-index-field` fills them.  What an old index knew of a row is kept if it has the row's Hash.

Pure: takes bytes, returns bytes.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import orjson

from jostler.archive import index_rows
from jostler.archive.audit.explain import INTEGER_MOST, nodes_of
from jostler.archive.audit.stream import blocks_of
from jostler.archive.hashes import digest
from jostler.archive.keeping import Made
from jostler.archive.lines import Row, RowError, lines_of, members, row
from jostler.bundle.index_fields import IndexField, IndexFields
from jostler.format.blocks import BLOCK_BYTES, BlockWriter, read_block
from jostler.format.compression import FAST, LEVELS, SMALL, Compression, Method
from jostler.format.index_row import Facts, index_raw, last_members, place, shared
from jostler.format.names import REJECTED, BundleName
from jostler.format.row import Archiver, instant, row_head
from jostler.format.row import row as data_row
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jostler.archive.files import File
    from jostler.format.blocks import Block

    Known = Mapping[str, Sequence[File]]
    """Files by Filename: in a merged bundle several may have the same."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BLOCK_MOST = 1024 * 1024


class CannotError(Exception):
    """The index cannot be made; the message says why."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What an index row says of a file, beside its place."""

    filename: str
    size: int
    added_us: int
    hash: str
    facts: Facts


def fields_of(texts: Iterable[str]) -> dict[str, IndexFields]:
    """Return what fills an index that is made again, by datatype.

    Raises:
        ValueError: a text is no `DATATYPE:Column=SOURCE`.
    """
    by_datatype: dict[str, list[IndexField]] = {}
    for text in texts:
        field = IndexField.parse(text)
        by_datatype.setdefault(field.datatype, []).append(field)
    return {datatype: IndexFields(fields) for datatype, fields in by_datatype.items()}


def known_files(index_name: BundleName, bucket: str, index: bytes | None) -> list[File]:
    """Return the files of an old index, as far as it can be read.

    Args:
        index_name: of the index object.
        bucket: URL of the bucket.
        index: its bytes; None if there is none.
    """
    if index is None:
        return []
    try:
        files, _ = index_rows.parse(index, index_name, bucket)
    except (ValueError, EOFError):
        return []
    return files


def of_another(name: BundleName, rows: Iterable[Row]) -> str:
    """Return the object that a row names if it is another one; empty if none does.

    In a copy of a bucket the rows name an object of that name in the other bucket.
    """
    urls = (str(one.archiver["ArchiveURL"]) for one in rows)
    return next((url for url in urls if not url.endswith(f"/{name}")), "")


def by_filename(files: Iterable[File]) -> Known:
    """Return files by Filename."""
    found: dict[str, list[File]] = {}
    for file in files:
        found.setdefault(file.filename, []).append(file)
    return found


def index_of(
    name: BundleName,
    index_name: BundleName,
    bucket: str,
    data: bytes,
    *,
    known: Known,
    added: datetime,
    fields: IndexFields | None = None,
) -> Made:
    """Return the index object of a bundle.

    Args:
        name: of the data object.
        index_name: of the index object.
        bucket: URL of the bucket.
        data: bytes of the data object.
        known: what an old index knew.
        added: the TimeAdded of the rows that it did not know.
        fields: fill Start, End and WorkID.

    Raises:
        CannotError: the data is no whole stream, or a line is no row of this bundle.
    """
    try:
        lines = lines_of(data)
        rows = [row(line) for line in lines]
    except RowError as exc:
        raise CannotError(f"the index cannot be made: {exc}") from exc
    if not rows:
        raise CannotError("the index cannot be made: there are no rows")
    if other := of_another(name, rows):
        raise CannotError(f"the index is not made: its rows are those of {other}")
    blocks = blocks_of(data, lines)
    if rows[0].go:
        return _go_index(index_name, rows, known, added, data)
    try:
        nodes = nodes_of(data) or [name.node] * len(rows)
    except ValueError as exc:
        raise CannotError(f"the index cannot be made: {exc}") from exc
    if len(nodes) != len(rows):
        raise CannotError("the index cannot be made: its table of nodes is that of other rows")
    entries = [
        _entry(name, one, node, known, added, fields) for one, node in zip(rows, nodes, strict=True)
    ]
    writer = BlockWriter(compression_of(data, blocks))
    places = _places(blocks, len(rows))
    for line in _index_rows(
        name, index_name, bucket, zip(rows, entries, places, nodes, strict=True)
    ):
        writer.add(line)
    times = [entry.added_us for entry in entries]
    metadata = facts_of(rows, times) | {"data-upload-id": upload_id(data)}
    return Made(name=str(index_name), data=writer.finish(), metadata=metadata)


def _index_rows(
    name: BundleName,
    index_name: BundleName,
    bucket: str,
    rows: Iterable[tuple[Row, _Entry, bytes, str]],
) -> Iterator[bytes]:
    """Yield the index row of each row, given what is known of it, its place and its node."""
    shared_of: dict[str, bytes] = {}
    heads: dict[tuple[str, str], bytes] = {}
    for line, (one, entry, lies, node) in enumerate(rows, 1):
        if node not in shared_of:
            shared_of[node] = shared(name.datatype, node, f"{bucket}/{name}")
        by = str(one.archiver["Version"]), str(one.archiver["GitCommit"])
        if by not in heads:
            archiver = Archiver(version=by[0], commit=by[1])
            heads[by] = row_head(archiver, name.day, f"{bucket}/{index_name}")
        filename = orjson.dumps(entry.filename)
        raw = index_raw(
            filename,
            size=entry.size,
            added=instant(entry.added_us),
            shared=shared_of[node],
            line=line,
            digest=entry.hash,
            place=lies,
            last=last_members(entry.facts),
        )
        yield data_row(heads[by], filename, raw)


def facts_of(rows: Sequence[Row], added_us: Sequence[int]) -> dict[str, str]:
    """Return the metadata that data and index object have in common."""
    return {
        "rows": str(len(rows)),
        "first-time-added": instant(min(added_us)),
        "last-time-added": instant(max(added_us)),
        "version": str(rows[0].archiver["Version"]),
    }


def micros(when: datetime) -> int:
    """Return microseconds since 1970."""
    return (when - _EPOCH) // _MICROSECOND


def _places(blocks: Sequence[Block], rows: int) -> Iterable[bytes]:
    firsts = [*(block.line for block in blocks), rows + 1]
    for block, (first, after) in zip(blocks, pairwise(firsts), strict=True):
        yield from [place(block)] * (after - first)


def _entry(  # noqa: PLR0917 - what is known of a row
    name: BundleName,
    one: Row,
    node: str,
    known: Known,
    added: datetime,
    fields: IndexFields | None,
) -> _Entry:
    filename = str(one.archiver["Filename"])
    if name.datatype == REJECTED:
        return _rejected(filename, one, added)
    found = digest(one.raw)
    before = _before(known.get(filename, ()), node, found, is_merged=name.is_merged)
    facts = Facts(None, None, None)
    if fields:
        values = fields.facts(filename, one.raw, 0)
        start = values.start_us if "Start" in fields.columns else None
        facts = Facts(start, values.end_us, values.work_id)
    if before is None:
        return _Entry(filename, len(one.raw), micros(added), found, facts)
    if before.start or before.end or before.work_id:
        start, end = (None if t is None else micros(t) for t in (before.start, before.end))
        facts = Facts(start, end, before.work_id)
    # The old row counted the line breaks of the file, which `raw` does not have.
    size = max(before.size if before.size <= INTEGER_MOST else 0, len(one.raw))
    return _Entry(filename, size, micros(before.added), found, facts)


def _before(files: Sequence[File], node: str, found: str, *, is_merged: bool) -> File | None:
    """Return the old index row of a file, the earliest one; None if there is none.

    Args:
        files: the old rows of its Filename.
        node: that stored it.
        found: the hash of its `raw`.
        is_merged: whether rows of another node are of other files.
    """
    # With another Hash, an old index row is about other content of this Filename.
    same = [file for file in files if file.hash == found or not file.hash_of_raw]
    if is_merged:
        same = [file for file in same if file.node == node]
    return min(same, key=attrgetter("added"), default=None)


def _rejected(filename: str, one: Row, added: datetime) -> _Entry:
    """Return the entry of a rejected file: its row says itself when it was read."""
    try:
        columns = members(one.raw)
        content = b64decode(str(columns.get("Content", "")), validate=True)
        when = datetime.fromisoformat(str(columns.get("TimeAdded"))).astimezone(UTC)
    except (RowError, ValueError):
        columns, content, when = {}, b"", added
    size = columns.get("Size")
    size = size if isinstance(size, int) else len(content)
    is_whole = bool(content) and len(content) == size
    found = digest(content) if is_whole else ""
    return _Entry(filename, size, micros(when), found, Facts(None, None, None))


def _go_index(
    index_name: BundleName, rows: Sequence[Row], known: Known, added: datetime, data: bytes
) -> Made:
    """Return an index as the Go agent writes it: bare lines, the last one without line feed."""
    lines = []
    for one in rows:
        filename = str(one.archiver["Filename"])
        before = known.get(filename)
        when = before[0].added if before else added
        columns = {
            "Filename": filename,
            "Size": len(one.line.rstrip(b"\n")),
            "TimeAdded": when.strftime("%Y/%m/%dT%H%M%S.%fZ"),
        }
        lines.append(orjson.dumps(columns))
    writer = BlockWriter(SMALL)
    for line in lines[:-1]:
        writer.add(line + b"\n")
    writer.add(lines[-1])
    metadata = {"rows": str(len(rows)), "data-upload-id": upload_id(data)}
    return Made(name=str(index_name), data=writer.finish(), metadata=metadata)


def compression_of(data: bytes, blocks: Sequence[Block]) -> Compression:
    """Return how the blocks of a bundle were compressed, by trying; `SMALL` if that is not known.

    Data and index of a bundle are compressed alike.
    """
    if not blocks or blocks[0].length > _BLOCK_MOST:
        return SMALL
    packed = data[blocks[0].offset : blocks[0].offset + blocks[0].length]
    try:
        plain = read_block(packed)
    except ValueError:
        return SMALL
    # A deflate stream does not name its method or level: only compressing again shows them.
    levels = (Compression(Method.ZLIB_NG, level) for level in LEVELS[Method.ZLIB_NG])
    for one in (FAST, SMALL, *levels):
        if one.deflate(plain, BLOCK_BYTES) == packed:
            return one
    return SMALL
