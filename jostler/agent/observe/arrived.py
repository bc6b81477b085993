"""Counts of files that arrived in the spool, and the time of the last arrival, by datatype.

**Invariant:** a file is counted when its event arrives, or when a scan finds a file without event;
never when it is read, which an outage may delay for days.  Pure: the current time is an argument.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Arrived:
    """The counts of arrivals; used only by the agent's thread.

    Args:
        spool: the experiment's directory; each datatype has a root below it.

    Attributes:
        files: the number of arrived files by datatype; only grows.
        last_s: when the last one was noticed, Unix time, by datatype.
    """

    def __init__(self, spool: str) -> None:
        self._prefix = f"{spool}/"
        self._met: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._unheld: Counter[str] = Counter()
        self._expected: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.last_s: dict[str, float] = {}

    def met(self, path: str, files: int = 1) -> None:
        """Count files that a scan found and that were archived or rejected; `path` is of one."""
        begin = len(self._prefix)
        self._met[path[begin : path.index("/", begin)]] += files

    def note(self, closed: Mapping[str, int], unheld: Mapping[str, int], now_s: float) -> None:
        """Update the counts from the watcher's counts since it was opened.

        Args:
            closed: files closed or renamed in, by root.
            unheld: those of them that were left to a scan, by root.
            now_s: Unix time.
        """
        for root, times in closed.items():
            datatype = root.removeprefix(self._prefix)
            self._add(datatype, times - self._closed[root], now_s)
            self._closed[root] = times
            self._expected[datatype] += unheld.get(root, 0) - self._unheld[root]
            self._unheld[root] = unheld.get(root, 0)
        for datatype, files in self._met.items():
            # Some were already counted by their events, when the watcher left them to a scan.
            known = min(files, self._expected[datatype])
            self._expected[datatype] -= known
            self._add(datatype, files - known, now_s)
        self._met.clear()

    def _add(self, datatype: str, files: int, now_s: float) -> None:
        if files > 0:
            self.files[datatype] += files
            self.last_s[datatype] = now_s
