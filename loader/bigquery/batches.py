"""Collect rows for ledger and rejects, and write them in batches.

**Invariant:** a ledger row is written only after the bad rows that it counts.  `add` returns a
future that ends when the row is durable.

One load job per row would take 3 s for each day of data, and would soon reach the limit of 1,500
load jobs per table and day.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from loader.bigquery.appends import Appender, BadRows, LedgerAppender, LedgerRow, RejectsAppender
from loader.bigquery.ledger import LOADS, REJECT_ROWS
from loader.errors import WarehouseError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from loader.bigquery.appends import Part
    from loader.bigquery.ledger import Ledger
    from loader.bigquery.warehouse import Json, Warehouse

_P = TypeVar("_P", bound="Part")
GAP_S = 2.0
GAP_MAX_S = 60.0
GAP_STEP = 25
"""After each so many batches the gap grows by GAP_S: 120 in ten minutes, 1,470 in 24 hours."""
ENTRIES_MAX = 1000
"""Rows in a batch; a load job may change 4,000 partitions ("Quotas and limits")."""
URIS_MAX = 10_000
"""The maximum number of URIs in a load job ("Quotas and limits"); more need a manifest."""


@dataclass(slots=True, kw_only=True)
class PendingRow:
    """A ledger row that waits to be written, and the bad rows to write before it.

    Attributes:
        line: the row.
        run: the run that submitted the day's load job; the append job uses that run's numbers.
        bad: the bad rows; None if there are none.
        written: ends when the row is durable, or with the error.
    """

    line: LedgerRow
    run: str
    bad: BadRows | None = None
    written: Future[None] = field(default_factory=Future)


class Batches:
    """Takes rows from any thread and writes them in a thread of its own, until the context ends.

    Args:
        warehouse: the BigQuery project.
        ledger: the dataset of ledger and rejects.
        run: the id of this run.

    Attributes:
        ledger: the dataset of ledger and rejects.
    """

    def __init__(self, warehouse: Warehouse, ledger: Ledger, run: str) -> None:
        self.ledger = ledger
        self._run = run
        self._rejects = RejectsAppender(warehouse, ledger, REJECT_ROWS, run)
        self._loads = LedgerAppender(warehouse, ledger, LOADS, run)
        self._changed = threading.Condition()
        self._waiting: list[PendingRow] = []
        self._busy = self._hurry = self._closing = False
        self._batches = 0
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write all waiting rows and end the thread."""
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def add(self, row: Json, run: str = "", bad: BadRows | None = None) -> Future[None]:
        """Add a ledger row and the bad rows that it counts.

        Args:
            row: the row.
            run: the run that submitted the load job of the row; empty for this run.
            bad: the bad rows.

        Returns:
            A future that ends when the row is durable; its callbacks run in the writing thread.
        """
        line = LedgerRow(row.get("JobID") or "", row.get("date") or "", row)
        entry = PendingRow(line=line, run=run or self._run, bad=bad)
        with self._changed:
            self._waiting.append(entry)
            self._changed.notify_all()
        return entry.written

    def flush(self) -> None:
        """Write all waiting rows now; return when they are written."""
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._busy)
            self._hurry = False

    def _work(self) -> None:
        due_s = time.monotonic()
        while batch := self._next(due_s):
            self._batches += 1
            gap_s = GAP_S * (1 + self._batches // GAP_STEP)
            due_s = time.monotonic() + min(GAP_MAX_S, gap_s)
            self._write(batch)
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def _next(self, due_s: float) -> list[PendingRow]:
        """Wait for rows and then until the batch is due; return no rows at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            left_s = max(0.0, due_s - time.monotonic())
            self._changed.wait_for(lambda: self._hurry or self._closing, timeout=left_s)
            count = _fitting(self._waiting)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            # Under the lock that emptied `_waiting`: else `flush` could return between the two,
            # before the batch is written.
            self._busy = bool(batch)
            return batch

    def _write(self, batch: list[PendingRow]) -> None:
        """Write bad rows, then ledger rows; an error fails only the rows that it concerns."""
        by_run: dict[str, list[PendingRow]] = defaultdict(list)
        for entry in batch:
            by_run[entry.run].append(entry)
        for run, entries in by_run.items():
            # By `id`, because a row has no hash.  A row whose bad rows could not be written is left
            # out: the ledger must not count rejects that are not there.
            failed = _append(self._rejects, self._run, {id(e): e.bad for e in entries if e.bad})
            lines = {id(entry): entry.line for entry in entries if id(entry) not in failed}
            failed |= _append(self._loads, run, lines)
            for entry in entries:
                if exc := failed.get(id(entry)):
                    entry.written.set_exception(exc)
                else:
                    entry.written.set_result(None)


def _fitting(entries: list[PendingRow]) -> int:
    """Return how many of the waiting rows fit into one batch: at least one."""
    total = 0
    for count, entry in enumerate(entries[:ENTRIES_MAX]):
        alone = bool(entry.bad and entry.bad.more)
        total += len(entry.bad.uris) if entry.bad else 0
        if count and (alone or total > URIS_MAX):
            return count
        if alone:
            return 1
    return min(len(entries), ENTRIES_MAX)


def _append(appender: Appender[_P], run: str, parts: Mapping[int, _P]) -> dict[int, Exception]:
    """Append parts; return the errors by the same keys.

    If BigQuery refuses a job as invalid, its halves are tried separately, so that one bad part does
    not fail the others.
    """
    if not parts:
        return {}
    try:
        appender.append(run, list(parts.values()))
    except WarehouseError as exc:
        if len(parts) == 1 or exc.reason != "invalid":
            return dict.fromkeys(parts, exc)
        half = len(parts) // 2
        halves = list(parts.items())[:half], list(parts.items())[half:]
        return _append(appender, run, dict(halves[0])) | _append(appender, run, dict(halves[1]))
    except Exception as exc:  # noqa: BLE001 - what nobody foresaw fails these days, and no later ones
        return dict.fromkeys(parts, exc)
    return {}
