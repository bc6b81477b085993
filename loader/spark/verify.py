"""Verify bundles on an executor: read, decompress, judge each row, return positions and verdicts.

**Invariant:** each line of a complete bundle is reported once, and each bundle once, as line 0.  No
content of a row leaves the executor.  All rows of a bundle that is incomplete or exceeds `limits`
are bad, and there is at least one.

A bundle that cannot be read is reported with the reason, and fails only its own day.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.schema import Use
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark.findings import Findings, Whole
from loader.spark.gunzip import CorruptError, salvaged
from loader.spark.limits import PACKED_MAX_BYTES
from loader.spark.nodes import blocks_by_node
from loader.spark.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.format.names import Day
    from jostler.schema import Fields
    from loader.spark.findings import Found

READERS = 4
AHEAD_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A bundle to verify.

    Attributes:
        ordinal: its number in the wave; the earliest bundle of a day has the smallest.
        bucket: the bucket's URL.
        name: the object's name.
        generation: the object's generation when it was listed.
        size_bytes: the object's size.
        node: the node that wrote the bundle; a merged bundle has the nodes of its rows in itself.
        day: the day that all rows must have.
        table: the index of its table in the wave.
        native: whether the native module is used.
    """

    ordinal: int
    bucket: str
    name: str
    generation: str
    size_bytes: int
    node: str
    day: Day
    table: int
    native: Use = Use.AUTO


def verified(tasks: list[Task], tables: tuple[Fields, ...], patience_s: float) -> Iterator[Found]:
    """Verify bundles one after another; the findings of several come together."""
    findings = Findings()
    for task, data in read_ahead(tasks, patience_s):
        if isinstance(data, BucketError):
            findings.add(task.ordinal, Whole(unreadable=f"{type(data).__name__}: {data}"))
            continue
        verdicts = Verdicts(task, tables[task.table])
        try:
            check_size(task)
            for node, block in blocks_by_node(data, task.node):
                verdicts.of_node(node)
                verdicts.take(block)
            findings.add(task.ordinal, verdicts.whole(), verdicts.keys, verdicts.bad)
        except CorruptError as exc:
            _report_corrupt(task, data, str(exc), findings)
        yield from findings.found()
    yield from findings.found(rest=True)


def read_ahead(tasks: list[Task], patience_s: float) -> Iterator[tuple[Task, bytes | BucketError]]:
    """Yield objects in order, and read the next ones while one is being verified.

    A request to GCS takes tens of ms whatever the size, so reading small bundles one by one would
    be almost only waiting.
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
            # At least one object, however large it is; further ones only as far as memory allows.
            while rest and (not waiting or (len(waiting) < READERS and ahead < AHEAD_BYTES)):
                task = rest.popleft()
                ahead += task.size_bytes
                waiting.append((task, pool.submit(read, task)))
            task, future = waiting.popleft()
            yield task, future.result()


def check_size(task: Task) -> None:
    """Refuse an object that is too large to be read into memory.

    Raises:
        CorruptError: it is too large.
    """
    if task.size_bytes > PACKED_MAX_BYTES:
        raise CorruptError(f"the object has more than {PACKED_MAX_BYTES:,} bytes")


def _report_corrupt(task: Task, data: bytes, why: str, findings: Findings) -> None:
    """Report all lines as bad; `rejects` reads the bundle again to record them."""
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
