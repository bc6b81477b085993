"""What all pages of the archive share: head, search box, links, tables, squares.

**Invariant:** text from files, names of nodes and messages are escaped by `jostler.web.html`; every
link goes to this server.

Pure, except that the style sheet is read when the module is imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from jostler import words
from jostler.archive.serve.tokens import BundleId, FileId
from jostler.web.document import LOOK, asset_text, document, head, policy
from jostler.web.html import NOTHING, Content, Html, asset, tag
from jostler.web.parts import name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date, datetime

    from jostler.archive.catalogue import File
    from jostler.archive.serve.summary import Sum

STYLE = LOOK + asset_text(__package__, "site.css")
CONTENT_SECURITY_POLICY = policy(style=STYLE, forms=True)
SHADES = 5
_HALF_WEEK = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is the same on every page.

    Attributes:
        archive: the URL of the bucket, with the experiment.
        version: of jostler.
        now: when the page is made.
        has_ledger: whether the loader's ledger can be asked.
    """

    archive: str
    version: str
    now: datetime
    has_ledger: bool


def page(
    site: Site,
    title: str,
    *sections: Content,
    trail: Sequence[tuple[str, str]] = (),
    asked: str = "",
    problems: Iterable[str] = (),
) -> bytes:
    """Write a whole page.

    Args:
        site: what all pages share.
        title: the heading; also the document's title.
        sections: the content below the heading.
        trail: text and address of the pages above this one.
        asked: the text of the search box.
        problems: what could not be read, one sentence each.
    """
    body = (
        _header(site, asked),
        _trail(trail),
        tag("main", tag("h1", title), _warning(list(problems)), *sections),
        _footer(site),
    )
    return document(head(f"{title} – jostler", asset("style", STYLE)), body)  # noqa: RUF001 - a dash


def _warning(problems: Sequence[str]) -> Html:
    if not problems:
        return NOTHING
    more = f"; {len(problems) - 1} more" if len(problems) > 1 else ""
    return tag("p", f"Not everything could be read: {problems[0]}{more}", class_="problem")


def _header(site: Site, asked: str) -> Html:
    form = tag(
        "form",
        tag("label", "Search", for_="q", class_="hidden"),
        tag(
            "input",
            id="q",
            name="q",
            type="search",
            value=asked,
            maxlength=1000,
            placeholder="name, hash, work id or time",
        ),
        tag("button", "Find", type="submit"),
        action="/search",
        method="get",
        role="search",
    )
    return tag(
        "header",
        tag("p", tag("a", tag("b", "jostler archive"), href="/"), class_="who"),
        tag("p", name(site.archive), class_="where"),
        form,
    )


def _trail(trail: Sequence[tuple[str, str]]) -> Html:
    if not trail:
        return NOTHING
    steps: list[Content] = []
    for label, address in trail:
        steps += [tag("a", tag("bdi", label), href=address), " › "]  # noqa: RUF001 - a separator
    return tag("nav", *steps[:-1], aria_label="pages above")


def _footer(site: Site) -> Html:
    return tag(
        "footer",
        tag("span", f"jostler {site.version}"),
        tag("span", f"as of {site.now:%Y-%m-%d %H:%M:%S} UTC"),
        tag("a", "Loads", href="/loads") if site.has_ledger else NOTHING,
        tag("a", "API", href="/openapi.json"),
    )


def card(title: str, *content: Content) -> Html:
    """Make a section with a heading."""
    return tag("section", tag("h2", title), *content, class_="card")


def link(text: str, address: str) -> Html:
    """Make a link whose text is a name from outside: its direction of writing is kept apart."""
    return tag("a", tag("bdi", text), href=address)


def datatype_url(datatype: str, **parameters: str) -> str:
    """Return the address of a datatype's page."""
    asked = f"?{urlencode(parameters)}" if parameters else ""
    return f"/datatype/{quote(datatype, safe='')}{asked}"


def node_url(node: str) -> str:
    """Return the address of a node's page."""
    return f"/node/{quote(node, safe='')}"


def day_url(datatype: str, day: date) -> str:
    """Return the address of the page of a datatype's day."""
    return f"/day/{quote(datatype, safe='')}/{day.isoformat()}"


def file_url(file: File) -> str:
    """Return the address of a file's page."""
    return f"/file/{FileId.of(file)}"


def bundle_url(file: File) -> str:
    """Return the address of the page of a file's bundle."""
    return f"/bundle/{BundleId.of(file)}"


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Content]], numbers: Iterable[int] = ()
) -> Html:
    """Make a table; on a narrow screen each cell shows its heading.

    Args:
        heads: the headings of the columns.
        rows: the cells of each row.
        numbers: the columns that hold numbers, counted from 0.
    """
    right = set(numbers)
    first = tag("tr", *(tag("th", head, scope="col") for head in heads))
    body = [
        tag(
            "tr",
            *(
                tag("td", cell, data_label=heads[at], class_="number" if at in right else None)
                for at, cell in enumerate(cells)
            ),
        )
        for cells in rows
    ]
    if not body:
        return tag("p", "Nothing here.", class_="note")
    return tag("div", tag("table", tag("thead", first), tag("tbody", *body)), class_="wide")


def files_table(files: Iterable[File], now: datetime, *, of_node: bool = True) -> Html:
    """Make a table of files, each with a link to its page."""
    heads = ["File", "Begins", "Size"]
    rows: list[list[Content]] = []
    for file in files:
        cells: list[Content] = [
            link(words.shown(file.path), file_url(file)),
            instant(file.begin, now),
            words.size(file.size),
        ]
        if of_node:
            cells.insert(1, link(file.node, node_url(file.node)))
        rows.append(cells)
    if of_node:
        heads.insert(1, "Node")
    return table(heads, rows, numbers=[len(heads) - 1])


def instant(when: datetime, now: datetime) -> Html:
    """Show an instant and how long ago it was."""
    text = f"{when:%Y-%m-%d %H:%M:%S}"
    shown = tag("time", text, datetime=words.rfc3339(when))
    return tag("span", shown, " ", tag("span", words.ago(when, now), class_="ago"))


def pager(previous: str | None, following: str | None) -> Html:
    """Make the links to the pages before and after this one."""
    links = [
        tag("a", label, href=address, rel=rel)
        for label, address, rel in (("← before", previous, "prev"), ("more →", following, "next"))
        if address
    ]
    return tag("p", *links, class_="pager") if links else NOTHING


def grid_head(first: str, days: Sequence[date]) -> Html:
    """Make the head of a grid whose columns are days; each Monday begins a week."""
    cells = [
        tag(
            "th",
            f"{day.day}",
            scope="col",
            class_="day week" if day.weekday() == 0 else "day",
            title=f"{day:%A %Y-%m-%d}",
        )
        for day in days
    ]
    return tag(
        "thead", tag("tr", tag("th", first, scope="col"), *cells, tag("th", "", scope="col"))
    )


def shade(files: int, most: int) -> int:
    """Return how dark a square is, 0 to `SHADES`: none, then by the share of the largest."""
    if not files or not most:
        return 0
    return max(1, -(-files * SHADES // most))


def square(
    sums: Sum, day: date, most: int, address: str, *, loaded: bool | None, read: bool
) -> Html:
    """Make the square of one day: a link, darker for more files, with marks.

    Args:
        sums: what the day has.
        day: the day.
        most: the number of files that makes the darkest square.
        address: of the page with details.
        loaded: whether BigQuery has the day; None if that is not known.
        read: whether the day was read; else nothing is known of it.
    """
    text = f"{day}: {words.counted(sums.files, 'file')}, {words.size(sums.size_bytes)}"
    classes = ["sq", f"q{shade(sums.files, most)}"]
    if not read:
        text, classes = f"{day}: not read yet", ["sq", "unread"]
    if sums.rejected:
        text += f", {sums.rejected:,} rejected"
        classes.append("rejects")
    if sums.files and loaded is False:
        text += ", not in BigQuery yet"
        classes.append("absent")
    return tag("a", href=address, class_=" ".join(classes), title=text, aria_label=text)


def legend(*, has_ledger: bool) -> Html:
    """Explain the squares."""
    shades = [tag("i", class_=f"sq q{level}") for level in range(SHADES + 1)]
    parts = [
        tag("span", "fewer", *shades, "more files"),
        tag("span", tag("i", class_="sq rejects"), "files were rejected"),
        tag("span", tag("i", class_="sq unread"), "not read yet"),
    ]
    if has_ledger:
        parts.append(tag("span", tag("i", class_="sq absent"), "not in BigQuery yet"))
    return tag("p", *parts, class_="legend")
