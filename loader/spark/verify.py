"""What an executor does with bundles: read, inflate, judge each row, return verdict and position.

**Invariant:** each line of each bundle that is whole is reported once, and each bundle once, on
line 0; no content of a row leaves the executor.  A bundle that is not whole, or is longer than
`limits` allow, has bad rows only, and at least one.

It refuses no bundle: one that cannot be read is reported with the reason, and fails its day alone.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark.findings import Findings, Whole
from loader.spark.gunzip import CorruptError, blocks, salvaged
from loader.spark.limits import PACKED_MAX_BYTES
from loader.spark.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from jostler.format.names import Day
    from jostler.schema import Fields

READERS = 4
AHEAD_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A bundle to verify.

    Attributes:
        ordinal: of the wave; the earliest bundle of a day has the smallest.
        bucket: URL.
        name: of the object.
        generation: at which it was listed.
        size_bytes: of the object.
        node: that made the rows.
        day: that all rows must have.
        table: which of the wave's tables.
    """

    ordinal: int
    bucket: str
    name: str
    generation: str
    size_bytes: int
    node: str
    day: Day
    table: int


def verified(
    tasks: list[Task], tables: tuple[Fields, ...], patience_s: float
) -> Iterator[pa.RecordBatch]:
    """Verify bundles one after the other; see `findings` for what comes out."""
    findings = Findings()
    for task, data in read_ahead(tasks, patience_s):
        if isinstance(data, BucketError):
            findings.add(task.ordinal, Whole(unreadable=f"{type(data).__name__}: {data}"))
            continue
        verdicts = Verdicts(task, tables[task.table])
        try:
            check_size(task)
            for block in blocks(data):
                verdicts.take(block)
            findings.add(task.ordinal, verdicts.whole(), verdicts.keys, verdicts.bad)
        except CorruptError as exc:
            _report_corrupt(task, data, str(exc), findings)
        yield from findings.batches()
    yield from findings.batches(rest=True)


def read_ahead(tasks: list[Task], patience_s: float) -> Iterator[tuple[Task, bytes | BucketError]]:
    """Read objects in their order, some of them while the one before is being verified.

    A request of GCS takes tens of ms whatever the size: one by one, small bundles would cost
    nothing but waiting.
    """

    def read(task: Task) -> bytes | BucketError:
        if task.size_bytes > PACKED_MAX_BYTES:
            return b""
        try:
            return open_bucket(task.bucket, patience_s).read(task.name, task.generation)
        except BucketError as exc:
            return exc

    with ThreadPoolExecutor(READERS, thread_name_prefix="read") as pool:
        waiting: deque[tuple[Task, Future[bytes | BucketError]]] = deque()
        rest = deque(tasks)
        while rest or waiting:
            ahead = sum(task.size_bytes for task, _ in waiting)
            while rest and (not waiting or (len(waiting) < READERS and ahead < AHEAD_BYTES)):
                task = rest.popleft()
                ahead += task.size_bytes
                waiting.append((task, pool.submit(read, task)))
            task, future = waiting.popleft()
            yield task, future.result()


def check_size(task: Task) -> None:
    """Refuse an object that is too long to be held.

    Raises:
        CorruptError: it is.
    """
    if task.size_bytes > PACKED_MAX_BYTES:
        raise CorruptError(f"the object has more than {PACKED_MAX_BYTES:,} bytes")


def _report_corrupt(task: Task, data: bytes, why: str, findings: Findings) -> None:
    """Report that no line is good; `rejects` reads them again, to say which."""
    sizes = [len(line) for line in salvaged(data)]
    findings.add(
        task.ordinal,
        Whole(
            rows=len(sizes),
            bad=len(sizes),
            plain_bytes=sum(sizes) + len(sizes),
            packed_bytes=task.size_bytes,
            corrupt=why,
        ),
    )
