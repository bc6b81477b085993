"""The page of a collector: whether all is well, and a table of the feeds, failing ones first.

**Invariant:** texts of servers and URLs are escaped; the page loads nothing from elsewhere.

Pure: turns the status document into HTML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostler import words
from jostler.web.document import CONTENT_TYPE, LOOK, head, policy
from jostler.web.document import document as whole
from jostler.web.html import NOTHING, Content, Html, asset, tag
from jostler.web.parts import Row, fact_list, name, table, when, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

__all__ = ["CONTENT_SECURITY_POLICY", "CONTENT_TYPE", "render"]

RELOAD_S = 10
CONTENT_SECURITY_POLICY = policy(style=LOOK)
_REST = "/status.json"
_HEADS = ("Feed", "Every", "Saved", "Unchanged", "Failed", "Last success", "Last error")


def render(document: Mapping[str, Any]) -> bytes:
    """Write the page for a status document, as UTF-8."""
    now = words.instant(document["now"])
    feeds = sorted(document["feeds"], key=lambda feed: (feed["error"] is None, feed["id"]))
    title = _headline(document, feeds)
    top = head(
        f"{title} jostler collect",
        tag("meta", http_equiv="refresh", content=str(RELOAD_S)),
        asset("style", LOOK),
    )
    header = tag(
        "header",
        tag("p", tag("b", "jostler"), " collect", class_="who"),
        tag("p", "to ", name(document["spool"]["directory"]), class_="where"),
        tag("p", "As of ", when(document["now"], None), class_="asof"),
    )
    main = tag("main", _health(document, title), _feeds(feeds, now), _about(document, now))
    footer = tag(
        "footer",
        tag("span", f"jostler {document['collector']['version']}"),
        " ",
        tag("a", "status.json", href=_REST),
        " ",
        tag("a", "metrics", href="/metrics"),
    )
    return whole(top, (header, main, footer))


def _headline(document: Mapping[str, Any], feeds: Sequence[Mapping[str, Any]]) -> str:
    if document["paused"]:
        return "Nothing is fetched: the spool has no room."
    failing = sum(feed["error"] is not None for feed in feeds)
    if failing:
        return f"{words.count(failing)} of {words.counted(len(feeds), 'feed')} failing."
    return "All is well."


def _health(document: Mapping[str, Any], title: str) -> Html:
    problems = [
        tag("p", label, words_, class_="wrap")
        for label, words_ in (
            ("Why: ", document["paused"]),
            ("The configuration on disk is refused, an earlier one runs: ", document["refused"]),
        )
        if words_
    ]
    return tag("section", tag("h1", title), *problems, class_="card")


def _feeds(feeds: Sequence[Mapping[str, Any]], now: datetime | None) -> Html:
    rows: list[Row] = [(feed["id"], _cells(feed, now)) for feed in feeds]
    shown = table(_HEADS, rows, key="feeds", rest=_REST)
    return tag("section", tag("h2", "Feeds"), shown, class_="card")


def _cells(feed: Mapping[str, Any], now: datetime | None) -> Sequence[Content]:
    error = feed["error"]
    problem: Content = NOTHING
    if error:
        times = f"{words.counted(error['times'], 'time')}, last "
        problem = wrapped(error["text"], tag("p", times, when(error["at"], now), class_="hint"))
    return (
        wrapped(tag("b", feed["id"]), tag("p", name(feed["url"]), class_="hint")),
        words.duration(feed["every_s"]),
        words.count(feed["saved"]),
        words.count(feed["unchanged"]),
        words.count(sum(feed["failures"].values())),
        when(feed["last_success"], now, missing="none yet"),
        problem,
    )


def _about(document: Mapping[str, Any], now: datetime | None) -> Html:
    collector, spool = document["collector"], document["spool"]
    pairs: list[tuple[str, Content]] = [
        ("Started", when(collector["started"], now)),
        ("Fetches at once, at most", words.count(collector["connections"])),
        ("Spool's disk", f"{words.size(spool['free_bytes'])} free"),
        ("Stops below", words.size(spool["min_free_bytes"])),
        ("Version", f"{collector['version']} {collector['commit']}"),
    ]
    return tag("details", tag("summary", "About this collector"), fact_list(pairs), class_="card")
