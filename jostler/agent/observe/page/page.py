"""The status page: turns the status document into one HTML page.

**Invariant:** the page is self-contained: its script and its style are inline.  Its content
security policy allows exactly these two by hash, and requests to its own server only.

Pure, except that the two assets are read when the module is imported.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from jostler import words
from jostler.agent.observe.page.banner import banner, headline, icon
from jostler.agent.observe.page.datatype import datatype
from jostler.agent.observe.page.facts import Facts, mapping, several, text
from jostler.agent.observe.page.html import Html, asset, tag
from jostler.agent.observe.page.overview import agent, charts, errors, glance, tiles
from jostler.agent.observe.page.parts import name, when

if TYPE_CHECKING:
    from datetime import datetime

RELOAD_S = 30  # without JavaScript


def _asset(file: str) -> str:
    return files(__package__).joinpath(file).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


STYLE = _asset("page.css")
SCRIPT = _asset("page.js")
CONTENT_TYPE = "text/html; charset=utf-8"
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash(SCRIPT)}",
        f"style-src {_hash(STYLE)}",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


def render(document: Facts) -> bytes:
    """Write the page for a status document, as UTF-8.

    Args:
        document: what /status.json answers; any part may be missing.
    """
    now = words.instant(document.get("now"))
    page = tag(
        "html",
        _head(document),
        tag(
            "body",
            _live(),
            _header(document),
            _main(document, now),
            _footer(document),
            asset("script", SCRIPT),
        ),
        lang="en",
    )
    return b"<!doctype html>\n" + page.markup.encode()


def _head(document: Facts) -> Html:
    node = text(mapping(document.get("agent")).get("node"))
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{node}: {headline(document)}"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("noscript", tag("meta", http_equiv="refresh", content=str(RELOAD_S))),
        icon(document),
        asset("style", STYLE),
    )


def _live() -> Html:
    """Make the element where the script shows whether the page is live; updates keep it."""
    said = tag("span", id="live-text", role="status")
    pause = tag("button", "Pause", id="live-pause", type="button", aria_pressed="false")
    return tag("div", said, " ", pause, id="live", hidden=True)


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
