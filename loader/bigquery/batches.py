"""What is told to ledger and rejects: collected, and written in batches.

**Invariant:** a row of the ledger is written only after the bad rows that it counts; whoever told
it learns when it is durable.

One job for each row would cost 3 s for each day of data, and soon the 1,500 load jobs that a table
takes in a day.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from loader.bigquery.appends import BadRows, Ledger, Line, Rejects, Table
from loader.bigquery.ledger import LOADS, REJECT_ROWS
from loader.errors import WarehouseError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from loader.bigquery.appends import Part
    from loader.bigquery.ledger import Meta
    from loader.bigquery.warehouse import Json, Warehouse

_P = TypeVar("_P", bound="Part")
GAP_S = 2.0
GAP_MAX_S = 60.0
GAP_STEP = 25
"""So many batches later the gap is longer by GAP_S: 120 in ten minutes, 1,470 in 24 hours."""
ENTRIES_MAX = 1000
"""In a batch; a load job may change 4,000 partitions ("Quotas and limits")."""
URIS_MAX = 10_000
"""A load job takes so many URIs ("Quotas and limits"); beyond, they stand in a manifest."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """A row of the ledger, and the bad rows that must be there before it.

    Attributes:
        line: the row.
        run: whose numbers are taken: that of the run that submitted the load job.
        bad: None when it has none.
        written: ends when the row is durable, or with what went wrong.
    """

    line: Line
    run: str
    bad: BadRows | None = None
    written: Future[None] = field(default_factory=Future)


class Batches:
    """Takes entries from any thread; writes them from one of its own, until it is left.

    Args:
        warehouse: where the tables are.
        meta: their dataset.
        run: our own.

    Attributes:
        meta: the same.
    """

    def __init__(self, warehouse: Warehouse, meta: Meta, run: str) -> None:
        self.meta = meta
        self._run = run
        self._rejects = Rejects(warehouse, meta, REJECT_ROWS, run)
        self._loads = Ledger(warehouse, meta, LOADS, run)
        self._changed = threading.Condition()
        self._waiting: list[Entry] = []
        self._busy = self._hurry = self._closing = False
        self._batches = 0
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Write what waits, and end the thread."""
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    def tell(self, row: Json, run: str = "", bad: BadRows | None = None) -> Future[None]:
        """Take a row of the ledger and the bad rows that it counts.

        Args:
            row: of the ledger.
            run: that submitted the load job of which the row tells; ours if empty.
            bad: the bad rows.

        Returns:
            What ends when the row is durable; its callbacks run in our thread.
        """
        line = Line(row.get("JobID") or "", row.get("date") or "", row)
        entry = Entry(line=line, run=run or self._run, bad=bad)
        with self._changed:
            self._waiting.append(entry)
            self._changed.notify_all()
        return entry.written

    def flush(self) -> None:
        """Write all that waits, at once; return when it is done."""
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

    def _next(self, due_s: float) -> list[Entry]:
        """Wait for entries, and then until it is time; return none when all is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            left_s = max(0.0, due_s - time.monotonic())
            self._changed.wait_for(lambda: self._hurry or self._closing, timeout=left_s)
            count = _fitting(self._waiting)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            self._busy = bool(batch)
            return batch

    def _write(self, batch: list[Entry]) -> None:
        """Write bad rows, then rows of the ledger; what fails, fails its own entries."""
        by_run: dict[str, list[Entry]] = defaultdict(list)
        for entry in batch:
            by_run[entry.run].append(entry)
        for run, entries in by_run.items():
            failed = _append(self._rejects, self._run, {id(e): e.bad for e in entries if e.bad})
            lines = {id(entry): entry.line for entry in entries if id(entry) not in failed}
            failed |= _append(self._loads, run, lines)
            for entry in entries:
                if exc := failed.get(id(entry)):
                    entry.written.set_exception(exc)
                else:
                    entry.written.set_result(None)


def _fitting(entries: list[Entry]) -> int:
    """Count the entries that go into one batch: at least one."""
    total = 0
    for count, entry in enumerate(entries[:ENTRIES_MAX]):
        alone = bool(entry.bad and entry.bad.more)
        total += len(entry.bad.uris) if entry.bad else 0
        if count and (alone or total > URIS_MAX):
            return count
        if alone:
            return 1
    return min(len(entries), ENTRIES_MAX)


def _append(table: Table[_P], run: str, parts: Mapping[int, _P]) -> dict[int, Exception]:
    """Append parts; return what went wrong, by the same keys.  A refused part stands alone."""
    if not parts:
        return {}
    try:
        table.append(run, list(parts.values()))
    except WarehouseError as exc:
        if len(parts) == 1 or exc.reason != "invalid":
            return dict.fromkeys(parts, exc)
        half = len(parts) // 2
        halves = list(parts.items())[:half], list(parts.items())[half:]
        return _append(table, run, dict(halves[0])) | _append(table, run, dict(halves[1]))
    except Exception as exc:  # noqa: BLE001 - what nobody foresaw fails these days, and no later ones
        return dict.fromkeys(parts, exc)
    return {}
