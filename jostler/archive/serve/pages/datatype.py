"""The page of a datatype: its nodes by days, so that a silent node or a missing day shows.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler import words
from jostler.archive.serve.pages.layout import (
    Site,
    card,
    datatype_url,
    grid_head,
    instant,
    legend,
    link,
    node_url,
    page,
    pager,
    square,
)
from jostler.archive.serve.summary import NONE
from jostler.web.html import Content, Html, tag

if TYPE_CHECKING:
    from datetime import datetime

    from jostler.archive.serve.summary import Summary

NODES_MAX = 100
SORTS = {"name": "name", "last": "last file", "files": "files"}


@dataclass(slots=True)
class NodeSums:
    """One node's sums of the datatype over all days that are shown.

    Attributes:
        node: its name.
        files: the number of files.
        last: the latest instant of its files; None without files.
    """

    node: str
    files: int = 0
    last: datetime | None = None


def datatype(site: Site, summary: Summary, name: str, *, sort: str, first: int) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        summary: the sums of the last weeks.
        name: the datatype.
        sort: one of `SORTS`; by `last`, the node that was silent for longest comes first.
        first: how many nodes to leave out at the beginning.
    """
    by_node: dict[str, NodeSums] = {}
    most = 0
    for day in summary.window:
        for node, one in summary.of(day).by_node.get(name, {}).items():
            sums = by_node.setdefault(node, NodeSums(node))
            sums.files += one.files
            most = max(most, one.files)
            if one.last and (not sums.last or one.last > sums.last):
                sums.last = one.last
    nodes = _sorted(list(by_node.values()), sort)
    rows = [_row(site, summary, name, node, most) for node in nodes[first : first + NODES_MAX]]
    grid = tag(
        "div",
        tag("table", grid_head("Node", summary.window), tag("tbody", *rows), class_="grid"),
        class_="wide",
    )
    before = datatype_url(name, sort=sort, first=str(max(0, first - NODES_MAX))) if first else None
    rest = first + NODES_MAX < len(nodes)
    after = datatype_url(name, sort=sort, first=str(first + NODES_MAX)) if rest else None
    return page(
        site,
        name,
        card(
            words.counted(len(nodes), "node"),
            _sorting(name, sort),
            grid if rows else tag("p", "No node stored a file in these days.", class_="note"),
            pager(before, after),
            legend(has_ledger=False),
        ),
        trail=[("archive", "/"), (name, datatype_url(name))],
        problems=summary.problems,
    )


def _sorted(nodes: list[NodeSums], sort: str) -> list[NodeSums]:
    nodes.sort(key=lambda node: node.node)
    if sort == "last":
        nodes.sort(key=lambda node: node.last.timestamp() if node.last else 0.0)
    elif sort == "files":
        nodes.sort(key=lambda node: -node.files)
    return nodes


def _sorting(name: str, chosen: str) -> Html:
    parts: list[Content] = ["Sorted by "]
    for key, label in SORTS.items():
        parts += [
            tag("b", label) if key == chosen else link(label, datatype_url(name, sort=key)),
            " ",
        ]
    return tag("p", *parts, class_="note")


def _row(site: Site, summary: Summary, datatype: str, node: NodeSums, most: int) -> Html:
    cells = []
    for day in summary.window:
        sums = summary.of(day)
        one = sums.by_node.get(datatype, {}).get(node.node, NONE)
        address = f"{node_url(node.node)}?day={day}"
        read = sums.read_at is not None
        cells.append(tag("td", square(one, day, most, address, loaded=None, read=read)))
    last = instant(node.last, site.now) if node.last else "no file"
    return tag(
        "tr",
        tag("td", link(node.node, node_url(node.node))),
        *cells,
        tag("td", last, class_="sum"),
    )
