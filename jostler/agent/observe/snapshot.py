"""Snapshots of the agent's state, which its thread makes once a second.

**Invariant:** a snapshot contains only immutable copies, never objects that the agent continues to
change, so any thread may read it at any time.  Times are Unix seconds, 0 for never; sizes bytes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.agent.observe.histogram import BUNDLE_BYTES, STORED_S, UPLOAD_S, Histogram
from jostler.agent.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler import bundle as bundles
    from jostler.agent.low_disk import DiskView
    from jostler.agent.observe.history import Minutes
    from jostler.agent.observe.shares import Shares
    from jostler.watchdir import Counts


class OpenBundleView(Struct, frozen=True, kw_only=True):
    """The state of an open bundle: one that still takes rows."""

    name: str
    datatype: str
    day: str
    files: int
    row_bytes: int
    held_bytes: int
    opened_s: float


def opened(bundle: bundles.OpenBundle) -> OpenBundleView:
    """Copy the state of an open bundle."""
    name = bundle.header.name
    return OpenBundleView(
        name=str(name),
        datatype=name.datatype,
        day=name.day.iso,
        files=bundle.files,
        row_bytes=bundle.size_bytes,
        held_bytes=bundle.held_bytes,
        # The bundle's age is monotonic, so that a step of the clock does not seal it; show
        # Unix time.
        opened_s=time.time() - (time.monotonic() - bundle.opened_s),
    )


class ClosedBundleView(Struct, frozen=True, kw_only=True):
    """The state of a bundle on its way to the bucket.

    After a restart, `reason` is empty and sizes are 0.
    """

    name: str
    datatype: str
    files: int
    row_bytes: int = 0
    object_bytes: int = 0
    sealed_s: float
    reason: str = ""


class StoredBundleView(Struct, frozen=True, kw_only=True):
    """The state of a stored bundle; `seconds` is the duration of its commit."""

    name: str
    url: str
    datatype: str
    files: int
    object_bytes: int
    at_s: float
    seconds: float


class Times(Struct, frozen=True):
    """The histograms of one datatype."""

    object_bytes: Histogram = field(default_factory=lambda: Histogram(BUNDLE_BYTES))
    upload_s: Histogram = field(default_factory=lambda: Histogram(UPLOAD_S))
    stored_s: Histogram = field(default_factory=lambda: Histogram(STORED_S))

    def copy(self) -> Times:
        """Return a copy of the current counts."""
        return Times(self.object_bytes.copy(), self.upload_s.copy(), self.stored_s.copy())


class Now(Struct, frozen=True, kw_only=True):
    """The current values of the agent's parts.

    Attributes:
        open: the open bundles, oldest first.
        held_bytes: the memory that all bundles take.
        queue_files: the number of reported paths that are not yet processed.
        overdue_files: the number of files that are old enough to be archived and could not be.
        undeletable_bundles: the number of stored bundles with files that cannot be unlinked.
        holds_back: why no file is read, in words; empty if files are read.
        scanning: whether a scan is under way.
        scanned: whether the first scan is over.
        source: where events come from: `inotify`, `watchdog` or `scan`.
        degraded: why scans stand in for events, in words.
        counts: the watcher's counts.
        disk: the state of the free space of the spool's disk.
    """

    open: tuple[OpenBundleView, ...]
    held_bytes: int
    queue_files: int
    overdue_files: int
    undeletable_bundles: int
    holds_back: str
    scanning: bool
    scanned: bool
    source: str
    degraded: str
    counts: Counts
    disk: DiskView


class Snapshot(Struct, frozen=True, kw_only=True):
    """The whole state at the time `at_s`.

    Attributes:
        now: the current values; None until the loop, or the wait before it, has turned once.
        tally: the counts.
        arrived: the number of files that arrived in the spool, by datatype.
        last_arrival_s: the time of the last arrival, by datatype.
        closed: the bundles on their way to the bucket, oldest first.
        stored: the last stored bundles, newest first, by datatype.
        times: the histograms, by datatype.
        last_success_s: when a bundle was last stored, by datatype.
        overflow_s: when the kernel last dropped events.
        minutes: the last hours minute by minute.
        shares: the shares of good and bad files, by datatype.
    """

    at_s: float
    now: Now | None = None
    tally: Tally = field(default_factory=Tally)
    arrived: Mapping[str, int] = field(default_factory=dict)
    last_arrival_s: Mapping[str, float] = field(default_factory=dict)
    closed: tuple[ClosedBundleView, ...] = ()
    stored: Mapping[str, tuple[StoredBundleView, ...]] = field(default_factory=dict)
    times: Mapping[str, Times] = field(default_factory=dict)
    last_success_s: Mapping[str, float] = field(default_factory=dict)
    overflow_s: float = 0.0
    minutes: Minutes
    shares: Mapping[str, Shares] = field(default_factory=dict)
