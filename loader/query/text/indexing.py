"""Make the token filters of one bundle, on an executor or in a thread.

**Invariant:** each row of the bundle is in the block that its filter says, checked by the bundle's
own check sum; of a bundle whose blocks are not known one filter is made for all of it, and of a
damaged one none.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from isal import isal_zlib

from jostler.archive import index_rows
from jostler.errors import ConflictError, MissingError, StorageError
from jostler.format.names import BundleName
from loader.query.text import bloom, filters
from loader.query.text.words import line_pieces
from loader.spark.gunzip import CorruptError, blocks
from loader.spark.limits import PACKED_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.storage import Storage

TRAILER_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """A bundle to make filters of.

    Attributes:
        bucket: URL of the bucket.
        name: of the data object.
        generation: of the data object.
        size_bytes: of the data object.
        index: name of the index object; empty if there is none.
        index_generation: of the index object.
        replaces: the version of older filters; empty if there are none.
    """

    bucket: str
    name: str
    generation: str
    size_bytes: int
    index: str
    index_generation: str
    replaces: str

    @property
    def read_bytes(self) -> int:
        """How many bytes of the data object are read."""
        return self.size_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What became of a bundle.

    Attributes:
        url: of the data object.
        problem: why it has no filters; empty if it has.
        blocks: how many filters were made.
        plain_bytes: of the rows.
        filter_bytes: of the object that was stored.
    """

    url: str
    problem: str = ""
    blocks: int = 0
    plain_bytes: int = 0
    filter_bytes: int = 0


class _Place(NamedTuple):
    line: int
    offset: int
    length: int
    rows: int


@dataclass(slots=True)
class _Filters:
    found: list[tuple[filters.Block, bytes]] = field(default_factory=list)
    plain_bytes: int = 0


def metadata_of(generation: str, size_bytes: int) -> Mapping[str, str]:
    """Return the metadata of filters, by which a listing shows what they were made of."""
    return {"form": str(filters.FORM), "generation": generation, "size": str(size_bytes)}


def index_bundle(storage: Storage, task: IndexTask) -> Indexed:
    """Make the filters of a bundle and store them."""
    url = f"{storage.url}/{task.name}"
    if task.size_bytes > PACKED_MAX_BYTES:
        return Indexed(url=url, problem="the object is too large")
    try:
        data = storage.read(task.name, task.generation).data
        made = filters_of(data, _places(storage, task))
        packed = filters.pack(filters.Made(task.generation, task.size_bytes), made.found)
        _store(storage, task, packed)
    except MissingError:
        return Indexed(url=url, problem="it went away, or was stored again, since it was listed")
    except (StorageError, CorruptError) as exc:
        return Indexed(url=url, problem=str(exc))
    return Indexed(
        url=url,
        blocks=len(made.found),
        plain_bytes=made.plain_bytes,
        filter_bytes=len(packed),
    )


def filters_of(data: bytes, places: list[_Place]) -> _Filters:
    """Return the filters of a bundle.

    Args:
        data: the data object.
        places: its blocks; empty if they are not known.

    Raises:
        CorruptError: it is damaged.
    """
    made = _by_block(data, places) if places else None
    return made or _as_one(data)


def _places(storage: Storage, task: IndexTask) -> list[_Place]:
    """Return the blocks that the index tells; none if it does not."""
    if not task.index:
        return []
    packed = storage.read(task.index, task.index_generation).data
    try:
        files, problems = index_rows.parse(packed, BundleName.parse(task.index), storage.url)
    except ValueError:
        return []
    if problems or not files:
        return []
    places = []
    ordered = sorted(files, key=lambda file: file.line)
    for offset, same in groupby(ordered, key=lambda file: file.offset):
        rows = list(same)
        if offset is None or not rows[0].length:
            return []
        places.append(_Place(rows[0].line, offset, rows[0].length, len(rows)))
    return places


def _by_block(data: bytes, places: list[_Place]) -> _Filters | None:
    """Return a filter for each block; None if these are not all blocks of the bundle.

    What they hold together must have the check sum of the whole bundle.
    """
    made = _Filters()
    crc, line = 0, 1
    for place in places:
        packed = data[place.offset : place.offset + place.length]
        try:
            lines = isal_zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed)
        except isal_zlib.error:  # type: ignore[misc] # the stub says value for class
            return None
        if place.line != line or not lines or filters.rows_in(lines) != place.rows:
            return None
        line += place.rows
        crc = isal_zlib.crc32(lines, crc)
        made.plain_bytes += len(lines)
        made.found.append(
            filters.of_lines(lines, line=place.line, offset=place.offset, length=place.length)
        )
    trailer = crc.to_bytes(4, "little") + (made.plain_bytes & 0xFFFFFFFF).to_bytes(4, "little")
    return made if data[-TRAILER_BYTES:] == trailer else None


def _as_one(data: bytes) -> _Filters:
    """Return one filter for a bundle.

    Raises:
        CorruptError: it is damaged.
    """
    made = _Filters()
    pieces: set[bytes] = set()
    rows = 0
    for lines in blocks(data):
        pieces |= line_pieces(lines)
        rows += filters.rows_in(lines)
        made.plain_bytes += len(lines)
    if not rows:
        raise CorruptError("it has no rows")
    block = filters.Block(1, rows, 0, len(data), len(pieces))
    made.found.append((block, bloom.made(pieces)))
    return made


def _store(storage: Storage, task: IndexTask, packed: bytes) -> None:
    name = BundleName.parse(task.name).token_filters
    metadata = metadata_of(task.generation, task.size_bytes)
    try:
        if task.replaces:
            storage.replace(name, packed, task.replaces, metadata)
        else:
            storage.put_new(name, packed, metadata)
    except ConflictError:
        # Another run was faster; equal bundles have equal filters.
        if storage.read(name).data != packed:
            raise
