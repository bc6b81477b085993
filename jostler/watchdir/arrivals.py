"""The words of watching: what an arrival is, why a scan runs, what a watcher promises.

**Invariant:** an arrival says *where* something may be, never what it holds or how old it is; a
path may be reported twice, and is reported at least once after its last change.  Nothing here
touches the disk, the clock or a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class How(StrEnum):
    """How much is known about a file that was found."""

    EVENT = "event"
    """It was closed after writing, or renamed in."""
    SCAN = "scan"
    """It was merely met, and may still be open for writing."""


class Arrival(NamedTuple):
    """A regular file with a wanted name.

    `path` is absolute, below a root as that was given; bytes that are not UTF-8 are surrogates
    (`os.fsdecode`).
    """

    path: str
    how: How


class ScanReason(StrEnum):
    """Why the whole tree is read."""

    START = "start"
    """Nothing is known yet."""
    APPEARED = "appeared"
    """A root that did not exist is there."""
    OVERFLOW = "overflow"
    """The kernel dropped events."""
    LOST_WATCH = "lost_watch"
    """A root was removed, moved, replaced or unmounted and is back, or a watcher died."""
    BACKLOG = "backlog"
    """The buffer was full, so events were dropped."""
    UNWATCHED = "unwatched"
    """Part of the tree gives no events, so scans take their place."""
    PERIODIC = "periodic"
    """The caller's regular look for what was missed."""
    SETTLING = "settling"
    """The caller waits for files that were too young when they were met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a watcher looks, and how much it keeps.

    Attributes:
        buffer_limit: paths held at most; about 250 bytes each.
        scan_every_s: pause between scans where events cannot be relied on.
        look_every_s: pause between looks at the roots themselves.
        hint_after_s: a file created and not closed for so long is reported as merely met.
    """

    buffer_limit: int = 20_000
    scan_every_s: float = 5.0
    look_every_s: float = 1.0
    hint_after_s: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a watcher has seen since it was opened; `watches` and `unwatched` are of now.

    Attributes:
        events: wanted files reported by the system as closed or renamed in.
        dropped: of these, those that found the buffer full and were left to a scan.
        closed: by root, wanted files that were closed or renamed in, each time but for those that
            were in line already.
        unheld: by root, those of `closed` that found the buffer full: a scan will meet them.
        found: wanted files met by scans, of everything or of a new directory.
        overflows: times that the kernel's queue ran over.
        lost: roots that went away, and watchers that died.
        scans: scans of everything begun, by reason.
        ignored: files closed or renamed in that nobody wants, by root and reason: `extension`, or
            `not-regular` for links, pipes and the like.  Hidden names are not counted: under
            those, services write what they are about to rename.
        watches: directories watched.
        unwatched: directories that gave no watch, or could not be read, in the last scan.
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
    """The files that may have arrived below some roots.

    One thread owns it; only `wake` may be called from elsewhere.
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
        """What was seen so far."""
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
        """Return when something may be there, when `wake` was called, or after `timeout_s`.

        What is already buffered, or a scan that is not over, counts as something: a caller that
        will not take it uses `pause`.
        """
        ...

    def pause(self, timeout_s: float) -> None:
        """Return when `wake` was called or after `timeout_s`, whatever arrives meanwhile.

        The kernel's queue is read all the while, so it does not run over.
        """
        ...

    def wake(self) -> None:
        """End a running `wait` or `pause`, or the next one; safe in a signal handler."""
        ...

    def take(self, most: int) -> list[Arrival]:
        """Hand over at most `most`: events first, then what the running scan meets next.

        The kernel's queue is read first, even when `most` is 0.  An empty list while `scanning`
        means only that the scan has not met a wanted file yet.
        """
        ...

    def scan(self, reason: ScanReason) -> None:
        """Ask for a scan of everything.

        One asked for while another runs is run after it; any number asked for before it begins
        are one, under the first one's reason.
        """
        ...

    def close(self) -> None:
        """Let go of watches, files and threads; harmless when repeated."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...
