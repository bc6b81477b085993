"""Threads that load verified days, a bounded number of days at a time.

**Invariant:** verifying continues only while fewer than `most` days are waiting or being loaded.
Otherwise verifying, which can be faster than BigQuery, would fill staging and memory.  No table
gets load jobs faster than BigQuery accepts them.
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
"""A partitioned table accepts 50 partition changes in ten seconds ("Quotas and limits")."""


class Loading:
    """Loads days in threads; leaving the context waits until all of them are loaded.

    Args:
        most: how many days are loaded at the same time.
        stop: when set, no further day is begun.
    """

    def __init__(self, most: int, stop: threading.Event) -> None:
        self._most = most
        self._stop = stop
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="day")
        self._pace = Pace(stop)
        self._changed = threading.Condition()
        self._unloaded = self._unrecorded = 0
        self._outcomes: list[Future[Outcome]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def has_room(self) -> bool:
        """Return whether more days may be verified."""
        return self._unloaded < self._most

    def wait_for_room(self) -> bool:
        """Wait until more days may be verified; return False if the run is to end."""
        with self._changed:
            while not self.has_room() and not self._stop.is_set():
                # With a timeout, because a signal handler may not take the lock to notify.
                self._changed.wait(timeout=1.0)
        return not self._stop.is_set()

    def add(self, table: str, load: Work) -> None:
        """Queue a day of a table for loading."""
        with self._changed:
            self._unloaded += 1
        self._pool.submit(self._run, table, load)

    def count(self) -> int:
        """Count the days that are being loaded or recorded; safe in a signal handler."""
        return self._unrecorded

    def outcomes(self) -> list[Outcome]:
        """Wait for the outcomes of all days that were begun, and return them."""
        return [outcome.result() for outcome in self._outcomes]

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
            self._unrecorded += 1
        outcome = load()
        self._outcomes.append(outcome)
        outcome.add_done_callback(self._recorded)

    def _recorded(self, _: object) -> None:
        with self._changed:
            self._unrecorded -= 1


class Pace:
    """Limits how fast the load jobs of each table begin, to stay within BigQuery's quota.

    Args:
        stop: when set, no further job begins.
        clock: returns monotonic seconds.
    """

    def __init__(self, stop: threading.Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=PACE))

    def wait(self, table: str) -> bool:
        """Wait until a job of the table may begin; return False if the run is to end."""
        return not self._stop.wait(max(0.0, self.delay_s(table)))

    def delay_s(self, table: str) -> float:
        """Reserve a table's next time slot; return in how many seconds it comes."""
        with self._lock:
            now, begun = self._clock(), self._begun[table]
            turn = max(now, begun[0] + PACE_S) if len(begun) == PACE else now
            # Reserved under the lock, so threads that ask at the same moment get different slots.
            begun.append(turn)
            return turn - now
