"""The table of all metrics: name, help, labels and the function that returns its values.

**Invariant:** names and labels are stable (docs/metrics.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jostler import build
from jostler.agent.observe.series import (
    UNFORESEEN,
    attempts,
    by_datatype,
    by_reason,
    disk_lack,
    failures,
    ignored,
    index_nulls,
    open_sums,
    scans,
    unlabelled,
    waiting,
)
from jostler.agent.rules import REASONS
from jostler.bundle import SealReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.agent.observe.series import Values
    from jostler.agent.observe.snapshot import Snapshot
    from jostler.agent.observe.status import Status


class Family(NamedTuple):
    """A counter or gauge."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Callable[[Status, Snapshot], Values]


BY_DATATYPE = ("datatype",)
BY_REASON = ("datatype", "reason")

COUNTERS = (
    Family(
        "jostler_files_arrived",
        "Files closed or renamed in, and those that only a scan brought.",
        BY_DATATYPE,
        by_datatype(lambda v: v.arrived),
    ),
    Family(
        "jostler_files_taken",
        "Files put into a bundle.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.taken),
    ),
    Family(
        "jostler_files_archived",
        "Files whose bundle and index are durable; counted after they were unlinked.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.archived),
    ),
    Family(
        "jostler_files_rejected",
        "Bad files stored as rows of rejected1.",
        BY_REASON,
        by_reason(REASONS, lambda v: v.tally.rejected),
    ),
    Family(
        "jostler_files_kept",
        "Bad files left in the spool.",
        BY_REASON,
        by_reason((*REASONS, UNFORESEEN), lambda v: v.tally.kept),
    ),
    Family(
        "jostler_files_deleted",
        "Bad files deleted without an upload.",
        BY_REASON,
        by_reason(REASONS, lambda v: v.tally.deleted),
    ),
    Family(
        "jostler_files_ignored",
        "Files that were closed or renamed in and that the agent does not take.",
        BY_REASON,
        ignored,
    ),
    Family(
        "jostler_files_given_up",
        "Files given up unsent because the disk lacked space; each has a row in rejected1.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.given_up),
    ),
    Family(
        "jostler_files_changed",
        "Files that changed while their bundle was being stored; they are taken again.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.changed),
    ),
    Family(
        "jostler_files_vanished",
        "Files that were gone before they could be read.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.vanished),
    ),
    Family(
        "jostler_file_bytes",
        "Bytes of files put into a bundle.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.file_bytes),
    ),
    Family(
        "jostler_object_bytes",
        "Bytes of data objects stored.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.object_bytes),
    ),
    Family(
        "jostler_index_nulls",
        "Null values of -index-field columns, because the source was missing or bad.",
        ("datatype", "column"),
        index_nulls,
    ),
    Family(
        "jostler_bundles_sealed",
        "Bundles sealed.",
        BY_REASON,
        by_reason(SealReason, lambda v: v.tally.sealed),
    ),
    Family(
        "jostler_bundles_stored",
        "Bundles made durable.",
        BY_DATATYPE,
        by_datatype(lambda v: v.tally.bundles),
    ),
    Family(
        "jostler_upload_attempts",
        "Steps of commits tried: requests to the bucket, writes to the journal.",
        BY_DATATYPE,
        attempts,
    ),
    Family(
        "jostler_upload_failures",
        "Steps of commits that failed and are tried again.",
        ("datatype", "class"),
        failures,
    ),
    Family(
        "jostler_inotify_overflows",
        "Overflows of the kernel's event queue.",
        (),
        unlabelled(lambda _, v: v.now.counts.overflows if v.now else 0),
    ),
    Family(
        "jostler_watches_lost",
        "Watched directories that went away, and watchers that died.",
        (),
        unlabelled(lambda _, v: v.now.counts.lost if v.now else 0),
    ),
    Family("jostler_scans", "Scans of the whole spool begun.", ("reason",), scans),
    Family(
        "jostler_scan_found_files",
        "Files found by scans.",
        (),
        unlabelled(lambda _, v: v.now.counts.found if v.now else 0),
    ),
    Family(
        "jostler_journal_replays",
        "Bundles of an earlier process that this one continued.",
        (),
        unlabelled(lambda _, v: v.tally.replayed),
    ),
)

GAUGES = (
    Family(
        "jostler_open_bundles",
        "Bundles that take rows.",
        BY_DATATYPE,
        by_datatype(open_sums(lambda _: 1)),
    ),
    Family(
        "jostler_open_bundle_bytes",
        "Bytes of memory that open bundles take.",
        BY_DATATYPE,
        by_datatype(open_sums(lambda held_bytes: held_bytes)),
    ),
    Family(
        "jostler_files_waiting",
        "Files on disk that no bundle has, by the last survey.",
        BY_DATATYPE,
        waiting("files"),
    ),
    Family(
        "jostler_oldest_waiting_timestamp_seconds",
        "When the oldest of them began to wait; 0 if none waits.",
        BY_DATATYPE,
        waiting("oldest_s"),
    ),
    Family(
        "jostler_last_arrival_timestamp_seconds",
        "When a file last arrived, good or bad; 0 before the first.",
        BY_DATATYPE,
        by_datatype(lambda v: v.last_arrival_s),
    ),
    Family(
        "jostler_last_success_timestamp_seconds",
        "When a bundle was last made durable; 0 before the first.",
        BY_DATATYPE,
        by_datatype(lambda v: v.last_success_s),
    ),
    Family(
        "jostler_spool_free_bytes",
        "Free bytes of the spool's file system.",
        (),
        unlabelled(lambda b, _: b.disk.free_bytes),
    ),
    Family(
        "jostler_spool_size_bytes",
        "Size of the spool's file system.",
        (),
        unlabelled(lambda b, _: b.disk.size_bytes),
    ),
    Family(
        "jostler_spool_min_free_bytes",
        "The value of -min-free-disk for this disk, in bytes.",
        (),
        unlabelled(lambda _, v: v.now.disk.limit_bytes if v.now else 0),
    ),
    Family(
        "jostler_disk_lack",
        "1 from when less than -min-free-disk is free, of bytes or inodes, until a quarter more is,"
        " else 0.",
        ("action",),
        disk_lack,
    ),
    Family(
        "jostler_spool_full_in_seconds",
        "Seconds until it is full, if it fills as in the last hour; +Inf if it does not fill.",
        (),
        unlabelled(lambda s, _: s.disk.full_in_s),
    ),
    Family(
        "jostler_queue_files",
        "Paths that were announced and are not examined yet.",
        (),
        unlabelled(lambda _, v: v.now.queue_files if v.now else 0),
    ),
    Family(
        "jostler_memory_held_bytes",
        "Bytes of bundles in memory, open or on their way.",
        (),
        unlabelled(lambda _, v: v.now.held_bytes if v.now else 0),
    ),
    Family(
        "jostler_memory_limit_bytes",
        "The value of -memory-max.",
        (),
        unlabelled(lambda b, _: b.config.memory_max),
    ),
    Family(
        "jostler_uploads_failing",
        "1 while commits, or the start's requests to the bucket, fail, else 0.",
        (),
        unlabelled(lambda b, _: float(bool(b.upload_stats.counts().failing_since_s))),
    ),
    Family(
        "jostler_uploads_failing_since_timestamp_seconds",
        "When they began to fail; 0 while they do not fail.",
        (),
        unlabelled(lambda b, _: b.upload_stats.counts().failing_since_s),
    ),
    Family(
        "jostler_undeletable_bundles",
        "Stored bundles with files that cannot be unlinked.",
        (),
        unlabelled(lambda _, v: v.now.undeletable_bundles if v.now else 0),
    ),
    Family(
        "jostler_heartbeat_timestamp_seconds",
        "When the agent's loop last turned.",
        (),
        unlabelled(lambda b, _: b.heartbeat_s()),
    ),
    Family(
        "jostler_start_timestamp_seconds",
        "When the agent was started.",
        (),
        unlabelled(lambda b, _: b.started_s),
    ),
    Family(
        "jostler_watch_degraded",
        "1 while scans stand in for events, else 0.",
        (),
        unlabelled(lambda _, v: float(bool(v.now and v.now.degraded))),
    ),
    Family(
        "jostler_build_info",
        "1; version, commit and version of the native module are in the labels.",
        ("version", "commit", "native"),
        lambda status, _: {(build.version(), build.commit(), status.native.version): 1},
    ),
)

BYTES_PER_BUNDLE, BYTES = "jostler_bytes_per_bundle", "object_bytes"
HISTOGRAMS: tuple[tuple[str, str, str], ...] = (
    (BYTES_PER_BUNDLE, "Bytes of each object stored; indexes are of datatype index1.", BYTES),
    ("jostler_upload_seconds", "Seconds of each request that stored a data object.", "upload_s"),
    (
        "jostler_close_to_stored_seconds",
        "Seconds from a file's last change on disk until it was durable.",
        "stored_s",
    ),
)
