"""Request scans of the spool: regularly, and for files that were too young in an earlier scan.

**Invariant:** a file that a scan left for later is found by another scan soon after it is old
enough; no scan is requested while another one runs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from jostler.watchdir import ScanReason
from jostler.words import duration

if TYPE_CHECKING:
    from jostler.agent.left import LeftFiles
    from jostler.config import Config
    from jostler.watchdir import Arrivals

SETTLING_MIN_S = 1.0
OF_AGE_SHARE = 0.05  # of -missed-age between scans for files that came of age


class Rescans:
    """Belongs to the agent's thread; times are monotonic seconds.

    Args:
        config: with the ages and the interval.
        arrivals: that scan.
    """

    def __init__(self, config: Config, arrivals: Arrivals) -> None:
        self._config = config
        self._arrivals = arrivals
        self._periodic_s = 0.0
        self._settling_s: float | None = None
        self._next_of_age_s = 0.0

    def begin(self, now_s: float) -> None:
        """Record that the first scan was requested."""
        self._periodic_s = now_s + self._wait_s()

    def ask_due(self, now_s: float, left: LeftFiles) -> None:
        """Request the scans that are due."""
        if now_s >= self._periodic_s:
            self._periodic_s = now_s + self._wait_s()
            self._arrivals.scan(ScanReason.PERIODIC)
        self._meet_again(now_s, left)
        if left.waiting and self._settling_s is None and not self._arrivals.scanning:
            self._settling_s = now_s + max(SETTLING_MIN_S, self._config.settle_age_s)
        if self._settling_s is not None and now_s >= self._settling_s:
            self._settling_s = None
            # Reset when the scan is requested, not when it ends: the scan counts anew the files
            # that it leaves.
            left.waiting = 0
            self._arrivals.scan(ScanReason.SETTLING)

    def _meet_again(self, now_s: float, left: LeftFiles) -> None:
        """Rescan when an invalid file found by a scan reaches -missed-age, to reject it."""
        due_s = left.of_age_s
        if due_s is None or now_s < max(due_s, self._next_of_age_s) or self._arrivals.scanning:
            return
        left.of_age_s = None
        self._next_of_age_s = now_s + max(SETTLING_MIN_S, OF_AGE_SHARE * self._config.missed_age_s)
        self._arrivals.scan(ScanReason.SETTLING)

    def next(self, now_s: float) -> str:
        """Say in words when the next scan comes."""
        if self._arrivals.scanning:
            return "which is under way"
        due_s = min(self._periodic_s, self._settling_s or self._periodic_s)
        return f"in {duration(max(0.0, due_s - now_s))}"

    def _wait_s(self) -> float:
        """Return a random pause, so that agents started together do not scan at the same time."""
        return self._config.missed_interval_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter
