"""The page of a file: where it is, its content, and its neighbours in time.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from jostler import words
from jostler.archive.serve.api import ROOT
from jostler.archive.serve.pages.layout import (
    Site,
    bundle_url,
    card,
    datatype_url,
    day_url,
    file_url,
    files_table,
    instant,
    link,
    node_url,
    page,
)
from jostler.archive.serve.tokens import FileId
from jostler.web.html import Content, Html, lines, tag
from jostler.web.parts import fact_list, name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.catalogue import File
    from jostler.why.finding import Finding

SHOWN_MAX = 256 * 1024


def file(
    site: Site,
    found: File,
    *,
    raw: bytes,
    problem: str,
    findings: Sequence[Finding],
    neighbours: Sequence[File],
) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        found: the file.
        raw: its content; empty with a problem.
        problem: why its content cannot be shown; empty if it can.
        findings: where it is, as `jostler why` shows it.
        neighbours: files of the same node and datatype, in the order of their times.
    """
    day = found.origin.day
    return page(
        site,
        found.name,
        card("About", _facts(site, found)),
        card("Content", *_content(found, raw, problem)),
        card("Where is it?", *(_finding(one, site) for one in findings)),
        card("Before and after it", files_table(neighbours, site.now, of_node=False)),
        trail=[
            ("archive", "/"),
            (found.datatype, datatype_url(found.datatype)),
            (str(day), day_url(found.datatype, day)),
            (found.node, node_url(found.node)),
            (found.name, file_url(found)),
        ],
        problems=[problem] if problem else (),
    )


def _facts(site: Site, found: File) -> Html:
    end = instant(found.end, site.now) if found.end else ""
    return fact_list(
        [
            ("datatype", link(found.datatype, datatype_url(found.datatype))),
            ("node", link(found.node, node_url(found.node))),
            ("begins", instant(found.begin, site.now)),
            ("ends", end),
            ("work id", name(found.work_id) if found.work_id else ""),
            ("size", words.size(found.size)),
            ("read by the agent", instant(found.added, site.now)),
            ("hash", name(found.hash) if found.hash else ""),
            ("row", tag("a", f"line {found.line} of its bundle", href=bundle_url(found))),
            ("address", name(found.address)),
        ]
    )


def _content(found: File, raw: bytes, problem: str) -> list[Content]:
    download = tag(
        "a", "Download", href=f"{ROOT}/files/{FileId.of(found)}/data", download=found.name
    )
    if problem:
        return [tag("p", "It cannot be shown.", class_="note")]
    if len(raw) > SHOWN_MAX:
        note = f"It has {words.size(len(raw))}, too much for this page."
        return [tag("p", download), tag("p", note, class_="note")]
    return [tag("p", download), tag("pre", lines(pretty(raw)))]


def pretty(raw: bytes) -> str:
    """Return JSON with indents, or the text as it is if that would change a number.

    A parser that makes a float of a number may write other digits than the file has.
    """
    try:
        value = orjson.loads(raw)
        if orjson.dumps(value) == raw.strip():
            return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        pass
    return raw.decode(errors="backslashreplace")


def _finding(one: Finding, site: Site) -> Html:
    since = instant(one.since, site.now) if one.since else ""
    facts = [(key, name(value)) for key, value in one.evidence.items()]
    return tag(
        "div",
        tag("p", tag("b", str(one.state)), ": ", words.shown(one.why)),
        tag("p", "Next: ", words.shown(one.next), class_="note"),
        fact_list([("since", since), *facts]),
    )
