"""When to ask whether a load job has ended.

**Invariant:** a job is first asked for when jobs like it usually end, but after `FIRST_S` at the
earliest and `MOST_S` at the latest; then soon again, and ever more rarely.

Pure, except for the durations that it remembers; its methods may be called from several threads.
"""

from __future__ import annotations

import threading

FIRST_S = 0.25
MOST_S = 8.0
GROWTH = 1.5
EARLY = 0.95
"""Before the usual time: a job that takes as long as usual is found soon after its end."""
AGAIN = 0.1
WEIGHT = 0.2


class Polling:
    """Remembers how long load jobs take, as a moving average."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._usual_s = 0.0

    def note(self, spent_s: float) -> None:
        """Note how long a job took, in seconds from its submission."""
        with self._lock:
            last = self._usual_s or spent_s
            self._usual_s = last + WEIGHT * (spent_s - last)

    def waits(self) -> tuple[float, float]:
        """Return the seconds to wait before the first question, and before the second one."""
        usual_s = self._usual_s
        first = min(MOST_S, max(FIRST_S, EARLY * usual_s))
        return first, min(MOST_S, max(FIRST_S, AGAIN * usual_s))
