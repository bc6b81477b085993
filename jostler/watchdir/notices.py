"""What a watcher tells the operator.

**Invariant:** the event is constant and its facts are fields; an event that repeats is logged once
and then at most once a minute, with the number of times it happened since.  It decides nothing.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

EVERY_S = 60.0

_log = logging.getLogger("jostler.watchdir")


class Notices:
    """Warnings of one watcher."""

    def __init__(self) -> None:
        self._said_s: dict[str, float] = {}
        self._times: Counter[str] = Counter()

    def warn(self, event: str, **fields: object) -> None:
        """Log a warning, unless the same event was logged less than a minute ago."""
        now_s = time.monotonic()
        self._times[event] += 1
        if now_s - self._said_s.get(event, -EVERY_S) < EVERY_S:
            return
        self._said_s[event] = now_s
        times = self._times.pop(event)
        _log.warning(event, extra={"fields": {**fields, "times": times}})
