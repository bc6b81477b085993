"""Examine the index objects of trusted bundles, on an executor or in the driver's threads.

**Invariant:** a problem is reported unless the index has one row for each row of its bundle, in
order; and for a sampled bundle, unless each row is good and has the index's Filename and Hash.  No
content of a row leaves the executor.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from xxhash import xxh3_64_digest, xxh3_64_intdigest

from jostler.format.nodes import is_merged_node
from jostler.format.row import content_hash
from jostler.schema.native import find
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row, trusted
from loader.spark.gunzip import CorruptError, blocks, split
from loader.spark.limits import GZIP_END_BYTES, PACKED_MAX_BYTES, ROWS_MAX
from loader.spark.nodes import nodes_of
from loader.spark.verdicts import Verdicts
from loader.spark.verify import read_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.schema import Fields
    from loader.spark.verify import Task

KEY_BYTES = 8
_HASH_CHARS = 32


class DisagreesError(Exception):
    """An index and its bundle say different things; the message says which."""


class _Raw(msgspec.Struct, gc=False):
    """The fields that identify a row; each field more takes a tenth of the time."""

    Filename: str
    Node: str
    ArchiveURL: str
    Line: int


class _WholeRaw(_Raw, gc=False):
    Hash: str
    Offset: int
    Length: int
    # Only an index row that has this has the hash of `raw`.
    Start: str | None


class _Row(msgspec.Struct, gc=False):
    date: str
    raw: _Raw


class _WholeRow(msgspec.Struct, gc=False):
    date: str
    raw: _WholeRaw


_ROWS = msgspec.json.Decoder(_Row)
_WHOLE_ROWS = msgspec.json.Decoder(_WholeRow)


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
    """The result for an index.

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
            fields = tables[task.data.table]
            if not (keys := _by_native(data, task, fields, patience_s)):
                keys, rows = _read_index(data, task)
                if task.sampled:
                    _compare(task, rows, fields, patience_s)
            yield Examined(ordinal, keys)
        except (BucketError, CorruptError, DisagreesError) as exc:
            yield Examined(ordinal, b"", f"{task.data.name}: {exc}")


def _by_native(data: bytes, task: IndexTask, fields: Fields, patience_s: float) -> bytes:
    """Return a key for each row, if the native module finds that all is as it should be.

    Else return nothing: Python finds out what is wrong, if anything is.

    Raises:
        BucketError: the bundle cannot be read.
    """
    if not find(task.data.native).module:
        return b""
    try:
        if not task.sampled:
            return trusted.keys_of(data, task.data, task.rows)
        packed = open_bucket(task.data.bucket, patience_s).read(
            task.data.name, task.data.generation
        )
        return trusted.keys_of_both(data, packed, task.data, task.rows, fields)
    except CorruptError:
        return b""


class Sized(Protocol):
    """Work whose size is known."""

    @property
    def read_bytes(self) -> int:
        """How many bytes of objects it takes."""
        ...


_S = TypeVar("_S", bound=Sized)


def groups(tasks: list[_S], count: int) -> list[list[_S]]:
    """Distribute tasks to so many groups of about equal sizes, as far as there are tasks."""
    heap = [(0, number) for number in range(min(len(tasks), count))]
    made: list[list[_S]] = [[] for _ in heap]
    for task in sorted(tasks, key=lambda task: -task.read_bytes):
        size, number = heapq.heappop(heap)
        made[number].append(task)
        heapq.heappush(heap, (size + task.read_bytes + 1, number))
    return made


def _read_index(data: bytes, task: IndexTask) -> tuple[bytes, list[_WholeRaw]]:
    """Return a key for each row of an index, and if the bundle is sampled, its rows.

    Of an index whose bundle is not sampled, only the first and the last row of each block are read
    whole: one program has written all rows, so either all have these columns or none has.

    A key is 8 bytes of XXH3 of node and Filename.  The function is public: names that were forged
    to have equal keys make the day be read in full, where the names themselves are compared.

    Raises:
        CorruptError: it is no gzip stream.
        DisagreesError: it is not the index of its bundle.
    """
    node, folder, day = task.data.node, f"{task.data.day.path}/", task.data.day.iso
    is_merged = is_merged_node(node)
    seeds = _Seeds()
    decoder = _WHOLE_ROWS if task.sampled else _ROWS
    keys: list[bytes] = []
    rows: list[_WholeRaw] = []
    odd, url, last = "", "", None
    for block in blocks(data):
        try:
            found: list[Any] = decoder.decode_lines(block)
            first, last = (_WHOLE_ROWS.decode(line).raw for line in _ends(block))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise DisagreesError(f"its index has a line that is no row: {exc}") from exc
        url = url or first.ArchiveURL
        odd = odd or _odd(first, last, url, task)
        # One loop with one question: a loop for each takes longer than reading the rows.
        for line, one in enumerate(found, len(keys) + 1):
            raw = one.raw
            name = raw.Filename
            if (
                raw.Line != line
                or raw.ArchiveURL != url
                or (raw.Node != node and not is_merged)
                or one.date != day
                or not name.startswith(folder)
            ):
                odd = odd or _why_odd(one, line, task)
            keys.append(xxh3_64_digest(name.encode(), seeds[raw.Node]))
        if task.sampled:
            rows += [one.raw for one in found]
        if len(keys) > ROWS_MAX:
            break
    if len(keys) != task.rows:
        raise DisagreesError(f"it has {task.rows} rows, and its index {len(keys)}")
    if last and last.Offset + last.Length + GZIP_END_BYTES != task.data.size_bytes:
        odd = odd or "by its index the object has another size"
    if odd:
        raise DisagreesError(odd)
    return b"".join(keys), rows


class _Seeds(dict[str, int]):
    """What the names of each node are hashed with."""

    def __missing__(self, node: str) -> int:
        self[node] = xxh3_64_intdigest(node.encode())
        return self[node]


def _ends(block: bytes) -> tuple[bytes, bytes]:
    """Return the first and the last line of a block."""
    text = block.rstrip(b"\n")
    return text[: text.find(b"\n") + 1] or text, text[text.rfind(b"\n") + 1 :]


def _odd(first: _WholeRaw, last: _WholeRaw, url: str, task: IndexTask) -> str:
    """Return what is wrong with the first and the last row of a block; else empty."""
    if not url.endswith(f"/{task.data.name}"):
        return f"its index is that of {url}"
    if not len(first.Hash) == len(last.Hash) == _HASH_CHARS:
        return "its index has rows without hash"
    return ""


def _why_odd(row: _Row, line: int, task: IndexTask) -> str:
    """Return what is wrong with a row of an index."""
    if row.date != task.data.day.iso:
        return "a row of its index has another date"
    if row.raw.Line != line:
        return "lines lack in its index, or are in another order"
    if not row.raw.Filename.startswith(f"{task.data.day.path}/"):
        return "its index has files of another day"
    return "its index has rows of other bundles"


def _compare(task: IndexTask, rows: list[_WholeRaw], fields: Fields, patience_s: float) -> None:
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
            found, indexed = row.parts(text), rows[line - 1]
            if found is None or found.filename != indexed.Filename:
                raise DisagreesError(f"line {line} is not the file that its index says")
            if content_hash(found.raw).hex() != indexed.Hash:
                raise DisagreesError(f"line {line} does not have the hash of its index row")
    if line != len(rows):
        raise DisagreesError(f"it has {line} rows, and its index {len(rows)}")
