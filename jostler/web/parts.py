"""Elements that several sections use: instants, names, lists of facts, tables.

**Invariant:** names of files are shown completely up to `NAME_MAX` characters and are never markup;
a table never has more than `ROWS_MAX` rows.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jostler import words
from jostler.web.html import NOTHING, Content, Html, join, tag
from jostler.words import text

if TYPE_CHECKING:
    from datetime import datetime

NAME_MAX = 200
TITLE_MAX = 1000
ROWS_FIRST = 6
ROWS_MAX = 300

Row = tuple[str, Sequence[Content]]


def when(value: object, now: datetime | None, *, missing: str = words.DASH) -> Html:
    """Show an instant as time of day and how long ago; show unreadable values unchanged."""
    then = words.instant(value)
    if then is None:
        return join([text(value) or missing])
    machine = then.isoformat().replace("+00:00", "Z")
    whole = f"{then:%Y-%m-%d %H:%M:%S} UTC"
    if now is None:
        return tag("time", whole, datetime=machine)
    age = words.ago(then, now)
    shown = tag("time", words.clock(then, now), datetime=machine, title=whole)
    return join([shown, " ", tag("span", age, class_="ago")])


def name(value: object, *, whole: str = "", link: object = None) -> Html:
    """Show an untrusted name, such as a file's or an object's.

    Args:
        value: the text to show.
        whole: the full name, shown when the pointer rests on it.
        link: the link's address; ignored unless it is https.
    """
    shown = text(value)
    short = shown if len(shown) <= NAME_MAX else shown[:NAME_MAX] + "…"
    title = (whole or shown)[:TITLE_MAX]
    inner = tag("bdi", short)
    href = text(link)
    if href.startswith("https://"):
        return tag("a", inner, class_="name", href=href, title=title, rel="noreferrer")
    return tag("code", inner, class_="name", title=title if title != short else None)


def bundle_name(bundle: object, link: object = None) -> Html:
    """Show an object's name without its directories."""
    whole = text(bundle)
    return name(whole.rsplit("/", 1)[-1], whole=whole, link=link)


def wrapped(*content: Content) -> Html:
    """Allow line breaks in a table's cell."""
    return tag("div", *content, class_="wrap")


def fact_list(pairs: Sequence[tuple[str, Content]]) -> Html:
    """Show labels with their values; leave out labels without value."""
    return tag(
        "dl",
        *(
            tag("div", tag("dt", label), tag("dd", value))
            for label, value in pairs
            if value not in {"", None} and value != NOTHING
        ),
        class_="facts",
    )


def table(heads: Sequence[str], rows: Sequence[Row], *, key: str, rest: str = "") -> Html:
    """Show rows, the first few directly and the others folded.

    Args:
        heads: the headings of the columns; on a narrow screen each cell shows its own.
        rows: each with a key that is unique in the table, and its cells.
        key: a key that is unique among the tables of the page.
        rest: where the rows beyond `ROWS_MAX` are; empty if a reader cannot see them.
    """
    first, folded_rows = rows[:ROWS_FIRST], rows[ROWS_FIRST:ROWS_MAX]
    if not folded_rows:
        return _table(heads, first)
    left = len(rows) - ROWS_MAX
    where = f" are in {rest}" if rest else ""
    note = tag("p", f"{left:,} more{where}.", class_="note") if left > 0 else NOTHING
    folded = tag(
        "details",
        tag("summary", f"{len(rows) - ROWS_FIRST:,} more"),
        _table(heads, folded_rows),
        note,
        data_key=key,
    )
    return join([_table(heads, first), folded])


def _table(heads: Sequence[str], rows: Sequence[Row]) -> Html:
    head = tag(
        "tr", *(tag("th", text, scope="col", role="columnheader") for text in heads), role="row"
    )
    body = [
        tag(
            "tr",
            *(
                tag("td", cell, data_label=label, role="cell")
                for label, cell in zip(heads, cells, strict=True)
            ),
            role="row",
            data_key=row_key,
        )
        for row_key, cells in rows
    ]
    return tag(
        "table",
        tag("thead", head, role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )
