"""Replies that several servers give: probes, JSON, and metrics for Prometheus.

**Invariant:** the registry of metrics is made at the first scrape, because it takes memory.
"""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from jostler.web.server import TEXT, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry

JSON = "application/json"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


def probe(*, ok: bool, text: str) -> Reply:
    """Answer a probe with 200 or 503 and one line of text."""
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(f"{text}\n".encode(), TEXT, status)


def as_json(value: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Reply:
    """Answer a JSON object."""
    return Reply(json.dumps(value).encode(), JSON, status)


class Metrics:
    """The route of metrics.

    Args:
        make: makes the registry; may import what only a scraped program needs.
    """

    def __init__(self, make: Callable[[], CollectorRegistry]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._registry: CollectorRegistry | None = None

    def answer(self, _query: Mapping[str, str]) -> Reply:
        """Answer all metrics."""
        from prometheus_client import generate_latest  # noqa: PLC0415 - as above

        with self._lock:  # two scrapes at once would make two registries
            if self._registry is None:
                self._registry = self._make()
            return Reply(generate_latest(self._registry), EXPOSITION)
