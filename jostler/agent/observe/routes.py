"""The paths of the status server and their answers.

**Invariant:** /healthz reports only whether the agent's loop turns, never the bucket's state: an
outage must not restart the pod, or make it unready, because the measured service is in it too.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from jostler.agent.observe.document import document
from jostler.web.replies import Metrics, as_json, probe
from jostler.web.server import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import CollectorRegistry

    from jostler.agent.observe.status import Status
    from jostler.web.server import Routes

STILL_MAX_S = 120.0
"""How long the loop may stand still before it counts as stuck; its longest step takes seconds."""


def routes(status: Status) -> Routes:
    """Return the routes for one agent's status."""
    return {
        "/": lambda _: _page(status),
        "/healthz": lambda _: _healthz(status),
        "/startupz": lambda _: probe(ok=True, text="started: what is written now is noticed"),
        "/readyz": lambda _: probe(
            ok=status.ready, text="the first scan is over" if status.ready else "not yet scanned"
        ),
        "/metrics": Metrics(lambda: _registry(status)).answer,
        "/status.json": lambda _: as_json(document(status)),
        "/why.json": lambda query: _why(status, query),
    }


def _page(status: Status) -> Reply:
    from jostler.agent.observe import page  # noqa: PLC0415 - nobody pays for it who does not look

    body = page.render(document(status))
    return Reply(body, page.CONTENT_TYPE, policy=page.CONTENT_SECURITY_POLICY)


def _healthz(status: Status) -> Reply:
    if status.waits_for:
        return probe(ok=True, text=f"waits for {status.waits_for}")
    still_s = status.still_s()
    return probe(ok=still_s < STILL_MAX_S, text=f"the loop turned {still_s:.0f} s ago")


def _why(status: Status, query: Mapping[str, str]) -> Reply:
    try:
        return as_json(status.why(query.get("name", "")))
    except ValueError as exc:
        return as_json({"error": str(exc)}, HTTPStatus.BAD_REQUEST)


def _registry(status: Status) -> CollectorRegistry:
    from jostler.agent.observe import exposition  # noqa: PLC0415 - as above

    return exposition.registry(status)
