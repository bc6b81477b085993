"""The exposition: the metrics of the table in `metrics`, in Prometheus' text format.

**Invariant:** a scrape reads one snapshot, so its values belong together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from jostler.agent.observe.metrics import BY_DATATYPE, BYTES, COUNTERS, GAUGES, HISTOGRAMS
from jostler.agent.observe.series import datatypes
from jostler.agent.observe.snapshot import Times
from jostler.format.names import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.agent.observe.status import Status


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
            for datatype in [*datatypes(status), *([INDEX] if which == BYTES else [])]:
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
