"""Days on their way from verified to told: a bounded number, in threads that load them.

**Invariant:** fewer than `most` days wait for a thread or are being loaded when verifying goes on:
it is faster than a slow BigQuery, and would otherwise fill staging and memory.  No table gets load
jobs faster than BigQuery takes them.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from loader.bigquery.record import Outcome

    Work = Callable[[], Future[Outcome]]

PACE = 45
PACE_S = 10.0
"""A partitioned table takes 50 changes of partitions in ten seconds ("Quotas and limits")."""


class Loading:
    """Loads days; a context that is left when all of them have been loaded.

    Args:
        most: so many days are loaded at the same time.
        stop: when it is set, days that wait are not begun.
    """

    def __init__(self, most: int, stop: threading.Event) -> None:
        self._most = most
        self._stop = stop
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="day")
        self._pace = Pace(stop)
        self._changed = threading.Condition()
        self._unloaded = self._untold = 0
        self._told: list[Future[Outcome]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def has_room(self) -> bool:
        """Say whether more days may be verified."""
        return self._unloaded < self._most

    def wait_for_room(self) -> bool:
        """Wait until more days may be verified; False when none are any more."""
        with self._changed:
            while not self.has_room() and not self._stop.is_set():
                self._changed.wait(timeout=1.0)  # a signal handler must not take the lock
        return not self._stop.is_set()

    def add(self, table: str, load: Work) -> None:
        """Load a day of a table, soon."""
        with self._changed:
            self._unloaded += 1
        self._pool.submit(self._run, table, load)

    def count(self) -> int:
        """Count the days that are loaded or to be told of; may be asked by a signal handler."""
        return self._untold

    def outcomes(self) -> list[Outcome]:
        """Return what became of the days that were begun; waits for what is told of them."""
        return [told.result() for told in self._told]

    def _run(self, table: str, load: Work) -> None:
        try:
            if self._pace.wait(table):
                self._begin(load)
        finally:
            with self._changed:
                self._unloaded -= 1
                self._changed.notify_all()

    def _begin(self, load: Work) -> None:
        with self._changed:
            self._untold += 1
        told = load()
        self._told.append(told)
        told.add_done_callback(self._is_told)

    def _is_told(self, _: object) -> None:
        with self._changed:
            self._untold -= 1


class Pace:
    """Lets load jobs of one table begin no faster than BigQuery takes them.

    Args:
        stop: when it is set, none begins any more.
        clock: monotonic seconds.
    """

    def __init__(self, stop: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=PACE))

    def wait(self, table: str) -> bool:
        """Wait for a table's turn; False when it does not come any more."""
        return not self._stop.wait(max(0.0, self.delay_s(table)))

    def delay_s(self, table: str) -> float:
        """Take the next turn of a table; return in how many seconds it comes."""
        with self._lock:
            now, begun = self._clock(), self._begun[table]
            turn = max(now, begun[0] + PACE_S) if len(begun) == PACE else now
            begun.append(turn)
            return turn - now
