"""The paths of the status server and their answers.

**Invariant:** /healthz reports only whether the agent's loop turns, never the bucket's state: an
outage must not restart the pod, or make it unready, because the measured service is in it too.
"""

from __future__ import annotations

import json
import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from jostler.agent.observe.document import document
from jostler.web.server import TEXT, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.agent.observe.status import Status
    from jostler.web.server import Routes

JSON = "application/json"
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
STILL_MAX_S = 120.0
"""How long the loop may stand still before it counts as stuck; its longest step takes seconds."""


def routes(status: Status) -> Routes:
    """Return the routes for one agent's status."""
    return {
        "/": lambda _: _page(status),
        "/healthz": lambda _: _healthz(status),
        "/startupz": lambda _: _probe(ok=True, text="started: what is written now is noticed"),
        "/readyz": lambda _: _probe(
            ok=status.ready, text="the first scan is over" if status.ready else "not yet scanned"
        ),
        "/metrics": _Metrics(status).answer,
        "/status.json": lambda _: _json(document(status)),
        "/why.json": lambda query: _why(status, query),
    }


def _page(status: Status) -> Reply:
    from jostler.agent.observe import page  # noqa: PLC0415 - nobody pays for it who does not look

    body = page.render(document(status))
    return Reply(body, page.CONTENT_TYPE, policy=page.CONTENT_SECURITY_POLICY)


def _healthz(status: Status) -> Reply:
    if status.waits_for:
        return _probe(ok=True, text=f"waits for {status.waits_for}")
    still_s = status.still_s()
    return _probe(ok=still_s < STILL_MAX_S, text=f"the loop turned {still_s:.0f} s ago")


def _probe(*, ok: bool, text: str) -> Reply:
    status = HTTPStatus.OK if ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(f"{text}\n".encode(), TEXT, status)


def _json(value: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(json.dumps(value).encode(), JSON, status)


def _why(status: Status, query: Mapping[str, str]) -> Reply:
    try:
        return _json(status.why(query.get("name", "")))
    except ValueError as exc:
        return _json({"error": str(exc)}, HTTPStatus.BAD_REQUEST)


class _Metrics:
    """Creates the registry at the first scrape, because it takes memory."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._lock = threading.Lock()
        self._registry: Any = None

    def answer(self, _query: Mapping[str, str]) -> Reply:
        from jostler.agent.observe import exposition  # noqa: PLC0415 - as above

        with self._lock:  # two scrapes at once would create two registries
            self._registry = self._registry or exposition.registry(self._status)
            return Reply(exposition.text(self._registry), EXPOSITION)
