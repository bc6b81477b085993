"""Examine the index objects of trusted bundles, on an executor or in the driver's threads.

**Invariant:** a problem is reported unless the index tells, row by row and in order, of the bundle
that it belongs to, with as many rows as that says it has; and for a sampled bundle, unless each row
is good and has the index's Filename and Hash.  No content of a row leaves the executor.
"""

from __future__ import annotations

import hashlib
import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from jostler.format.names import is_merged_node
from jostler.format.row import content_hash
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row
from loader.spark.gunzip import CorruptError, blocks, split
from loader.spark.limits import PACKED_MAX_BYTES, ROWS_MAX
from loader.spark.nodes import nodes_of
from loader.spark.verdicts import Verdicts
from loader.spark.verify import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.schema import Fields
    from loader.spark.verify import Task

KEY_BYTES = 8
GZIP_END_BYTES = 10
"""What follows the last block of a bundle: an empty block, checksum and length."""
_HASH_CHARS = 32


class DisagreesError(Exception):
    """An index and its bundle say different things; the message says which."""


class _Raw(msgspec.Struct, gc=False):
    Filename: str
    Node: str
    ArchiveURL: str
    Line: int
    Hash: str
    Offset: int
    Length: int
    # Only an index row that has this has the hash of `raw`.
    Start: str | None


class _Row(msgspec.Struct, gc=False):
    date: str
    raw: _Raw


_ROWS = msgspec.json.Decoder(_Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexTask:
    """An index object to examine.

    Attributes:
        data: the bundle that it belongs to.
        name: the index object's name.
        generation: its generation when it was listed.
        size_bytes: its size.
        rows: how many rows the bundle has.
        sampled: whether to read the bundle, too, and to hold it against the index.
    """

    data: Task
    name: str
    generation: str
    size_bytes: int
    rows: int
    sampled: bool

    @property
    def read_bytes(self) -> int:
        """How many bytes of objects it takes to examine it."""
        return self.size_bytes + (self.data.size_bytes if self.sampled else 0)

    @property
    def object(self) -> Task:
        """The index object as a task of reading."""
        return replace(
            self.data, name=self.name, generation=self.generation, size_bytes=self.size_bytes
        )


@dataclass(frozen=True, slots=True)
class Examined:
    """What an index tells.

    Attributes:
        ordinal: the number of its bundle.
        keys: 8 bytes for each row, equal for equal node and Filename.
        problem: why the index cannot be trusted; else empty.
    """

    ordinal: int
    keys: bytes
    problem: str = ""


def examined(
    tasks: list[IndexTask], tables: tuple[Fields, ...], patience_s: float
) -> Iterator[Examined]:
    """Examine indexes one after another, and read the next ones meanwhile."""
    read = read_ahead([task.object for task in tasks], patience_s)
    for task, (_, data) in zip(tasks, read, strict=True):
        ordinal = task.data.ordinal
        try:
            if isinstance(data, BucketError):
                raise data
            rows = _told(data, task)
            if task.sampled:
                _compare(task, rows, tables[task.data.table], patience_s)
            yield Examined(ordinal, _keys(rows))
        except (BucketError, CorruptError, DisagreesError) as exc:
            yield Examined(ordinal, b"", f"{task.data.name}: {exc}")


def groups(tasks: list[IndexTask], count: int) -> list[list[IndexTask]]:
    """Distribute tasks to so many groups of about equal sizes, as far as there are tasks."""
    heap = [(0, number) for number in range(min(len(tasks), count))]
    made: list[list[IndexTask]] = [[] for _ in heap]
    for task in sorted(tasks, key=lambda task: -task.read_bytes):
        size, number = heapq.heappop(heap)
        made[number].append(task)
        heapq.heappush(heap, (size + task.read_bytes + 1, number))
    return made


def _told(data: bytes, task: IndexTask) -> list[_Raw]:
    """Return the rows of an index.

    Raises:
        CorruptError: it is no gzip stream.
        DisagreesError: it is not the index of its bundle.
    """
    day = task.data.day.iso
    rows: list[_Raw] = []
    for block in blocks(data):
        try:
            found = _ROWS.decode_lines(block)
        except msgspec.DecodeError as exc:
            raise DisagreesError(f"its index has a line that is no row: {exc}") from exc
        if any(one.date != day for one in found):
            raise DisagreesError("a row of its index has another date")
        rows += [one.raw for one in found]
        if len(rows) > ROWS_MAX:
            break
    _check(rows, task)
    return rows


def _check(rows: list[_Raw], task: IndexTask) -> None:
    """See that rows of an index are those of a bundle.

    Raises:
        DisagreesError: they are not.
    """
    if len(rows) != task.rows:
        raise DisagreesError(f"it has {task.rows} rows, and its index {len(rows)}")
    if not rows:
        return
    data = task.data
    first, last, folder = rows[0], rows[-1], f"{data.day.path}/"
    if not first.ArchiveURL.endswith(f"/{data.name}"):
        raise DisagreesError(f"its index is that of {first.ArchiveURL}")
    is_merged = is_merged_node(data.node)
    if any(
        one.ArchiveURL != first.ArchiveURL or (one.Node != data.node and not is_merged)
        for one in rows
    ):
        raise DisagreesError("its index has rows of other bundles")
    if any(one.Line != line for line, one in enumerate(rows, 1)):
        raise DisagreesError("lines lack in its index, or are in another order")
    if not all(one.Filename.startswith(folder) for one in rows):
        raise DisagreesError("its index has files of another day")
    if not all(len(one.Hash) == _HASH_CHARS for one in rows):
        raise DisagreesError("its index has rows without hash")
    if last.Offset + last.Length + GZIP_END_BYTES != data.size_bytes:
        raise DisagreesError("by its index the object has another size")


def _keys(rows: list[_Raw]) -> bytes:
    blake2b = hashlib.blake2b
    begins = {one.Node: f"{one.Node}\0".encode() for one in rows}
    names = (begins[one.Node] + one.Filename.encode() for one in rows)
    return b"".join([blake2b(name, digest_size=KEY_BYTES).digest() for name in names])


def _compare(task: IndexTask, rows: list[_Raw], fields: Fields, patience_s: float) -> None:
    """Read a bundle, judge its rows, and hold each against its index row.

    Raises:
        BucketError: the bundle cannot be read.
        CorruptError: it is no complete gzip stream.
        DisagreesError: a row is bad, or is not as the index has it.
    """
    data = task.data
    if data.size_bytes > PACKED_MAX_BYTES:
        raise DisagreesError("the object is too large")
    verdicts = Verdicts(data, fields)
    packed = open_bucket(data.bucket, patience_s).read(data.name, data.generation)
    if (nodes := nodes_of(packed)) and nodes != [one.Node for one in rows]:
        raise DisagreesError("its index has other nodes than its table of nodes")
    line = 0
    for block in blocks(packed):
        verdicts.take(block)
        if verdicts.bad:
            raise DisagreesError(f"line {verdicts.bad[0]} is a bad row")
        for line, text in enumerate(split(block), line + 1):  # noqa: B020 - counts on
            if line > len(rows):
                raise DisagreesError(f"it has more than the {len(rows)} rows of its index")
            found, told = row.parts(text), rows[line - 1]
            if found is None or found.filename != told.Filename:
                raise DisagreesError(f"line {line} is not the file that its index says")
            if content_hash(found.raw).hex() != told.Hash:
                raise DisagreesError(f"line {line} does not have the hash of its index row")
    if line != len(rows):
        raise DisagreesError(f"it has {line} rows, and its index {len(rows)}")
