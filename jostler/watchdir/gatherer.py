"""The common part of all watchers: buffer arrivals, scan, wait, wake.

**Invariant:** each event that a source may have lost is covered by a scan that begins after the
loss.  A subclass adds a source of events; `ScanArrivals` has none and works on every system.
"""

from __future__ import annotations

import math
import select
import stat
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack
from os import lstat
from typing import TYPE_CHECKING, Self

from jostler.log import RateLimitedLog
from jostler.watchdir.arrivals import Arrival, Counts, How, Pace, ScanReason
from jostler.watchdir.inbox import Inbox
from jostler.watchdir.roots import Roots
from jostler.watchdir.scans import Scans
from jostler.watchdir.waker import Waker
from jostler.watchdir.walk import walk

if TYPE_CHECKING:
    from collections.abc import Generator

    from jostler.watchdir.walk import Wanted

PAUSE_S = 0.05
"""How often `pause` reads the kernel's queue, which holds 16,384 events by default (inotify(7))."""


class Gatherer(ABC):
    """The part of `Arrivals` that does not depend on where events come from.

    Attributes:
        source: where events come from, as a value of `-watch`.
        _held: the resources that `close` releases.
        _looks: whether a wait ends when the roots are to be checked.  Else they are checked when it
            ends for another reason.
    """

    source = "scan"

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace) -> None:
        self._roots = Roots(roots)
        self._wanted = wanted
        self._pace = pace
        self._notices = RateLimitedLog("jostler.watchdir")
        self._inbox = Inbox(pace.buffer_limit, pace.hint_after_s)
        self._scans = Scans(self._read_everything)
        self._look_s = -math.inf
        self._looks = True
        self._unwatched = self._failing = self._events = self._dropped = 0
        self._found = self._overflows = self._lost = 0
        self._ignored: Counter[tuple[str, str]] = Counter()
        self._closed: Counter[str] = Counter()
        self._unheld: Counter[str] = Counter()
        self._held = ExitStack()
        self._waker = Waker()
        self._held.callback(self._waker.close)
        self._poller = select.poll()
        self._poller.register(self._waker, select.POLLIN)
        self._bell = select.poll()
        self._bell.register(self._waker, select.POLLIN)

    @property
    @abstractmethod
    def degraded(self) -> str:
        """Why scans stand in for events, in words; empty when events cover everything."""

    @abstractmethod
    def _gather(self) -> None:
        """Read all events that the source has now, without waiting."""

    @abstractmethod
    def _look(self) -> None:
        """Check the roots; called every `look_every_s`."""

    def _enter(self, path: str) -> bool:
        """Watch a directory before it is read; return False if it is gone."""
        del path
        return True

    def _watches(self) -> int:
        """Count the watches held."""
        return 0

    @property
    def scanning(self) -> bool:
        """Whether a scan is running or asked for: `take` has more to give."""
        return self._scans.scanning

    @property
    def waiting(self) -> int:
        """How many paths are buffered."""
        return len(self._inbox)

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        return Counts(
            events=self._events,
            dropped=self._dropped,
            closed=dict(self._closed),
            unheld=dict(self._unheld),
            found=self._found,
            overflows=self._overflows,
            lost=self._lost,
            scans=dict(self._scans.begun),
            ignored=dict(self._ignored),
            watches=self._watches(),
            unwatched=self._unwatched,
        )

    def wait(self, timeout_s: float) -> None:
        """Return when `take` may have arrivals, when `wake` was called, or after `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            now_s = self._turn()
            if self._inbox or self.scanning or now_s >= deadline_s:
                self._waker.hush()
                return
            self._poller.poll(_whole_ms(min(deadline_s, self._due_s()) - now_s))
            if self._waker.hush():
                return

    def pause(self, timeout_s: float) -> None:
        """Return when `wake` was called or after `timeout_s`, whatever arrives meanwhile."""
        deadline_s = time.monotonic() + timeout_s
        while not self._waker.hush():
            now_s = self._turn()
            if now_s >= deadline_s:
                return
            # Only the waker is polled: nobody takes arrivals now, and one that waits in the kernel
            # would end the poll at once, again and again.
            self._bell.poll(_whole_ms(min(deadline_s - now_s, PAUSE_S)))

    def wake(self) -> None:
        """End a running `wait` or `pause`, or the next one; safe in a signal handler."""
        self._waker.ring()

    def take(self, most: int) -> list[Arrival]:
        """Return at most `most` arrivals: first those of events, then those of the running scan."""
        self._turn()
        # Files of events first: they are complete, and one that a scan found may be half written.
        taken: list[Arrival] = []
        while self._inbox and len(taken) < most:
            arrival = self._inbox.pop()
            if self._is_file(arrival.path):  # unlike readdir, an event does not give the type
                taken.append(arrival)
        if len(taken) < most:
            met = self._scans.take(most - len(taken))
            self._found += len(met)
            taken.extend(Arrival(path, How.SCAN) for path in met)
        return taken

    def scan(self, reason: ScanReason) -> None:
        """Request a scan of everything that begins after this call."""
        self._scans.ask(reason)

    def close(self) -> None:
        """Release watches, files and threads; may be called again."""
        self._scans.close()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _turn(self) -> float:
        """Do what is due now; return the current time."""
        now_s = time.monotonic()
        if now_s >= self._look_s:
            self._look_s = now_s + self._pace.look_every_s
            self._look()
        self._gather()  # also when nobody takes: the kernel drops events once its queue is full
        self._fit(fits=self._inbox.release(now_s))
        if self.degraded and not self.scanning and now_s >= self._scan_s():
            self.scan(ScanReason.UNWATCHED)
        return time.monotonic()

    def _scan_s(self) -> float:
        return self._scans.next_s(self._pace.scan_every_s)

    def _due_s(self) -> float:
        """Return when `_turn` has work that no readable descriptor announces."""
        hint_s = self._inbox.hint_due_s()
        scan_s = self._scan_s() if self.degraded else math.inf
        look_s = self._look_s if self._looks else math.inf
        return min(look_s, scan_s, math.inf if hint_s is None else hint_s)

    def _take_closed(self, path: str) -> None:
        """Buffer and count a file that was closed or renamed in; it may be read much later."""
        self._events += 1
        root = self._roots.of(path)
        if not self._inbox.is_closed(path):
            self._closed[root] += 1
        if not self._inbox.closed(path):
            self._unheld[root] += 1
            self._fit(fits=False)

    def _fit(self, *, fits: bool) -> None:
        """Request a scan if the buffer had no room."""
        if not fits:
            self._dropped += 1
            self.scan(ScanReason.BACKLOG)

    def _take_in(self, top: str) -> None:
        """Watch and read a new directory and everything below it, at once."""
        # It may have been filled before its watch existed (inotify(7), "Limitations and caveats").
        # So `walk` calls `enter`, which adds the watch, before it reads a directory.
        for path in walk(top, self._wanted, enter=self._enter, failed=self._not_read):
            if path is not None:
                self._found += 1
                self._fit(fits=self._inbox.met(path))

    def _is_file(self, path: str) -> bool:
        try:
            regular = stat.S_ISREG(lstat(path).st_mode)
        except OSError:
            return False  # it is gone, or its directory cannot be read until a later scan
        if not regular:
            self._ignore(path, "not-regular")
        return regular

    def _ignore(self, path: str, reason: str) -> None:
        """Count an event of an unwanted file."""
        self._ignored[self._roots.of(path), reason] += 1

    def _read_everything(self) -> Generator[str | None]:
        """Walk all roots for a scan, and add missing watches on the way."""
        self._failing = 0
        for root in self._roots.paths:
            yield from walk(
                root,
                self._wanted,
                enter=self._enter,
                failed=self._not_read,
                follow_top=True,
            )
        # Only a complete scan may lower the count: a directory that failed may lie in the part to
        # come.
        self._unwatched = self._failing

    def _not_read(self, path: str, error: OSError) -> None:
        self._uncovered("directory.unread", path, error)

    def _uncovered(self, event: str, path: str, error: OSError) -> None:
        """Count a directory that could not be watched, or not be read by this scan."""
        self._failing += 1
        self._unwatched = max(self._unwatched, self._failing)  # the scan has seen only a part
        self._notices.warning(event, path=path, error=str(error), next="scans")


class ScanArrivals(Gatherer):
    """Arrivals found only by scans.

    Args:
        why: why there are no events, in words.
    """

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace, why: str) -> None:
        super().__init__(roots, wanted, pace)
        self._why = why
        self._looks = False
        self.scan(ScanReason.START)

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words."""
        return self._why

    def _gather(self) -> None:
        """Do nothing: there are no events."""

    def _look(self) -> None:
        """Do nothing: the next scan reads the roots that exist then."""


def _whole_ms(seconds: float) -> int:
    # poll(2) takes whole milliseconds; rounded down, the last one would be spent in a busy loop.
    return max(0, math.ceil(seconds * 1000))
