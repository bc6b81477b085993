"""The page of loads: how each table stands, its failing days, and what was asked for.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.archive.load_status import open_requests
from jostler.archive.serve.pages.layout import (
    Site,
    card,
    datatype_url,
    day_url,
    instant,
    link,
    page,
    table,
)

if TYPE_CHECKING:
    from datetime import datetime

    from jostler.archive.load_status import Failing, LoadStatus, TableStatus
    from jostler.web.html import Content

FAILING_MAX = 100


def loads(site: Site, status: LoadStatus) -> bytes:
    """Write the page."""
    heads = ("Table", "Last success", "Newest day", "Failing days", "Rejected rows")
    rows = [_row(one, site.now) for one in status.tables]
    failing = [(one, day) for one in status.tables for day in one.failing]
    sections: list[Content] = [card("Tables", table(heads, rows, numbers=(3, 4)))]
    if failing:
        heads = ("Day", "Status", "Since", "Times", "Why")
        shown = [_failing(one, day, site.now) for one, day in failing[:FAILING_MAX]]
        more = len(failing) - len(shown)
        title = f"Failing days, and {more} more" if more else "Failing days"
        sections.append(card(title, table(heads, shown, numbers=(3,))))
    if status.requests is not None:
        asked = open_requests(status)
        names = tuple(asked[0]) if asked else ()
        cells: list[list[Content]] = [[_text(row[name]) for name in names] for row in asked]
        sections.append(card("Open requests", table(names, cells)))
    return page(site, "Loads", *sections, trail=[("archive", "/")])


def _row(one: TableStatus, now: datetime) -> list[Content]:
    return [
        link(one.table, datatype_url(one.datatype)) if one.datatype else one.table,
        instant(one.success, now) if one.success else "never",
        str(one.newest or "never"),
        str(len(one.failing)),
        "" if one.rejected is None else f"{one.rejected:.2%}",
    ]


def _failing(one: TableStatus, failing: Failing, now: datetime) -> list[Content]:
    row = failing.row
    day = row["date"]
    where: Content = f"{one.table} as a whole"
    if day:
        where = link(f"{one.table} {day}", day_url(one.datatype, day))
    kind = f"{row['FailureClass']}: " if row["FailureClass"] else ""
    return [
        where,
        row["Status"],
        instant(failing.since, now) if failing.since else "",
        str(failing.times or 1),
        f"{kind}{row['ErrorText'] or 'no reason was recorded'}",
    ]


def _text(value: object) -> str:
    return "" if value is None else str(value)
