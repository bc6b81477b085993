"""The paths of a collector's server and their answers.

**Invariant:** /healthz reports only whether the event loop turns, not the state of feeds or spool:
a restart neither makes a feed's server answer nor frees a disk.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jostler.producer.collect.status import document
from jostler.web.replies import Metrics, as_json, probe
from jostler.web.server import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from jostler.producer.collect.collector import Collector
    from jostler.web.server import Routes

STILL_MAX_S = 60.0
"""How long the event loop may stand still before it counts as stuck."""


def routes(collector: Collector) -> Routes:
    """Return the routes for one collector."""
    return {
        "/": lambda _: _page(collector),
        "/healthz": lambda _: _healthz(lambda: collector.turned_s),
        "/readyz": lambda _: probe(ok=True, text="feeds are fetched"),
        "/metrics": Metrics(lambda: _registry(collector)).answer,
        "/status.json": lambda _: as_json(document(collector)),
    }


def _healthz(turned_s: Callable[[], float]) -> Reply:
    still_s = time.monotonic() - turned_s()
    return probe(ok=still_s < STILL_MAX_S, text=f"the loop turned {still_s:.0f} s ago")


def _page(collector: Collector) -> Reply:
    from jostler.producer.collect import page  # noqa: PLC0415 - nobody pays who does not look

    body = page.render(document(collector))
    return Reply(body, page.CONTENT_TYPE, policy=page.CONTENT_SECURITY_POLICY)


def _registry(collector: Collector) -> CollectorRegistry:
    from jostler.producer.collect import metrics  # noqa: PLC0415 - as above

    return metrics.registry(collector)
