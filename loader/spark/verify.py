"""What an executor does with bundles: read, inflate, judge each row, return verdict and position.

**Invariant:** each line of each bundle that can be read is reported once, and each bundle once, on
line 0; no content leaves the executor but the capped text of bad rows.  A bundle that is not whole
has bad rows only, and at least one.

It refuses no bundle: one that cannot be read is reported with the reason, and fails its day alone.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from jostler.schema import Judge
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row
from loader.spark.findings import CORRUPT, ROW_TOO_LONG, WRONG_DAY, Bad, Findings, Whole, shown
from loader.spark.gunzip import CorruptError, blocks, salvaged, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from jostler.format.names import Day
    from jostler.schema import Fields

ROW_MAX_BYTES = 100_000_000
"""BigQuery takes rows of up to 100 MB ("Quotas and limits", load jobs)."""
READERS = 4
AHEAD_BYTES = 64 * 1024 * 1024
_BRACE = ord("}")


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


@lru_cache(maxsize=64)
def judges(fields: Fields) -> dict[str, Judge]:
    """Build a table's judges, by how rows spell the standard columns; "" is for bare rows.

    Kept from task to task: what a judge has learned about nulls keeps it fast.
    """
    return {
        "raw": Judge(fields),
        "Raw": Judge(row.capitalised(fields)),
        "": Judge(row.raw_fields(fields)),
    }


def verified(
    tasks: list[Task], tables: tuple[Fields, ...], patience_s: float
) -> Iterator[pa.RecordBatch]:
    """Verify bundles one after the other; see `findings` for what comes out."""
    findings = Findings()
    for task, data in read_ahead(tasks, patience_s):
        if isinstance(data, BucketError):
            problem = Whole(unreadable=f"{type(data).__name__}: {data}")
            findings.add(task.ordinal, problem, b"", [])
            continue
        verdicts = Verdicts(task, tables[task.table])
        try:
            for block in blocks(data):
                verdicts.take(block)
            verdicts.report(findings, len(data))
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


class Verdicts:
    """The verdicts on the rows of one bundle; held until it is known that the bundle is whole."""

    def __init__(self, task: Task, fields: Fields) -> None:
        self._task = task
        self._judges = judges(fields)
        self._day = f"{task.day.path}/".encode()
        self._identities = row.identities(task.table, task.day, task.node)
        self._keys: list[bytes] = []
        self._bad: list[tuple[int, Bad]] = []
        self._bytes = 0
        self._bare = False

    def take(self, block: bytes) -> None:
        """Judge the next lines: all at once if they are good, else each for itself.

        Nothing is copied but the Filename: a copy of each row costs more than its identity.
        """
        if not self._bytes:
            self._begin(split(block)[0])
        good = len(block) <= ROW_MAX_BYTES and self._judge.all_good(block)
        start, end, day, keys = self._head.start, self._head.end, self._day, self._keys
        from_, more, begun, identity = len(start), len(end), self._identities, row.identity
        view = memoryview(block)
        at = 0
        while at < len(block):
            till = block.find(b"\n", at)
            if till < 0:
                till = len(block)
            if block.startswith(start, at) and block[till - 1] == _BRACE:
                stop = block.find(b'"', at + from_, till)
                name = block[at + from_ : stop]
                usual = block.startswith(end, stop) and b"\\" not in name
                if usual and (good or self._is_good(block[at:till])):
                    if not name.startswith(day):
                        name = row.relative(name, day)
                    keys.append(identity(begun, name, view[stop + more : till - 1]))
                    at = till + 1
                    continue
            self._look(block[at:till], good=good)
            at = till + 1
        self._bytes += at

    def report(self, findings: Findings, packed_bytes: int) -> None:
        """Hand over the verdicts of a bundle that was read to its end."""
        whole = Whole(
            rows=len(self._keys) + len(self._bad),
            plain_bytes=self._bytes,
            packed_bytes=packed_bytes,
            bare=self._bare,
        )
        findings.add(self._task.ordinal, whole, b"".join(self._keys), self._bad)

    def _begin(self, first: bytes) -> None:
        """Learn from the first line which form the rows have; others are still judged rightly."""
        self._bare = row.is_bare(first)
        self._head = row.head_of(first, self._task.day)
        spelled = "" if self._bare else "Raw" if b'"Raw":' in self._head.end else "raw"
        self._judge = self._judges[spelled]

    def _is_good(self, line: bytes) -> bool:
        return len(line) <= ROW_MAX_BYTES and self._judge.flaw(line) is None

    def _look(self, line: bytes, *, good: bool) -> None:
        """Judge a line that is not of the bundle's usual form, or is bad."""
        found = row.parts(line)
        filename = found.filename if found else ""
        if len(line) > ROW_MAX_BYTES:
            detail = f"the row has {len(line)} bytes, BigQuery takes {ROW_MAX_BYTES}"
            bad = _bad(line, filename, reason=ROW_TOO_LONG, detail=detail)
        elif flaw := None if good else self._judge.flaw(line):
            bad = _bad(line, filename, reason=flaw.reason, detail=flaw.detail, field=flaw.field)
        elif self._bare:
            self._keys.append(row.identity(self._identities, b"", line))
            return
        elif found is None or found.date != self._task.day.iso:
            told = found.date if found else None
            detail = f"the bundle's day is {self._task.day.iso}, the row's date is {told!r}"
            bad = _bad(line, filename, reason=WRONG_DAY, detail=detail, field="date")
        else:
            name = row.relative(filename.encode(errors="surrogatepass"), self._day)
            self._keys.append(row.identity(self._identities, name, found.raw))
            return
        self._bad.append((len(self._keys) + len(self._bad) + 1, bad))


def _bad(line: bytes, filename: str, *, reason: str, detail: str, field: str = "") -> Bad:
    return Bad(filename=filename, field=field, reason=str(reason), detail=detail, text=shown(line))


def _report_corrupt(task: Task, data: bytes, why: str, findings: Findings) -> None:
    """Report each line that can still be read, and what comes after, as bad."""
    bad = []
    plain = 0
    for number, line in enumerate(salvaged(data), 1):
        found = row.parts(line)
        filename = found.filename if found else ""
        bad.append((number, _bad(line, filename, reason=CORRUPT, detail=why)))
        plain += len(line) + 1
    whole = Whole(rows=len(bad), plain_bytes=plain, packed_bytes=len(data), corrupt=why)
    findings.add(task.ordinal, whole, b"", bad)
