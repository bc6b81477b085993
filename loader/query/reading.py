"""Read bundles for a question, on an executor: decompress, leave out, parse the named columns.

**Invariant:** the rows that come out are those that a load of the same bundles puts into BigQuery:
a bad row, every row of a damaged bundle, and a repeated row are left out.  All are counted.

Rows outside of the asked times and nodes are left out before they are parsed; no other condition
is judged here.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from isal import isal_zlib

from jostler.format.names import INDEX
from jostler.format.nodes import is_merged_node
from loader.query.batch import Batch, columns_of
from loader.query.columns import arrow_type
from loader.query.fetching import KEPT_BYTES, Fetched, fetch, instant
from loader.query.question import TIME
from loader.query.rows import Lines, Once
from loader.spark.gunzip import CorruptError
from loader.spark.row import relative
from loader.spark.verdicts import Verdicts
from loader.spark.verify import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.schema import Fields
    from loader.query.rows import Line
    from loader.query.scan import Bundle, Span

READERS = 4
AHEAD_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class What:
    """What is read of a table.

    Attributes:
        datatype: of the rows.
        fields: the columns that are named; of a RECORD the named fields.
        table: the columns of the table, by which rows are judged.
        span: the rows that can answer.
        patience_s: how long a failing request is retried.
    """

    datatype: str
    fields: Fields
    table: Fields
    span: Span
    patience_s: float

    @property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        return pa.schema([pa.field(one.name, arrow_type(one)) for one in self.fields])

    @property
    def with_times(self) -> bool:
        """Whether `_time` is named."""
        return any(one.key == TIME for one in self.fields)


@dataclass(slots=True)
class Count:
    """What was read of one bundle.

    Attributes:
        rows: rows that came out.
        bad: rows that fit no column, or those of a damaged bundle that could be counted.
        repeated: rows that an earlier bundle of the day has.
        collapsed: rows whose body is that of the row before, where these are left out.
        read_bytes: bytes of all requests.
        problem: why the bundle was left out; else empty.
        unindexed: whether it has no index although times were asked for.
        skipped: blocks that its token filters left out.
        unfiltered: whether it has no usable token filters although words were asked for.
        check: of a piece of a bundle that was read in full, CRC-32 and length of its rows.
    """

    rows: int = 0
    bad: int = 0
    repeated: int = 0
    collapsed: int = 0
    read_bytes: int = 0
    problem: str = ""
    unindexed: bool = False
    skipped: int = 0
    unfiltered: bool = False
    check: tuple[int, int] | None = None


def read_part(
    part: Sequence[Bundle], what: What, counts: dict[str, Count]
) -> Iterator[pa.RecordBatch]:
    """Read bundles that may have the same rows, in order; yield the wanted columns.

    Args:
        part: the bundles, as `scan.parts` divides them.
        what: what is wanted.
        counts: gets what was read of each bundle, by its key, before the next one is begun.

    Raises:
        BucketError: an object cannot be read.
    """
    once = Once()
    alone = Counter((one.day, one.node) for one in part)
    merged = any(is_merged_node(one.node) for one in part)
    for fetched in _read_ahead(part, what):
        bundle = fetched.bundle
        count = counts[bundle.key] = Count(read_bytes=fetched.read_bytes)
        needs_index = (what.with_times or what.span.by_time) and what.datatype != INDEX
        count.unindexed = needs_index and not bundle.index
        first = bundle.piece is None or bundle.piece.nth == 0
        count.unfiltered = what.span.need is not None and not bundle.filters and first
        if isinstance(fetched, _Damaged):
            count.problem = fetched.why
            continue
        count.skipped = fetched.skipped
        count.unfiltered |= bool(fetched.unfiltered)
        try:
            bad = _judged(fetched, what, count)
        except CorruptError as exc:
            count.problem = str(exc)
            continue
        # In a bundle of an agent or compactor no row is repeated (docs/format.md, "Bundles").
        single = alone[bundle.day, bundle.node] == 1 and not merged and bundle.trusted
        single |= bundle.piece is not None  # which no other bundle can repeat
        yield from _Rows(fetched, what, bad, None if single else once, count).batches()


@dataclass(frozen=True, slots=True)
class _Damaged:
    """A bundle of which no row can be used."""

    bundle: Bundle
    why: str
    read_bytes: int = 0


def _read_ahead(part: Iterable[Bundle], what: What) -> Iterator[Fetched | _Damaged]:
    """Yield bundles in order, and read the next ones while one is being parsed."""

    def read(bundle: Bundle) -> Fetched | _Damaged:
        try:
            return fetch(bundle, what.span, what.patience_s, with_times=what.with_times)
        except CorruptError as exc:
            return _Damaged(bundle, str(exc))

    rest = deque(part)
    waiting: deque[tuple[int, Future[Fetched | _Damaged]]] = deque()
    pool = ThreadPoolExecutor(READERS, thread_name_prefix="read")
    try:
        while rest or waiting:
            ahead = sum(size for size, _ in waiting)
            # At least one object, however large it is; further ones only as far as memory allows.
            while rest and (not waiting or (len(waiting) < READERS and ahead < AHEAD_BYTES)):
                bundle = rest.popleft()
                ahead += bundle.reading_bytes
                waiting.append((bundle.reading_bytes, pool.submit(read, bundle)))
            yield waiting.popleft()[1].result()
    finally:
        # A LIMIT closes this generator: what was not begun is not read.
        pool.shutdown(wait=True, cancel_futures=True)


def _judged(fetched: Fetched, what: What, count: Count) -> frozenset[int]:
    """Read a bundle to its end; return its bad lines, if it is not trusted.

    Raises:
        CorruptError: it is damaged.
    """
    if fetched.bundle.piece and fetched.data:
        crc = length = 0
        for block in fetched.blocks():
            crc, length = isal_zlib.crc32(block.lines, crc), length + len(block.lines)
        count.check = (crc, length)
        return frozenset()
    if fetched.data and fetched.bundle.size_bytes <= KEPT_BYTES:
        fetched.pieces, fetched.data = list(fetched.blocks()), b""
    if fetched.bundle.trusted:
        for _ in fetched.blocks():
            pass
        return frozenset()
    verdicts = Verdicts(_task(fetched.bundle), what.table)
    for block in fetched.blocks():
        verdicts.of_node(block.node)
        verdicts.take(block.lines)
    return frozenset(verdicts.bad)


def _task(bundle: Bundle) -> Task:
    return Task(
        ordinal=0,
        bucket=bundle.bucket,
        name=bundle.name,
        generation=bundle.generation,
        size_bytes=bundle.size_bytes,
        node=bundle.node,
        day=bundle.day,
        table=0,
    )


class _Rows:
    """Takes the rows of one bundle.

    Args:
        fetched: what was read of it.
        what: what is wanted.
        bad: the numbers of its bad lines.
        once: knows the rows of earlier bundles; None if none of these can be repeated.
        count: is added to.
    """

    def __init__(
        self, fetched: Fetched, what: What, bad: frozenset[int], once: Once | None, count: Count
    ) -> None:
        self._fetched = fetched
        self._bundle = fetched.bundle
        self._what = what
        self._bad = bad
        self._once = once
        self._count = count
        self._day = f"{fetched.bundle.day.path}/".encode()
        # The rows of index1 carry their times themselves: they are parsed before they are judged.
        self._by_time = what.span.by_time and what.datatype != INDEX
        self._nodes = what.span if what.datatype != INDEX else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the wanted columns of the wanted rows."""
        lines = Lines(self._bundle.day, self._bundle.url)
        batch = Batch(bundle=self._bundle)
        for block in self._fetched.blocks():
            if self._nodes and not self._nodes.of(block.node):
                continue
            for number, line in enumerate(lines.of(block.lines), block.line):
                self._take(line, number, block.node, batch)
                if batch.is_full:
                    yield from self._parsed(batch)
                    batch = Batch(bundle=self._bundle)
        yield from self._parsed(batch)

    def _take(self, line: Line | None, number: int, node: str, batch: Batch) -> None:
        """Take a row into a batch, unless it is bad, repeated or of another time."""
        if line is None or number in self._bad:
            self._count.bad += 1
            return
        if number in self._bundle.dropped:
            self._count.collapsed += 1
            return
        if self._once:
            name = line[1] if line[1].startswith(self._day) else relative(line[1], self._day)
            if not self._once.is_new(node, name, line[2]):
                self._count.repeated += 1
                return
        times = self._fetched.times
        when = times.get(number) if times is not None else None
        if self._by_time and (when is None or not self._what.span.has(instant(when))):
            return
        batch.add(line, node, when)

    def _parsed(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        if not batch.lines:
            return
        made, bad = columns_of(batch, self._what.fields, own_times=self._what.datatype == INDEX)
        self._count.bad += bad
        self._count.rows += made.num_rows
        yield made
