"""The page of a datatype's day: its nodes, its first bundles, and what the loader's ledger says.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostler import words
from jostler.archive.serve.pages.layout import (
    Site,
    card,
    datatype_url,
    instant,
    link,
    node_url,
    page,
    table,
)
from jostler.archive.serve.tokens import BundleId
from jostler.web.html import Html, tag

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from jostler.archive.catalogue import Bundle
    from jostler.archive.serve.summary import Sum

BUNDLES_MAX = 200
NODES_MAX = 500


def day(
    site: Site,
    datatype: str,
    when: date,
    *,
    nodes: Mapping[str, Sum],
    bundles: Sequence[Bundle],
    ledger: Sequence[Mapping[str, Any]] | None,
    problems: Sequence[str],
) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        datatype: the datatype.
        when: the day.
        nodes: the sums of each node.
        bundles: the first bundles.
        ledger: the ledger's rows of the day, the newest first; None without a ledger.
        problems: what could not be read.
    """
    sections = [
        card("Nodes", _nodes(nodes)),
        card("Bundles", _bundles(site, bundles)),
    ]
    if ledger is not None:
        sections.insert(0, card("Loads into BigQuery", _ledger(ledger)))
    return page(
        site,
        f"{datatype} on {when}",
        *sections,
        trail=[("archive", "/"), (datatype, datatype_url(datatype))],
        problems=problems,
    )


def _nodes(nodes: Mapping[str, Sum]) -> Html:
    rows = [
        (
            link(node, node_url(node)),
            f"{sums.files:,}",
            words.size(sums.size_bytes),
            f"{sums.rejected:,}" if sums.rejected else "",
        )
        for node, sums in sorted(nodes.items())[:NODES_MAX]
    ]
    shown = table(["Node", "Files", "Size", "Rejected"], rows, numbers=[1, 2, 3])
    return _cut(shown, len(nodes), NODES_MAX)


def _bundles(site: Site, bundles: Sequence[Bundle]) -> Html:
    rows = [
        (
            link(one.origin.data.rpartition("/")[2], f"/bundle/{_token(one)}"),
            f"{one.files:,}",
            words.size(one.size_bytes),
            instant(one.last, site.now),
        )
        for one in bundles[:BUNDLES_MAX]
    ]
    shown = table(["Bundle", "Files", "Size", "Last file"], rows, numbers=[1, 2])
    return _cut(shown, len(bundles), BUNDLES_MAX)


def _token(one: Bundle) -> BundleId:
    origin = one.origin
    return BundleId(origin.index, origin.datatype, origin.node, origin.day)


def _cut(shown: Html, count: int, most: int) -> Html:
    if count <= most:
        return shown
    note = tag("p", f"The first {most:,}; `jostler list` shows all.", class_="note")
    return tag("div", shown, note)


def _ledger(rows: Sequence[Mapping[str, Any]]) -> Html:
    cells = [
        (
            words.text(row.get("status")),
            f"{row['finished']:%Y-%m-%d %H:%M:%S}" if row.get("finished") else "",
            words.text(row.get("reason")),
            words.count(row.get("rows_read")),
            words.count(row.get("rows_loaded")),
            words.count(row.get("rows_rejected")),
            words.text(row.get("error")),
        )
        for row in rows
    ]
    if not cells:
        return tag("p", "The loader has not loaded this day.", class_="note")
    heads = ["Status", "Finished (UTC)", "Why it was due", "Read", "Loaded", "Rejected", "Error"]
    return table(heads, cells, numbers=[3, 4, 5])
