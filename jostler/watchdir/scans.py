"""Scans of everything: at most one runs, and at most one is requested.

**Invariant:** for every call of `ask`, a scan begins after the call; several calls before it begins
share it.  A scan advances only when `take` is called.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from jostler.watchdir.arrivals import ScanReason

REST = 10
"""The pause before a repeated scan, at least, as a multiple of the last scan's duration."""


class Scans:
    """The running scan and the requested one.

    Args:
        begin: starts a walk over all roots; it yields paths, and None where it may be paused.
    """

    def __init__(self, begin: Callable[[], Generator[str | None]]) -> None:
        self._begin = begin
        self._running: Generator[str | None] | None = None
        self._asked: ScanReason | None = None
        self._spent_s = 0.0
        self._next_s = 0.0
        self.begun: Counter[ScanReason] = Counter()

    @property
    def scanning(self) -> bool:
        """Whether a scan is running or asked for."""
        return self._running is not None or self._asked is not None

    def ask(self, reason: ScanReason) -> None:
        """Request a scan that begins after this call."""
        if self._asked is None:
            self._asked = reason

    def next_s(self, every_s: float) -> float:
        """Return when a scan repeated every `every_s` is due; slow scans repeat less often."""
        return self._next_s + every_s

    def take(self, most: int) -> list[str]:
        """Advance the scan until there are `most` files, or it pauses or ends."""
        running = self._run()
        if running is None or most <= 0:
            return []
        started_s = time.monotonic()
        files: list[str] = []
        for path in running:
            if path is None:
                break
            files.append(path)
            if len(files) == most:
                break
        else:
            self._running = None
        now_s = time.monotonic()
        # Only the time spent here counts: a caller may leave a scan alone for minutes.
        self._spent_s += now_s - started_s
        # On a slow network file system a scan may take minutes; this way scans use a tenth of the
        # time.
        self._next_s = now_s + (REST - 1) * self._spent_s
        return files

    def _run(self) -> Generator[str | None] | None:
        if self._running is None and self._asked is not None:
            self.begun[self._asked] += 1
            # A request from now on needs another scan: this one may have passed the place already.
            self._asked = None
            self._spent_s = 0.0
            self._running = self._begin()
        return self._running

    def close(self) -> None:
        """Close the directory that the running scan has open."""
        if self._running is not None:
            self._running.close()
        self._running = self._asked = None
