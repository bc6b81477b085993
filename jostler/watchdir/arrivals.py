"""The interface of a watcher: arrivals, reasons of scans, counts.

**Invariant:** an arrival is only a path; it says nothing about the file's content or age.  A path
may be reported several times, and is reported at least once after the file's last change.  Nothing
here uses disk, clock or threads.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class How(StrEnum):
    """How a file was found."""

    EVENT = "event"
    """It was closed after writing, or renamed in."""
    SCAN = "scan"
    """A scan found it; it may still be open for writing."""


class Arrival(NamedTuple):
    """A regular file with a wanted name.

    `path` is absolute, below a root as that was given; bytes that are not UTF-8 are surrogates
    (`os.fsdecode`).
    """

    path: str
    how: How


class ScanReason(StrEnum):
    """Why the whole tree is scanned."""

    START = "start"
    """The watcher has just started."""
    APPEARED = "appeared"
    """A root that did not exist was created."""
    OVERFLOW = "overflow"
    """The kernel dropped events."""
    LOST_WATCH = "lost_watch"
    """A root was removed, moved, replaced or unmounted and is back, or a watcher died."""
    BACKLOG = "backlog"
    """The buffer was full, so events were dropped."""
    UNWATCHED = "unwatched"
    """Part of the tree gives no events, so scans take their place."""
    PERIODIC = "periodic"
    """The caller's regular scan for files whose events were missed."""
    SETTLING = "settling"
    """The caller waits for files that were too young when a scan found them."""


class Pace(Struct, frozen=True, kw_only=True):
    """How often a watcher looks, and how much it keeps.

    Attributes:
        buffer_limit: the maximum number of buffered paths; each takes about 250 bytes.
        scan_every_s: the pause between scans where events are not reliable.
        look_every_s: the least pause between checks of the roots themselves.
        hint_after_s: a file that was created and not closed for so long is reported as if a scan
            had found it.
    """

    buffer_limit: int = 20_000
    scan_every_s: float = 5.0
    look_every_s: float = 1.0
    hint_after_s: float = 1.0


class Counts(Struct, frozen=True, kw_only=True):
    """A watcher's counts since it was opened; `watches` and `unwatched` are current values.

    Attributes:
        events: wanted files that the system reported as closed or renamed in.
        dropped: those of `events` that were left to a scan because the buffer was full.
        closed: by root, how often wanted files were closed or renamed in, without repetitions
            while the path was buffered.
        unheld: by root, those of `closed` that were left to a scan because the buffer was full.
        found: wanted files found by scans, of everything or of a new directory.
        overflows: how often the kernel's queue overflowed.
        lost: roots that disappeared, and watchers that died.
        scans: scans of everything begun, by reason.
        ignored: unwanted files that were closed or renamed in, by root and reason: `extension`, or
            `not-regular` for links, pipes and the like.  Hidden names are not counted, because
            services use them for files that they will rename.
        watches: the number of watched directories.
        unwatched: directories that could not be watched or read in the last scan.
    """

    events: int
    dropped: int
    closed: Mapping[str, int]
    unheld: Mapping[str, int]
    found: int
    overflows: int
    lost: int
    scans: Mapping[ScanReason, int]
    ignored: Mapping[tuple[str, str], int]
    watches: int
    unwatched: int


class Arrivals(Protocol):
    """A source of arrivals: the files that may have arrived below some roots.

    One thread owns it; other threads may only call `wake`.
    """

    @property
    def scanning(self) -> bool:
        """Whether a scan is running or asked for: `take` has more to give."""
        ...

    @property
    def waiting(self) -> int:
        """How many paths are buffered."""
        ...

    @property
    def counts(self) -> Counts:
        """The counts so far."""
        ...

    @property
    def source(self) -> str:
        """Where events come from: `inotify`, `watchdog` or `scan`."""
        ...

    @property
    def degraded(self) -> str:
        """Why scans stand in for events, in words; empty when events cover everything."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Return when `take` may have arrivals, when `wake` was called, or after `timeout_s`.

        It returns at once while paths are buffered or a scan runs; a caller that does not want to
        take them yet uses `pause`.
        """
        ...

    def pause(self, timeout_s: float) -> None:
        """Return when `wake` was called or after `timeout_s`, whatever arrives meanwhile.

        The kernel's queue is read meanwhile, so that it does not overflow.
        """
        ...

    def wake(self) -> None:
        """End a running `wait` or `pause`, or the next one; safe in a signal handler."""
        ...

    def take(self, most: int) -> list[Arrival]:
        """Return at most `most` arrivals: first those of events, then those of the running scan.

        The kernel's queue is read first, even if `most` is 0.  An empty list while `scanning` means
        only that the scan has not found a wanted file yet.
        """
        ...

    def scan(self, reason: ScanReason) -> None:
        """Request a scan of everything.

        If a scan runs, the requested one follows it.  Several requests before a scan begins are
        served by one scan, with the reason of the first request.
        """
        ...

    def close(self) -> None:
        """Release watches, files and threads; may be called again."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
