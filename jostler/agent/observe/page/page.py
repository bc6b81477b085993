"""The status page: turns the status document into one HTML page.

**Invariant:** the page is self-contained: its script and its style are inline.  Its content
security policy allows exactly these two by hash, and requests to its own server only.

Pure, except that the two assets are read when the module is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.agent.observe.page.banner import banner, headline, icon
from jostler.agent.observe.page.datatype import datatype
from jostler.agent.observe.page.facts import Facts, mapping, several
from jostler.agent.observe.page.overview import agent, charts, errors, glance, tiles
from jostler.web.document import CONTENT_TYPE, LOOK, asset_text, head, policy
from jostler.web.document import document as whole
from jostler.web.html import Html, asset, tag
from jostler.web.parts import name, when
from jostler.words import text

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["CONTENT_SECURITY_POLICY", "CONTENT_TYPE", "SCRIPT", "STYLE", "render"]

RELOAD_S = 30  # without JavaScript


STYLE = LOOK + asset_text(__package__, "page.css")
SCRIPT = asset_text(__package__, "page.js")
CONTENT_SECURITY_POLICY = policy(style=STYLE, script=SCRIPT)


def render(document: Facts) -> bytes:
    """Write the page for a status document, as UTF-8.

    Args:
        document: what /status.json answers; any part may be missing.
    """
    now = words.instant(document.get("now"))
    body = (
        _live(),
        _header(document),
        _main(document, now),
        _footer(document),
        asset("script", SCRIPT),
    )
    return whole(_head(document), body)


def _head(document: Facts) -> Html:
    node = text(mapping(document.get("agent")).get("node"))
    return head(
        f"{node}: {headline(document)}",
        tag("noscript", tag("meta", http_equiv="refresh", content=str(RELOAD_S))),
        icon(document),
        asset("style", STYLE),
    )


def _live() -> Html:
    """Make the element where the script shows whether the page is live; updates keep it."""
    message = tag("span", id="live-text", role="status")
    pause = tag("button", "Pause", id="live-pause", type="button", aria_pressed="false")
    return tag("div", message, " ", pause, id="live", hidden=True)


def _header(document: Facts) -> Html:
    about = mapping(document.get("agent"))
    where = [
        tag("span", f"{label} ", name(about.get(member)))
        for label, member in (("experiment", "experiment"), ("to", "bucket"))
        if text(about.get(member))
    ]
    return tag(
        "header",
        tag("p", tag("b", "jostler"), " ", name(about.get("node")), class_="who"),
        tag("p", *where, class_="where"),
        tag("p", "As of ", when(document.get("now"), None), class_="asof"),
        data_live="header",
    )


def _main(document: Facts, now: datetime | None) -> Html:
    return tag(
        "main",
        banner(document, now),
        tiles(document, now),
        charts(mapping(document.get("history"))),
        glance(document, now),
        errors(document, now),
        *(datatype(facts, now) for facts in several(document.get("datatypes"))),
        agent(document, now),
        data_live="main",
    )


def _footer(document: Facts) -> Html:
    version = text(mapping(document.get("agent")).get("version"))
    return tag(
        "footer",
        tag("span", f"jostler {version}"),
        " ",
        tag("a", "status.json", href="/status.json"),
        " ",
        tag("a", "metrics", href="/metrics"),
        data_live="footer",
    )
