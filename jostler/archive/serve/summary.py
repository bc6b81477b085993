"""The sums of the last weeks by day, datatype and node, kept in memory for the overview pages.

**Invariant:** asking never waits for the bucket.  One thread reads the days anew: the two latest
ones each minute, older ones each quarter of an hour.  A day that cannot be read keeps its last sums
and is named as a problem.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.archive.catalogue import Query, Tally
from jostler.errors import JostlerError
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from jostler.archive.catalogue import Catalogue, NodeDay

log = Log("jostler.serve")

DAYS = 35
FRESH_DAYS = 2
FRESH_S = 60.0
OLD_S = 15 * 60.0
TICK_S = 1.0
OF_BIGQUERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Sum:
    """What one datatype has on one day, of one node or of all.

    Attributes:
        files: the number of files.
        size_bytes: bytes of these files.
        nodes: the number of nodes that stored them.
        rejected: the number of files of this datatype that were rejected.
        last: the latest instant of the files; None without files.
    """

    files: int = 0
    size_bytes: int = 0
    nodes: int = 0
    rejected: int = 0
    last: datetime | None = None


NONE = Sum()


@dataclass(frozen=True, slots=True)
class DaySums:
    """The sums of one day.

    Attributes:
        day: the day of the folders.
        by_node: by datatype, then by node.
        by_datatype: by datatype, over all nodes.
        problems: what could not be read, one sentence each.
        read_at: when it was read, in UTC.
    """

    day: date
    by_node: dict[str, dict[str, Sum]] = field(default_factory=dict)
    by_datatype: dict[str, Sum] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    read_at: datetime | None = None


def sum_day(catalogue: Catalogue, day: date) -> DaySums:
    """Read the sums of one day.

    Raises:
        JostlerError: bucket or BigQuery cannot be reached.
    """
    tally = Tally()
    query = Query(first_day=day, last_day=day)
    by_node: dict[str, dict[str, Sum]] = {}
    with closing(catalogue.days(query, tally)) as days:  # type: ignore[type-var]
        for one in days:
            _add(by_node, one.datatype, one.node, _of(one))
    rejected: Counter[tuple[str, str]] = Counter()
    with closing(catalogue.rejects(query, tally)) as rejects:  # type: ignore[type-var]
        for reject in rejects:
            rejected[reject.datatype, reject.node] += reject.files
    for (datatype, node), files in rejected.items():
        _add(by_node, datatype, node, Sum(rejected=files))
    by_datatype = {datatype: total(nodes.values()) for datatype, nodes in by_node.items()}
    return DaySums(day, by_node, by_datatype, tuple(tally.problems), datetime.now(UTC))


def _add(sums: dict[str, dict[str, Sum]], datatype: str, node: str, more: Sum) -> None:
    nodes = sums.setdefault(datatype, {})
    known = nodes.get(node)
    nodes[node] = total((known, more)) if known else more


def _of(one: NodeDay) -> Sum:
    return Sum(one.files, one.size_bytes, 1, 0, one.last)


def total(sums: Collection[Sum]) -> Sum:
    """Return the sum of several at once."""
    return Sum(
        sum(one.files for one in sums),
        sum(one.size_bytes for one in sums),
        sum(one.nodes for one in sums),
        sum(one.rejected for one in sums),
        max((one.last for one in sums if one.last), default=None),
    )


class Summary:
    """The sums of the last `DAYS` days.

    Args:
        catalogue: where to read them.
        today: returns the current day in UTC.
        loaded: returns for a range of days which (datatype, day) BigQuery has; None if that is
            not known.  It raises JostlerError when BigQuery cannot be asked.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        today: Callable[[], date],
        loaded: Callable[[date, date], set[tuple[str, date]]] | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._today = today
        self._ask_loaded = loaded
        self._sums: dict[date, DaySums] = {}
        self._due_s: dict[date, float] = {}
        self._loaded: frozenset[tuple[str, date]] | None = None
        self._loaded_due_s = 0.0
        self._failures: dict[str, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="summary", daemon=True)

    def start(self) -> None:
        """Start the thread that reads."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; a request that is under way ends by itself."""
        self._ended.set()

    @property
    def window(self) -> list[date]:
        """The days that are shown, the earliest first."""
        today = self._today()
        return [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]

    def of(self, day: date) -> DaySums:
        """Return the sums of a day; empty if it was not read yet."""
        return self._sums.get(day) or DaySums(day)

    @property
    def datatypes(self) -> list[str]:
        """The datatypes that have files or rejected files on one of the days, sorted."""
        return sorted({name for day in self.window for name in self.of(day).by_datatype})

    @property
    def unread(self) -> int:
        """How many of the days were never read yet."""
        return sum(day not in self._sums for day in self.window)

    @property
    def problems(self) -> list[str]:
        """What could not be read, one sentence each."""
        of_days = (problem for day in self.window for problem in self.of(day).problems)
        return [*self._failures.values(), *of_days]

    def is_loaded(self, datatype: str, day: date) -> bool | None:
        """Return whether BigQuery has a day of a datatype; None if that is not known."""
        loaded = self._loaded
        return None if loaded is None else (datatype, day) in loaded

    def refresh(self, now_s: float) -> bool:
        """Read what is due, one day at most, the latest first; return whether anything was.

        Args:
            now_s: monotonic seconds.
        """
        window = self.window
        for old in self._sums.keys() - set(window):
            del self._sums[old]
        for day in reversed(window):
            if now_s < self._due_s.get(day, 0.0):
                continue
            fresh = day >= window[-FRESH_DAYS]
            self._due_s[day] = now_s + (FRESH_S if fresh else OLD_S)
            self._ask(str(day), lambda day=day: self._read(day))  # type: ignore[misc]
            return True
        if self._ask_loaded and now_s >= self._loaded_due_s:
            self._loaded_due_s = now_s + OF_BIGQUERY_S
            self._ask("BigQuery", lambda: self._read_loaded(window))
            return True
        return False

    def _read(self, day: date) -> None:
        self._sums[day] = sum_day(self._catalogue, day)

    def _read_loaded(self, window: list[date]) -> None:
        assert self._ask_loaded
        self._loaded = frozenset(self._ask_loaded(window[0], window[-1]))

    def _ask(self, what: str, read: Callable[[], None]) -> None:
        try:
            read()
        except JostlerError as exc:
            self._failures[what] = f"{what}: {exc}" + (f" ({exc.hint})" if exc.hint else "")
        except Exception as exc:  # one day must not end the thread that reads all
            log.exception("serve.summary_failed", of=what)
            self._failures[what] = f"{what}: {type(exc).__name__}, see the log"
        else:
            self._failures.pop(what, None)

    def _run(self) -> None:
        while not self._ended.is_set():
            if not self.refresh(time.monotonic()):
                self._ended.wait(TICK_S)
