"""The table of all metrics: name, help, labels and the function that returns its values.

**Invariant:** names and labels are stable (docs/metrics.md).  Every possible series exists from the
start.  No label's value comes from a file's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from jostler import build
from jostler.agent.intake import REASONS
from jostler.agent.observe.snapshot import Times
from jostler.bundle import SealReason
from jostler.format.names import INDEX, REJECTED
from jostler.watchdir import ScanReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from jostler.agent.observe.snapshot import Snapshot
    from jostler.agent.observe.status import Status

Values = dict[tuple[str, ...], float]
FAILURES = (
    *("AuthError", "ConflictError", "OSError", "QuotaError", "RefusedError", "TransientError"),
    "Unforeseen",
)
UNFORESEEN = "unforeseen"
"""The reason why a file is kept that no judge gives."""
IGNORED = ("extension", "not-regular")
NO_DATATYPE = ""
"""The requests to the bucket at the start, which concern all datatypes at once."""


class Family(NamedTuple):
    """A counter or gauge."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Callable[[Status, Snapshot], Values]


def _by_datatype(
    pick: Callable[[Snapshot], Mapping[str, float]],
) -> Callable[[Status, Snapshot], Values]:
    def values(status: Status, snapshot: Snapshot) -> Values:
        found = pick(snapshot)
        return {(name,): found.get(name, 0) for name in _names(status)}

    return values


def _by_reason(
    reasons: Iterable[str], pick: Callable[[Snapshot], Mapping[tuple[str, str], float]]
) -> Callable[[Status, Snapshot], Values]:
    def values(status: Status, snapshot: Snapshot) -> Values:
        made: Values = {(name, str(r)): 0 for name in _names(status) for r in reasons}
        return made | {key: value for key, value in pick(snapshot).items() if key[1]}

    return values


def _attempts(status: Status, _snapshot: Snapshot) -> Values:
    found = status.troubles.fared().attempts
    return {(name,): found.get(name, 0) for name in (*_names(status), NO_DATATYPE)}


def _failures(status: Status, _snapshot: Snapshot) -> Values:
    found = status.troubles.fared().failures
    made: Values = {(name, kind): 0 for name in (*_names(status), NO_DATATYPE) for kind in FAILURES}
    return made | dict(found)


def _one(pick: Callable[[Status, Snapshot], float]) -> Callable[[Status, Snapshot], Values]:
    return lambda status, snapshot: {(): pick(status, snapshot)}


def _names(status: Status) -> list[str]:
    return [*(datatype.name for datatype in status.config.datatypes), REJECTED]


def _open_sums(pick: Callable[[int], int]) -> Callable[[Snapshot], Mapping[str, float]]:
    def sums(snapshot: Snapshot) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for one in snapshot.now.open if snapshot.now else ():
            found[one.datatype] = found.get(one.datatype, 0) + pick(one.held_bytes)
        return found

    return sums


def _scans(_status: Status, snapshot: Snapshot) -> Values:
    scans = snapshot.now.counts.scans if snapshot.now else {}
    return {(str(reason),): scans.get(reason, 0) for reason in ScanReason}


def _ignored(status: Status, snapshot: Snapshot) -> Values:
    made: Values = {(name, reason): 0 for name in _names(status) for reason in IGNORED}
    prefix = f"{status.config.spool}/"
    for (root, reason), times in (snapshot.now.counts.ignored if snapshot.now else {}).items():
        key = (root.removeprefix(prefix), reason)
        if key in made:
            made[key] = times
    return made


def _waiting(pick: str) -> Callable[[Status, Snapshot], Values]:
    def values(status: Status, _view: Snapshot) -> Values:
        found = status.disk.waiting
        return {(n,): getattr(found[n], pick) if n in found else 0 for n in _names(status)}

    return values


BY_DATATYPE = ("datatype",)
BY_REASON = ("datatype", "reason")

COUNTERS = (
    Family(
        "jostler_files_arrived",
        "Files closed or renamed in, and those that only a scan brought.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.arrived),
    ),
    Family(
        "jostler_files_taken",
        "Files put into a bundle.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.taken),
    ),
    Family(
        "jostler_files_archived",
        "Files whose bundle and index are durable; counted after they were unlinked.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.archived),
    ),
    Family(
        "jostler_files_rejected",
        "Bad files stored as rows of rejected1.",
        BY_REASON,
        _by_reason(REASONS, lambda v: v.tally.rejected),
    ),
    Family(
        "jostler_files_kept",
        "Bad files left where they are.",
        BY_REASON,
        _by_reason((*REASONS, UNFORESEEN), lambda v: v.tally.kept),
    ),
    Family(
        "jostler_files_deleted",
        "Bad files deleted without an upload.",
        BY_REASON,
        _by_reason(REASONS, lambda v: v.tally.deleted),
    ),
    Family(
        "jostler_files_ignored",
        "Files that were closed or renamed in and are none to take.",
        BY_REASON,
        _ignored,
    ),
    Family(
        "jostler_files_changed",
        "Files that changed while their bundle was on its way; taken again.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.changed),
    ),
    Family(
        "jostler_files_vanished",
        "Files that were gone before they could be read.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.vanished),
    ),
    Family(
        "jostler_file_bytes",
        "Bytes of files put into a bundle.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.file_bytes),
    ),
    Family(
        "jostler_object_bytes",
        "Bytes of data objects stored.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.object_bytes),
    ),
    Family(
        "jostler_bundles_sealed",
        "Bundles closed.",
        BY_REASON,
        _by_reason(SealReason, lambda v: v.tally.sealed),
    ),
    Family(
        "jostler_bundles_stored",
        "Bundles made durable.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.tally.bundles),
    ),
    Family(
        "jostler_upload_attempts",
        "Steps of commits tried: requests to the bucket, writes to the journal.",
        BY_DATATYPE,
        _attempts,
    ),
    Family(
        "jostler_upload_failures",
        "Of these, those that failed and are tried again.",
        ("datatype", "class"),
        _failures,
    ),
    Family(
        "jostler_inotify_overflows",
        "Times that the kernel's queue of events ran over.",
        (),
        _one(lambda _, v: v.now.counts.overflows if v.now else 0),
    ),
    Family(
        "jostler_watches_lost",
        "Watched directories that went away, and watchers that died.",
        (),
        _one(lambda _, v: v.now.counts.lost if v.now else 0),
    ),
    Family("jostler_scans", "Scans of the whole spool begun.", ("reason",), _scans),
    Family(
        "jostler_scan_found_files",
        "Files met by scans.",
        (),
        _one(lambda _, v: v.now.counts.found if v.now else 0),
    ),
    Family(
        "jostler_journal_replays",
        "Bundles of an earlier process that were gone on with.",
        (),
        _one(lambda _, v: v.tally.replayed),
    ),
)

GAUGES = (
    Family(
        "jostler_open_bundles",
        "Bundles that take rows.",
        BY_DATATYPE,
        _by_datatype(_open_sums(lambda _: 1)),
    ),
    Family(
        "jostler_open_bundle_bytes",
        "Bytes of memory that open bundles take.",
        BY_DATATYPE,
        _by_datatype(_open_sums(lambda held_bytes: held_bytes)),
    ),
    Family(
        "jostler_files_waiting",
        "Files on disk that no bundle has, by the last survey.",
        BY_DATATYPE,
        _waiting("files"),
    ),
    Family(
        "jostler_oldest_waiting_timestamp_seconds",
        "Since when the oldest of them waits; 0 when none does.",
        BY_DATATYPE,
        _waiting("oldest_s"),
    ),
    Family(
        "jostler_last_arrival_timestamp_seconds",
        "When a file last arrived, good or bad; 0 before the first.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.last_arrival_s),
    ),
    Family(
        "jostler_last_success_timestamp_seconds",
        "When a bundle was last made durable; 0 before the first.",
        BY_DATATYPE,
        _by_datatype(lambda v: v.last_success_s),
    ),
    Family(
        "jostler_spool_free_bytes",
        "Free bytes of the spool's file system.",
        (),
        _one(lambda b, _: b.disk.free_bytes),
    ),
    Family(
        "jostler_spool_size_bytes",
        "Size of the spool's file system.",
        (),
        _one(lambda b, _: b.disk.size_bytes),
    ),
    Family(
        "jostler_spool_full_in_seconds",
        "When it is full, if it goes on as in the last hour; +Inf while it does not fill.",
        (),
        _one(lambda s, _: s.disk.full_in_s),
    ),
    Family(
        "jostler_queue_files",
        "Paths that were announced and not yet looked at.",
        (),
        _one(lambda _, v: v.now.queue_files if v.now else 0),
    ),
    Family(
        "jostler_memory_held_bytes",
        "Bytes of bundles in memory, open or on their way.",
        (),
        _one(lambda _, v: v.now.held_bytes if v.now else 0),
    ),
    Family(
        "jostler_memory_limit_bytes",
        "What -memory-max allows.",
        (),
        _one(lambda b, _: b.config.memory_max),
    ),
    Family(
        "jostler_uploads_failing",
        "1 while commits, or the start's requests to the bucket, fail, else 0.",
        (),
        _one(lambda b, _: float(bool(b.troubles.fared().failing_since_s))),
    ),
    Family(
        "jostler_uploads_failing_since_timestamp_seconds",
        "Since when they fail; 0 while they do not.",
        (),
        _one(lambda b, _: b.troubles.fared().failing_since_s),
    ),
    Family(
        "jostler_undeletable_bundles",
        "Stored bundles with files that cannot be unlinked.",
        (),
        _one(lambda _, v: v.now.undeletable_bundles if v.now else 0),
    ),
    Family(
        "jostler_heartbeat_timestamp_seconds",
        "When the agent's loop last turned.",
        (),
        _one(lambda b, _: b.heartbeat_s()),
    ),
    Family(
        "jostler_start_timestamp_seconds",
        "When the agent was started.",
        (),
        _one(lambda b, _: b.started_s),
    ),
    Family(
        "jostler_watch_degraded",
        "1 while scans stand in for events, else 0.",
        (),
        _one(lambda _, v: float(bool(v.now and v.now.degraded))),
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


class AgentCollector(Collector):
    """Builds the metrics from the current status at each scrape."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        status, snapshot = self._status, self._status.snapshot
        for family, rows in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
            for row in rows:
                metric = family(row.name, row.help, labels=row.labels)
                for labels, value in row.values(status, snapshot).items():
                    metric.add_metric(labels, value)
                yield metric
        for name, text, which in HISTOGRAMS:
            histogram = HistogramMetricFamily(name, text, labels=BY_DATATYPE)
            for datatype in [*_names(status), *([INDEX] if which == BYTES else [])]:
                times = snapshot.times.get(datatype) or Times()
                values = getattr(times, which)
                histogram.add_metric([datatype], values.buckets(), values.sum)
            yield histogram


def registry(status: Status) -> CollectorRegistry:
    """Return a registry of the agent's metrics and the process's."""
    made = CollectorRegistry()
    made.register(AgentCollector(status))
    ProcessCollector(registry=made)
    return made


def exposition(made: CollectorRegistry) -> bytes:
    """Write all metrics in Prometheus' text format, version 0.0.4."""
    return generate_latest(made)
