"""The overview: datatypes by days for the last five weeks.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.archive.serve.pages.layout import (
    Site,
    card,
    datatype_url,
    day_url,
    grid_head,
    legend,
    link,
    page,
    square,
)
from jostler.archive.serve.summary import NONE
from jostler.format.names import OWN_DATATYPES
from jostler.web.html import Html, tag

if TYPE_CHECKING:
    from jostler.archive.serve.summary import Summary


def overview(site: Site, summary: Summary) -> bytes:
    """Write the page."""
    days = summary.window
    rows = [_row(summary, name) for name in summary.datatypes if name not in OWN_DATATYPES]
    return page(
        site,
        "Archive",
        card(
            "Files by datatype and day",
            tag(
                "div",
                tag("table", grid_head("Datatype", days), tag("tbody", *rows), class_="grid"),
                class_="wide",
            )
            if rows
            else tag("p", _nothing(summary), class_="note"),
            legend(has_ledger=site.has_ledger),
        ),
        problems=summary.problems,
    )


def _nothing(summary: Summary) -> str:
    if summary.unread:
        return (
            f"The archive is being read: {summary.unread} of {len(summary.window)} days are left."
        )
    return f"No file was stored in the last {len(summary.window)} days."


def _row(summary: Summary, datatype: str) -> Html:
    days = summary.window
    sums = [summary.of(day).by_datatype.get(datatype, NONE) for day in days]
    most = max(one.files for one in sums)
    total = sum(one.files for one in sums)
    cells = [
        tag(
            "td",
            square(
                one,
                day,
                most,
                day_url(datatype, day),
                loaded=summary.is_loaded(datatype, day),
                read=summary.of(day).read_at is not None,
            ),
        )
        for day, one in zip(days, sums, strict=True)
    ]
    return tag(
        "tr",
        tag("td", link(datatype, datatype_url(datatype))),
        *cells,
        tag("td", words.counted(total, "file"), class_="sum"),
    )
