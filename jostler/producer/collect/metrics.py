"""The metrics of a collector: one table, in Prometheus' text format.

**Invariant:** names and labels are stable (docs/collect.md).  Every class of failure has a series
from the beginning, so that `rate` sees the first failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector as Metrics

from jostler import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jostler.producer.collect.collector import Collector
    from jostler.producer.collect.runner import Runner


class Family(NamedTuple):
    """A counter or gauge."""

    name: str
    help: str
    value: Callable[[Runner], float]


COUNTERS = (
    Family("jostler_feed_attempts", "Fetches begun.", lambda r: r.tally.attempts),
    Family("jostler_feed_saved", "Files written into the spool.", lambda r: r.tally.saved),
    Family(
        "jostler_feed_unchanged",
        "Answers 304, and bodies that equal the last one.",
        lambda r: r.tally.unchanged,
    ),
    Family(
        "jostler_feed_received_bytes",
        "Bytes of bodies, as they were sent.",
        lambda r: r.tally.received_bytes,
    ),
)
GAUGES = (
    Family(
        "jostler_feed_last_success_timestamp_seconds",
        "When an answer was last saved, or was unchanged; 0 before the first.",
        lambda r: r.tally.success_s,
    ),
    Family("jostler_feed_every_seconds", "The time between two fetches.", lambda r: r.feed.every_s),
)
FAILURES = ("jostler_feed_failures", "Fetches that saved nothing, by class.")
SECONDS = ("jostler_feed_seconds", "Seconds of fetches, until the file was durable.")
PROCESS = (
    (
        "jostler_collect_paused",
        "1 while nothing is fetched because the spool has no room, else 0.",
        lambda c: float(c.disk.space.lacks),
    ),
    (
        "jostler_collect_configuration_refused",
        "1 while the configuration on disk is wrong and an earlier one runs, else 0.",
        lambda c: float(bool(c.refused)),
    ),
    (
        "jostler_collect_start_timestamp_seconds",
        "When the collector was started.",
        lambda c: c.started_s,
    ),
)


class CollectorMetrics(Metrics):
    """Builds the metrics from the current counts at each scrape."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        runners = list(self._collector.runners.values())
        for family, rows in ((CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES)):
            for row in rows:
                metric = family(row.name, row.help, labels=("feed",))
                for runner in runners:
                    metric.add_metric([runner.feed.id], row.value(runner))
                yield metric
        failures = CounterMetricFamily(*FAILURES, labels=("feed", "class"))
        seconds = SummaryMetricFamily(*SECONDS, labels=("feed",))
        for runner in runners:
            name, tally = runner.feed.id, runner.tally
            for failure, count in tally.failures.items():
                failures.add_metric([name, str(failure)], count)
            ended = tally.saved + tally.unchanged + sum(tally.failures.values())
            seconds.add_metric([name], count_value=ended, sum_value=tally.seconds)
        yield failures
        yield seconds
        for name, text, value in PROCESS:
            yield GaugeMetricFamily(name, text, value=value(self._collector))
        built = GaugeMetricFamily(
            "jostler_collect_build_info",
            "1; version and commit are in the labels.",
            labels=("version", "commit"),
        )
        built.add_metric([build.version(), build.commit()], 1)
        yield built


def registry(collector: Collector) -> CollectorRegistry:
    """Return a registry of the collector's metrics and the process's."""
    made = CollectorRegistry()
    made.register(CollectorMetrics(collector))
    ProcessCollector(registry=made)
    return made
