"""Threads that verify waves of days and load verified days, as `lanes` decides.

**Invariant:** what `lanes` decides is carried out under one lock; the work itself is not.  No table
gets load jobs faster than BigQuery accepts them.  After `stop` is set no day is begun.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from loader.bigquery.record import Outcome
    from loader.plan.due import TableDay
    from loader.plan.lanes import Lanes
    from loader.spark.wave import Verified

    Verify = Callable[[list[TableDay]], Iterable[Verified]]
    Load = Callable[[Verified, datetime], Future[Outcome]]
    Item = tuple[Verified, datetime]

WAVES = 16
"""How many experiments are verified side by side."""
PACE = 45
PACE_S = 10.0
"""A partitioned table accepts 50 partition changes in ten seconds ("Quotas and limits")."""


@dataclass(slots=True)
class Waited:
    """How long an experiment's days waited, from the beginning of the run's loading.

    Attributes:
        days: how many of its days have begun.
        first_s: seconds until its first day began.
        last_s: seconds until its last day began.
    """

    days: int
    first_s: float
    last_s: float


class Loading:
    """Verifies and loads days in threads; leaving the context waits until all have ended.

    Args:
        lanes: decides which days begin.
        verify: verifies a wave; called from several threads at once.
        load: loads a verified day; called from several threads at once.
        most: how many days are loaded at the same time.
        stop: returns whether no further day is to begin.

    Attributes:
        waited: how long each experiment waited.
    """

    def __init__(
        self,
        lanes: Lanes[Item],
        verify: Verify,
        load: Load,
        *,
        most: int,
        stop: Callable[[], bool],
    ) -> None:
        self._lanes = lanes
        self._verify = verify
        self._load = load
        self._stop = stop
        self._verifiers = ThreadPoolExecutor(WAVES, thread_name_prefix="wave")
        self._loaders = ThreadPoolExecutor(most, thread_name_prefix="day")
        self._pace = Pace(stop)
        self._changed = threading.Condition()
        self._unrecorded = 0
        self._outcomes: list[Future[Outcome]] = []
        self._failed: BaseException | None = None
        self._began_s = time.monotonic()
        self.waited: dict[str, Waited] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._verifiers.shutdown()
        self._loaders.shutdown()

    def run(self) -> None:
        """Begin days until all are being loaded, or until the run is to end.

        Raises:
            Exception: verifying failed as a whole, for instance because Spark does not start.
        """
        while True:
            with self._changed:
                self._begin_waves()
                if self._failed or self._stop() or self._lanes.all_loading:
                    break
                # With a timeout, because a signal handler may not take the lock to notify.
                self._changed.wait(timeout=1.0)
        if self._failed:
            raise self._failed

    def count(self) -> int:
        """Count the days that are being loaded or recorded; safe in a signal handler."""
        return self._unrecorded

    def outcomes(self) -> list[Outcome]:
        """Wait for the outcomes of all days that were begun, and return them."""
        return [outcome.result() for outcome in self._outcomes]

    def _begin_waves(self) -> None:
        """Begin the waves that may begin now; the caller holds the lock."""
        while not self._stop() and not self._failed and (wave := self._lanes.next_wave()):
            experiment = wave[0].table.experiment
            now_s = time.monotonic() - self._began_s
            waited = self.waited.setdefault(experiment, Waited(0, now_s, now_s))
            waited.days += len(wave)
            waited.last_s = now_s
            self._verifiers.submit(self._run_wave, experiment, wave)

    def _run_wave(self, experiment: str, wave: list[TableDay]) -> None:
        """Verify a wave, and begin to load each of its days as soon as it is verified."""
        started = datetime.now(UTC)
        try:
            for found in self._verify(wave):
                with self._changed:
                    self._lanes.verified(found.day, (found, started))
                    self._begin_loads()
        except BaseException as exc:  # noqa: BLE001 - raised again by `run`, in the main thread
            self._failed = self._failed or exc
        finally:
            with self._changed:
                self._lanes.ended_wave(experiment)
                self._begin_loads()  # others may hold more now that nothing waits here
                self._changed.notify_all()

    def _begin_loads(self) -> None:
        """Begin the loads that may begin now; the caller holds the lock."""
        while not self._stop() and (found := self._lanes.next_load()):
            self._loaders.submit(self._run_load, *found)
        self._changed.notify_all()

    def _run_load(self, experiment: str, item: Item) -> None:
        try:
            if self._pace.wait(str(item[0].day.table.name)):
                self._begin(*item)
        finally:
            with self._changed:
                self._lanes.loaded(experiment)
                self._begin_loads()

    def _begin(self, found: Verified, started: datetime) -> None:
        with self._changed:
            self._unrecorded += 1
        outcome = self._load(found, started)
        self._outcomes.append(outcome)
        outcome.add_done_callback(self._recorded)

    def _recorded(self, _: object) -> None:
        with self._changed:
            self._unrecorded -= 1


class Pace:
    """Limits how fast the load jobs of each table begin, to stay within BigQuery's quota.

    Args:
        stop: returns whether no further job is to begin.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, stop: Callable[[], bool], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stop = stop
        self._clock = clock
        self._lock = threading.Lock()
        self._begun: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=PACE))

    def wait(self, table: str) -> bool:
        """Wait until a job of the table may begin; return False if the run is to end."""
        until_s = self._clock() + self.delay_s(table)
        while not self._stop() and (left_s := until_s - self._clock()) > 0:
            time.sleep(min(0.2, left_s))
        return not self._stop()

    def delay_s(self, table: str) -> float:
        """Reserve a table's next time slot; return in how many seconds it comes."""
        with self._lock:
            now, begun = self._clock(), self._begun[table]
            turn = max(now, begun[0] + PACE_S) if len(begun) == PACE else now
            # Reserved under the lock, so threads that ask at the same moment get different slots.
            begun.append(turn)
            return turn - now
