"""The metrics of a run for Prometheus: a file for the node exporter, or a push to a gateway.

**Invariant:** the numbers come from the run's outcomes, and nothing is counted twice.  A failure to
write metrics is reported and does not change the exit status.  Metrics of m-lab's autoloader keep
their names.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client import Counter as Total
from prometheus_client.exposition import generate_latest, pushadd_to_gateway

from jostler.archive.compact import DAMAGED, FAILED, FOREIGN, TORN
from loader.bigquery.record import VERIFIED
from loader.notify.outbox import Told
from loader.plan.due import ENDS, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loader.bigquery.record import Outcome
    from loader.compacting import Report

BUCKETS = (10, 21.5, 46.4, 100, 215, 464, 1000, 2150, 4640, 10_000, 21_500, 46_400)
"""The buckets of the Go autoloader's `autoloader_duration`, in seconds."""
TIMEOUT_S = 30.0
_DATATYPE = ("experiment", "datatype")
_SUCCESS = "jostler_load_success_timestamp_seconds"
_SUCCESS_RE = re.compile(rf"^{_SUCCESS} (\S+)$", re.MULTILINE)
_HELP = {
    "days": "Days of the last run that were not simply up to date, by what became of them.",
    "rows": "Rows of the days that the last run loaded, by what became of them.",
    "read": "Bundles of the days of the last run, by how they were verified.",
    "sums": "Days of the last run that were loaded and whose rows do not add up.",
    "found": "Differences of index, bundles and BigQuery that the last comparison found.",
    "told": "Events of --notify and of assets, by state: delivered, waiting, or expired.",
    "ended": "When the last run ended, in seconds since 1970.",
    "spent": "How long the last run took, in seconds.",
    "waited": "How long the experiment's first day waited in the last run to begin, in seconds.",
    "success": "When the last run ended in which no day failed, in seconds since 1970.",
    "newest": "The newest day of the last run with this status, in seconds since 1970.",
    "took": "How long the datatype's days took in the last run, in seconds.",
    "jobs": "Days of the last run that had a load job.",
    "merges": "Bundles that the last compaction has made of others.",
    "merged": "Bundles that the last compaction has replaced by merged ones.",
    "left": "Bundles that the last compaction has left alone, by the reason.",
    "merged_rows": "Rows of the bundles that the last compaction has merged, by outcome.",
    "moved": "Bytes of the objects that the last compaction has removed and stored.",
}
_GOOD = frozenset({Status.SUCCESS, Status.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a finished run.

    Attributes:
        outcomes: the outcomes of all days that were not up to date.
        tables: experiment and datatype of all tables that were checked.
        period: the value of --period.
        well: whether every day and datatype is as it should be.
        ended_s: when the run ended, Unix time.
        spent_s: how long the run took.
        told: what came of its notifications.
        waited_s: how long the first day of each experiment waited until it began.
    """

    outcomes: Sequence[Outcome]
    tables: Iterable[tuple[str, str]]
    period: str
    well: bool
    ended_s: float
    spent_s: float
    told: Told = field(default_factory=Told)
    waited_s: Mapping[str, float] = field(default_factory=dict)


def of_load(facts: Facts, last_success_s: float | None) -> CollectorRegistry:
    """Return the metrics of a load.

    Args:
        facts: the facts of the run.
        last_success_s: when an earlier run succeeded, for a run that did not; None to leave it out.
    """
    registry = CollectorRegistry()
    days = Gauge("jostler_load_days", _HELP["days"], (*_DATATYPE, "status"), registry=registry)
    rows = Gauge("jostler_load_rows", _HELP["rows"], (*_DATATYPE, "outcome"), registry=registry)
    read = Gauge("jostler_load_bundles", _HELP["read"], (*_DATATYPE, "verified"), registry=registry)
    differ = Gauge("jostler_load_count_differences", _HELP["sums"], _DATATYPE, registry=registry)
    by_table: dict[tuple[str, str], list[Outcome]] = {pair: [] for pair in facts.tables}
    for outcome in facts.outcomes:
        by_table.setdefault(_pair(outcome), []).append(outcome)
    for pair, outcomes in by_table.items():
        found = Counter(outcome.status for outcome in outcomes)
        for status in ENDS:
            days.labels(*pair, status).set(found[status])
        for name, number in _rows(outcomes).items():
            rows.labels(*pair, name).set(number)
        for name in VERIFIED:
            read.labels(*pair, name).set(sum(getattr(outcome, name) for outcome in outcomes))
        differ.labels(*pair).set(sum(not _adds_up(outcome) for outcome in outcomes))
    told = Gauge("jostler_load_notifications", _HELP["told"], ("state",), registry=registry)
    for state, number in asdict(facts.told).items():
        told.labels(state).set(number)
    waited = Gauge("jostler_load_wait_seconds", _HELP["waited"], ("experiment",), registry=registry)
    for experiment, seconds in facts.waited_s.items():
        waited.labels(experiment).set(seconds)
    _go_names(facts, by_table, registry)
    _one(registry, "jostler_load_run_timestamp_seconds", _HELP["ended"], facts.ended_s)
    _one(registry, "jostler_load_run_seconds", _HELP["spent"], facts.spent_s)
    success_s = facts.ended_s if facts.well else last_success_s
    if success_s is not None:
        _one(registry, _SUCCESS, _HELP["success"], success_s)
    return registry


def of_comparison(differences: int) -> CollectorRegistry:
    """Return the metrics of a comparison of index, bundles and BigQuery."""
    registry = CollectorRegistry()
    differ = Gauge("jostler_load_count_differences", _HELP["found"], _DATATYPE, registry=registry)
    differ.labels("all", "all").set(differences)
    return registry


def of_compaction(report: Report, ended_s: float, spent_s: float) -> CollectorRegistry:
    """Return the metrics of a compaction.

    Args:
        report: what it has done.
        ended_s: when it ended, Unix time.
        spent_s: how long it took.
    """
    registry = CollectorRegistry()
    done = report.done
    _one(registry, "jostler_compact_merges", _HELP["merges"], len(done))
    _one(registry, "jostler_compact_bundles", _HELP["merged"], sum(one.inputs for one in done))
    left = Gauge("jostler_compact_left", _HELP["left"], ("reason",), registry=registry)
    found = Counter(one.reason for one in report.left)
    for reason in (FOREIGN, DAMAGED, TORN, FAILED):
        left.labels(reason).set(found[reason])
    rows = Gauge("jostler_compact_rows", _HELP["merged_rows"], ("outcome",), registry=registry)
    rows.labels("kept").set(sum(one.rows for one in done))
    rows.labels("repeated").set(sum(one.repeats for one in done))
    rows.labels("collapsed").set(sum(one.collapsed for one in done))
    moved = Gauge("jostler_compact_bytes", _HELP["moved"], ("objects",), registry=registry)
    moved.labels("removed").set(sum(one.bytes_before for one in done))
    moved.labels("stored").set(sum(one.bytes_after for one in done))
    _one(registry, "jostler_compact_run_timestamp_seconds", _HELP["ended"], ended_s)
    _one(registry, "jostler_compact_run_seconds", _HELP["spent"], spent_s)
    return registry


def last_success_s(url: str) -> float | None:
    """Return the last success from the metrics file; 0 without file, None for a push gateway.

    A gateway keeps a metric that is not pushed again.
    """
    if not url.startswith("file://"):
        return None
    try:
        found = _SUCCESS_RE.search(_path(url).read_text(encoding="utf-8"))
    except OSError:
        found = None
    return float(found[1]) if found else 0.0


def write(url: str, registry: CollectorRegistry, **group: str) -> None:
    """Write metrics to `file:///…` or to a push gateway, in both cases atomically.

    Args:
        url: the URL of file or gateway.
        registry: the metrics.
        group: labels that separate runs of different kinds in the gateway, such as `job`.

    Raises:
        OSError: the metrics cannot be written.
    """
    if not url.startswith("file://"):
        job = group.pop("job")
        pushadd_to_gateway(url, job, registry, grouping_key=group, timeout=TIMEOUT_S)
        return
    path = _path(url)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_bytes(generate_latest(registry))
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _path(url: str) -> Path:
    return Path(unquote(url.removeprefix("file://")))


def _pair(outcome: Outcome) -> tuple[str, str]:
    return outcome.day.table.experiment, outcome.day.table.sources[0].datatype


def _adds_up(outcome: Outcome) -> bool:
    accounted = outcome.loaded + outcome.rejected + outcome.repeated
    return outcome.status is not Status.SUCCESS or outcome.rows == accounted


def _rows(outcomes: Iterable[Outcome]) -> dict[str, int]:
    sums = {"read": 0, "loaded": 0, "rejected": 0, "repeated": 0}
    for outcome in outcomes:
        sums["read"] += outcome.rows
        sums["loaded"] += outcome.loaded
        sums["rejected"] += outcome.rejected
        sums["repeated"] += outcome.repeated
    return sums


def _one(registry: CollectorRegistry, name: str, about: str, value: float) -> None:
    Gauge(name, about, registry=registry).set(value)


def _go_names(
    facts: Facts, by_table: dict[tuple[str, str], list[Outcome]], registry: CollectorRegistry
) -> None:
    """Add the Go autoloader's metrics, whose statuses are OK and error."""
    labels = (*_DATATYPE, "period", "status")
    dates = Gauge("autoloader_loaded_dates", _HELP["newest"], labels, registry=registry)
    spent = Histogram(
        "autoloader_duration", _HELP["took"], labels, buckets=BUCKETS, registry=registry
    )
    labels = (*_DATATYPE, "operation", "status")
    jobs = Total("autoloader_bigquery_operations", _HELP["jobs"], labels, registry=registry)
    for pair, outcomes in by_table.items():
        newest: dict[str, float] = defaultdict(float)
        for outcome in outcomes:
            word = "OK" if outcome.status in _GOOD else "error"
            day_s = datetime.combine(outcome.day.date, datetime.min.time(), UTC).timestamp()
            newest[word] = max(newest[word], day_s)
            if outcome.attempt > outcome.day.attempt:  # else the attempt is of an earlier run
                jobs.labels(*pair, "load", word).inc()
        for word, day_s in newest.items():
            dates.labels(*pair, facts.period, word).set(day_s)
        if outcomes:
            word = "error" if newest.get("error") else "OK"
            spent.labels(*pair, facts.period, word).observe(sum(o.spent_s for o in outcomes))
