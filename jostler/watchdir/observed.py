"""Arrivals by the watchdog library, where inotify cannot be used directly.

**Invariant:** scans every few seconds find all files; watchdog's events only report them sooner,
because the library reports neither an overflow nor a directory that it could not watch.  Its
threads only put reports into a queue; the thread that owns the watcher reads them.
"""

from __future__ import annotations

import os
import select
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from watchdog.events import (
    DirCreatedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)

from jostler.watchdir.arrivals import How, ScanReason
from jostler.watchdir.gatherer import Gatherer
from jostler.watchdir.waker import Waker

if TYPE_CHECKING:
    from collections.abc import Callable

    from watchdog.observers.api import BaseObserver

    from jostler.watchdir.arrivals import Pace
    from jostler.watchdir.walk import Wanted

# With FileClosedEvent alone, the library would also remove renames from the kernel's event mask.
EVENTS: list[type[FileSystemEvent]] = [
    DirCreatedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileMovedEvent,
]
JOIN_S = 5.0


class Report(NamedTuple):
    """A report of one of the library's threads: a file, or a new directory if `how` is None."""

    path: str
    how: How | None


class Reports:
    """A bounded queue between the library's threads and ours."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: deque[Report] = deque()
        self._missed = False
        self.bell = Waker()

    def put(self, path: str, how: How | None) -> None:
        """Queue a report, or record that there was no room."""
        if len(self._queue) < self._limit:
            # deque.append and popleft need no lock (docs.python.org, collections.deque).
            self._queue.append(Report(path, how))
        else:
            self._missed = True
        self.bell.ring()

    def miss(self) -> None:
        """Record that an event was lost."""
        self._missed = True
        self.bell.ring()

    def take(self) -> tuple[list[Report], bool]:
        """Empty the queue; also return whether an event was lost since the last call."""
        # First this: a report that comes after it rings again, one that came before is taken now.
        self.bell.hush()
        missed, self._missed = self._missed, False
        return [self._queue.popleft() for _ in range(len(self._queue))], missed


class _Handler(FileSystemEventHandler):
    """Queues the events below one root, with paths below the root as it was given."""

    def __init__(self, root: str, wanted: Wanted, reports: Reports) -> None:
        self._root = root
        self._real = os.path.realpath(root)
        self._wanted = wanted
        self._reports = reports

    def dispatch(self, event: FileSystemEvent) -> None:
        """Queue one event; an exception here would end the library's thread for good."""
        try:
            self._report(event)
        except Exception:  # noqa: BLE001 - see above; a scan covers the event
            self._reports.miss()

    def _report(self, event: FileSystemEvent) -> None:
        path = os.fsdecode(event.dest_path or event.src_path)
        below = self._below(path)
        if below is None or not self._wanted.below(below):
            return
        if event.is_directory:
            self._reports.put(f"{self._root}/{below}", None)
        elif self._wanted.file(os.path.basename(path)):  # noqa: PTH119 - paths are text here
            # A creation may be a rename from elsewhere, or a file that is still being written.
            how = How.SCAN if isinstance(event, FileCreatedEvent) else How.EVENT
            self._reports.put(f"{self._root}/{below}", how)

    def _below(self, path: str) -> str | None:
        """Return a path's part below the root; some systems report paths with links resolved."""
        for root in (self._root, self._real):
            if path.startswith(f"{root}/"):
                return path.removeprefix(f"{root}/")
        return None


class WatchdogArrivals(Gatherer):
    """Arrivals by one of watchdog's observers.

    Args:
        why: why inotify is not used, in words.
        observer: creates an observer; each is used once, and a dead one is replaced.
    """

    source = "watchdog"

    def __init__(
        self,
        roots: tuple[str, ...],
        wanted: Wanted,
        pace: Pace,
        *,
        why: str,
        observer: Callable[[], BaseObserver],
    ) -> None:
        super().__init__(roots, wanted, pace)
        self._why = why
        self._make_observer = observer
        self._observer: BaseObserver | None = None
        self._reports = Reports(pace.buffer_limit)
        self._held.callback(self._reports.bell.close)
        self._held.callback(self._stop)
        self._poller.register(self._reports.bell, select.POLLIN)
        self._roots.changes()
        self._start()
        self.scan(ScanReason.START)

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words."""
        return self._why if self._observer else f"{self._why}; watchdog does not start"

    def _watches(self) -> int:
        return len(self._observer.emitters) if self._observer else 0

    def _gather(self) -> None:
        reports, missed = self._reports.take()
        for path, how in reports:
            if how is None:
                self._take_in(path)
            elif how is How.EVENT:
                self._take_closed(path)
            else:
                self._fit(fits=self._inbox.met(path))
        if missed:
            self._fit(fits=False)

    def _look(self) -> None:
        changes = self._roots.changes()
        died = self._observer is not None and not _is_alive(self._observer)
        if not (changes or died or self._observer is None):
            return
        if died or any(change.was for change in changes):
            self._lost += 1
            self._notices.warning("watch.lost", observer_died=died, next="scan")
        self._stop()
        self._start()
        if self._observer is not None:
            self.scan(ScanReason.LOST_WATCH if self._lost else ScanReason.APPEARED)

    def _start(self) -> None:
        observer = self._make_observer()
        for root in self._roots.paths:
            if self._roots.exists(root):
                handler = _Handler(root, self._wanted, self._reports)
                observer.schedule(handler, root, recursive=True, event_filter=EVENTS)
        try:
            observer.start()
        except OSError as exc:
            # Those of its threads that did start hold watches.
            observer.unschedule_all()
            self._notices.warning("watch.degraded", error=str(exc), next="scans")
        else:
            self._observer = observer

    def _stop(self) -> None:
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join(JOIN_S)


def _is_alive(observer: BaseObserver) -> bool:
    return observer.is_alive() and all(emitter.is_alive() for emitter in observer.emitters)
