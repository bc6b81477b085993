"""The page of a node: its datatypes, its last files, and why files were rejected.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.archive.serve.pages.layout import (
    Site,
    card,
    datatype_url,
    files_table,
    grid_head,
    instant,
    link,
    page,
    square,
    table,
)
from jostler.archive.serve.summary import DAYS, NONE
from jostler.web.html import Html, tag

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from jostler.archive.catalogue import File, Rejects
    from jostler.archive.serve.summary import Summary


def node(
    site: Site,
    summary: Summary,
    name: str,
    *,
    files: Sequence[File],
    rejects: Sequence[Rejects],
    day: date | None,
    problems: Sequence[str],
) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        summary: the sums of the last weeks.
        name: the node.
        files: its files: the last ones, or those of `day`.
        rejects: why files of it were rejected.
        day: the day that was asked for; None for the last ones.
        problems: what could not be read.
    """
    titled = f"Files of {day}" if day else "Last files"
    return page(
        site,
        name,
        card("Datatypes", _datatypes(site, summary, name)),
        card(titled, files_table(files, site.now, of_node=False)),
        card("Rejected files", _rejects(rejects)),
        trail=[("archive", "/"), (name, "")],
        problems=[*problems, *summary.problems],
    )


def _datatypes(site: Site, summary: Summary, name: str) -> Html:
    days = summary.window
    datatypes = sorted({d for day in days for d, n in summary.of(day).by_node.items() if name in n})
    rows = []
    for datatype in datatypes:
        sums = [summary.of(day).by_node.get(datatype, {}).get(name, NONE) for day in days]
        most = max(one.files for one in sums)
        last = max((one.last for one in sums if one.last), default=None)
        cells = [
            tag("td", square(one, day, most, f"?day={day}", loaded=None, read=True))
            for day, one in zip(days, sums, strict=True)
        ]
        latest = instant(last, site.now) if last else "no file"
        rows.append(
            tag("tr", tag("td", link(datatype, datatype_url(datatype))), *cells, tag("td", latest))
        )
    if not rows:
        return tag("p", "Nothing in the last five weeks.", class_="note")
    grid = tag("table", grid_head("Datatype", days), tag("tbody", *rows), class_="grid")
    return tag("div", grid, class_="wide")


def _rejects(rejects: Sequence[Rejects]) -> Html:
    rows = [
        (f"{one.day}", link(one.datatype, datatype_url(one.datatype)), one.reason, f"{one.files:,}")
        for one in rejects
    ]
    if not rows:
        return tag("p", f"None in the last {words.counted(DAYS, 'day')}.", class_="note")
    return table(["Day", "Datatype", "Reason", "Files"], rows, numbers=[3])
