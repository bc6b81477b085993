"""Bundles: an open one takes rows; sealed, it is a frozen value ready to be stored.

**Invariant:** an open bundle belongs to one thread and holds compressed bytes; a sealed one never
changes and knows for each of its files the line, and the block that the line lies in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from jostler.bundle.entry import Entries
from jostler.format.blocks import Block, BlockWriter
from jostler.format.names import BundleName, Kind
from jostler.format.row import Archiver, Rejection, row, row_head
from jostler.storage import new_upload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.bundle.batch import Batch
    from jostler.bundle.entry import Entry
    from jostler.format.compression import Compression


# What an open or sealed bundle takes beside its rows and files: many days may have one each.
BUNDLE_BYTES = 2500


class IndexForm(IntEnum):
    """The forms of index rows; the journal of an earlier version may have bundles of the first."""

    BARE = 1
    """Hash is of the file's bytes as they are; there is no Start, End or WorkID."""
    WITH_FACTS = 2


class SealReason(StrEnum):
    """Why a bundle takes no more rows."""

    SIZE = "size"
    AGE = "age"
    MEMORY = "memory"
    SHUTDOWN = "shutdown"
    DISK_LACK = "disk-lack"


class Limits(Struct, frozen=True, kw_only=True):
    """When a bundle is full.  Sizes are bytes of uncompressed rows, ages monotonic seconds."""

    max_bytes: int
    max_age_s: float

    def reason_to_seal(self, size_bytes: int, more_bytes: int, age_s: float) -> SealReason | None:
        """Say why a bundle must be sealed before `more_bytes` go in; None keeps it open."""
        if size_bytes and size_bytes + more_bytes > self.max_bytes:
            return SealReason.SIZE
        if age_s >= self.max_age_s:
            return SealReason.AGE
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What all rows of a bundle share.

    Attributes:
        name: of the data object.
        bucket: URL of the bucket, `gs://…` or `file:///…`.
        archiver: who archives.
        compression: of both objects' blocks.
        schema: digest of the table schema that its files were judged by; empty: by none.
        index_form: of the index rows, one of `IndexForm`.
    """

    name: BundleName
    bucket: str
    archiver: Archiver
    compression: Compression
    schema: str = ""
    index_form: IndexForm = IndexForm.WITH_FACTS

    @property
    def url(self) -> str:
        """The data object's URL, the rows' ArchiveURL."""
        return f"{self.bucket}/{self.name}"

    @property
    def index_name(self) -> BundleName:
        """The name of the index object, with the time stamp of its data."""
        name = self.name
        return BundleName(
            place=name.place,
            datatype=name.datatype,
            day=name.day,
            created=name.created,
            node=name.node,
            kind=Kind.INDEX,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One sealing of a bundle: which files, in which order, and where their rows lie.

    After a crash some files may have changed; then the same name is tried with fewer rows.

    Attributes:
        upload_id: of the data object's bytes.
        entries: in the order of lines.
        blocks: in the order of lines.
    """

    upload_id: str
    entries: Entries
    blocks: tuple[Block, ...]

    def lines(self) -> Iterator[tuple[int, Entry, Block]]:
        """Yield for each line its number (from 1), its file and the block that it lies in."""
        ends = [block.line for block in self.blocks[1:]]
        entries = iter(self.entries)
        for block, end in zip(self.blocks, [*ends, len(self.entries) + 1], strict=True):
            for line in range(block.line, end):
                yield line, next(entries), block


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A sealed bundle.

    Attributes:
        header: what its rows share.
        data: the gzip stream of the data object.
        attempt: the files in it.
        rejections: for the rows of a rejected1 bundle, by path; else empty.
        row_bytes: of the uncompressed rows.
        reason: why it takes no more rows; None when it was made again after a crash.
    """

    header: Header
    data: bytes
    attempt: Attempt
    rejections: dict[str, Rejection]
    row_bytes: int
    reason: SealReason | None

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the bundle takes."""
        return len(self.data) + self.attempt.entries.held_bytes


class OpenBundle:
    """The open bundle of one datatype and day.

    Args:
        header: what its rows share.
        opened_s: monotonic seconds when the first file came.
    """

    def __init__(self, header: Header, opened_s: float) -> None:
        self.header = header
        self.opened_s = opened_s
        self._head = row_head(header.archiver, header.name.day, header.url)
        self._upload_id = new_upload_id()
        self._blocks = BlockWriter(header.compression, self._upload_id)
        self._entries = Entries()
        self._rejections: dict[str, Rejection] = {}

    @property
    def size_bytes(self) -> int:
        """Bytes of the uncompressed rows so far."""
        return self._blocks.plain_bytes

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that the rows take."""
        return self._blocks.held_bytes

    @property
    def loose_bytes(self) -> int:
        """Bytes of memory that rows take which are not yet compressed."""
        return self._blocks.loose_bytes

    @property
    def files(self) -> int:
        """How many files are in it."""
        return self._blocks.lines

    @property
    def entries(self) -> Entries:
        """The files in it, in the order of lines; only its owner may iterate over them."""
        return self._entries

    def rejection(self, path: str) -> Rejection | None:
        """Return why the file of a path is in it as a rejected one."""
        return self._rejections.get(path)

    def row(self, filename: str, raw: bytes) -> bytes:
        """Return the row that a file would make, to learn its size before it is added."""
        return row(self._head, orjson.dumps(filename), raw)

    def add(self, entry: Entry, line: bytes, rejection: Rejection | None = None) -> None:
        """Append a file's row."""
        self._blocks.add(line)
        self._entries.append(entry)
        if rejection:
            self._rejections[entry.path] = rejection

    @property
    def head(self) -> bytes:
        """The part of each row before the Filename."""
        return self._head

    def add_batch(self, paths: Sequence[str], batch: Batch) -> None:
        """Append the rows of a batch; `paths` are those of its files."""
        self._blocks.add_rows(batch.rows)
        self._entries.extend(paths, batch.numbers, batch.hashes, batch.facts)

    def end_block(self) -> None:
        """Compress all rows there are; the next one begins a block."""
        self._blocks.end_block()

    def seal(self, reason: SealReason | None = None) -> Bundle:
        """Close the bundle for ever."""
        data = self._blocks.finish()
        return Bundle(
            header=self.header,
            data=data,
            attempt=Attempt(
                upload_id=self._upload_id.hexdigest(),
                entries=self._entries,
                blocks=tuple(self._blocks.blocks),
            ),
            rejections=self._rejections,
            row_bytes=self.size_bytes,
            reason=reason,
        )
