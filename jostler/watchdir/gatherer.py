"""What every watcher does: hold what arrived, scan, wait and be woken.

**Invariant:** whatever an event source may lose is covered by a scan that begins after the loss.
A subclass adds a source of events; `ScanArrivals` has none, and always works.
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
"""How often `pause` reads the kernel's queue: 16,384 events in that time do not run it over."""


class Gatherer(ABC):
    """The part of `Arrivals` that does not depend on where events come from.

    Attributes:
        source: where events come from, in a word of `-watch`.
        _held: what `close` closes.
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
        """Take in what the source of events has now, without waiting."""

    @abstractmethod
    def _look(self) -> None:
        """Look at the roots; called every `look_every_s`."""

    def _enter(self, path: str) -> bool:
        """Watch a directory that is about to be read; False when there is none."""
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
        """What was seen so far."""
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
        """Return when something may be there, when `wake` was called, or after `timeout_s`."""
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
            self._bell.poll(_whole_ms(min(deadline_s - now_s, PAUSE_S)))

    def wake(self) -> None:
        """End a running `wait` or `pause`, or the next one; safe in a signal handler."""
        self._waker.ring()

    def take(self, most: int) -> list[Arrival]:
        """Hand over at most `most`: events first, then what the running scan meets next."""
        self._turn()
        taken: list[Arrival] = []
        while self._inbox and len(taken) < most:
            arrival = self._inbox.pop()
            if self._is_file(arrival.path):  # an event does not say; readdir does
                taken.append(arrival)
        if len(taken) < most:
            met = self._scans.take(most - len(taken))
            self._found += len(met)
            taken.extend(Arrival(path, How.SCAN) for path in met)
        return taken

    def scan(self, reason: ScanReason) -> None:
        """Ask for a scan of everything, to begin after this call."""
        self._scans.ask(reason)

    def close(self) -> None:
        """Let go of watches, files and threads; harmless when repeated."""
        self._scans.close()
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _turn(self) -> float:
        """Do what is due now and tell the time."""
        now_s = time.monotonic()
        if now_s >= self._look_s:
            self._look_s = now_s + self._pace.look_every_s
            self._look()
        self._gather()
        self._fit(fits=self._inbox.release(now_s))
        if self.degraded and not self.scanning and now_s >= self._scan_s():
            self.scan(ScanReason.UNWATCHED)
        return time.monotonic()

    def _scan_s(self) -> float:
        return self._scans.next_s(self._pace.scan_every_s)

    def _due_s(self) -> float:
        """Tell when `_turn` has something to do that no descriptor tells."""
        hint_s = self._inbox.hint_due_s()
        scan_s = self._scan_s() if self.degraded else math.inf
        return min(self._look_s, scan_s, math.inf if hint_s is None else hint_s)

    def _take_closed(self, path: str) -> None:
        """Hold a file that was closed or renamed in, and count it, now: it may not be read soon."""
        self._events += 1
        root = self._roots.of(path)
        if not self._inbox.is_closed(path):
            self._closed[root] += 1
        if not self._inbox.closed(path):
            self._unheld[root] += 1
            self._fit(fits=False)

    def _fit(self, *, fits: bool) -> None:
        """Leave to a scan what the buffer had no room for."""
        if not fits:
            self._dropped += 1
            self.scan(ScanReason.BACKLOG)

    def _take_in(self, top: str) -> None:
        """Watch and read a directory that is new, and all below it, at once."""
        for path in walk(top, self._wanted, enter=self._enter, failed=self._not_read):
            if path is not None:
                self._found += 1
                self._fit(fits=self._inbox.met(path))

    def _is_file(self, path: str) -> bool:
        try:
            regular = stat.S_ISREG(lstat(path).st_mode)
        except OSError:
            return False  # gone again, or out of reach until a scan can read its directory
        if not regular:
            self._ignore(path, "not-regular")
        return regular

    def _ignore(self, path: str, reason: str) -> None:
        """Count a file that was announced and that nobody wants."""
        self._ignored[self._roots.of(path), reason] += 1

    def _read_everything(self) -> Generator[str | None]:
        """Walk all roots: a scan.  Watches that are missing are added on the way."""
        self._failing = 0
        for root in self._roots.paths:
            yield from walk(
                root,
                self._wanted,
                enter=self._enter,
                failed=self._not_read,
                follow_top=True,
            )
        self._unwatched = self._failing

    def _not_read(self, path: str, error: OSError) -> None:
        self._uncovered("directory.unread", path, error)

    def _uncovered(self, event: str, path: str, error: OSError) -> None:
        """Count a directory that events or this scan do not cover."""
        self._failing += 1
        self._unwatched = max(self._unwatched, self._failing)  # the running scan knows a part
        self._notices.warning(event, path=path, error=str(error), next="scans")


class ScanArrivals(Gatherer):
    """Arrivals without events.

    Args:
        why: why there are no events, in words.
    """

    def __init__(self, roots: tuple[str, ...], wanted: Wanted, pace: Pace, why: str) -> None:
        super().__init__(roots, wanted, pace)
        self._why = why
        self.scan(ScanReason.START)

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words."""
        return self._why

    def _gather(self) -> None:
        """There is no source."""

    def _look(self) -> None:
        """A root that comes or goes is simply read, or not, by the next scan."""


def _whole_ms(seconds: float) -> int:
    return max(0, math.ceil(seconds * 1000))
