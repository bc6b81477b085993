"""The sections on the agent as a whole: tiles, charts, last errors, table of all datatypes.

**Invariant:** sums are those of the datatypes that are shown.  Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.agent.observe.page.banner import sign
from jostler.agent.observe.page.chart import Chart, Measure, Shape
from jostler.agent.observe.page.datatype import anchor, bar, rejected, waiting
from jostler.agent.observe.page.facts import REST, Facts, mapping, sequence, several
from jostler.web.html import NOTHING, Content, Html, tag
from jostler.web.parts import Row, fact_list, name, table, when, wrapped
from jostler.words import text

if TYPE_CHECKING:
    from datetime import datetime

_CHARTS = (
    ("arrived", "Arrived", Measure.FILES, " per minute", Shape.BARS),
    ("archived", "Archived", Measure.FILES, " per minute", Shape.BARS),
    ("bytes", "Bytes", Measure.BYTES, " per minute", Shape.BARS),
    ("backlog", "Backlog", Measure.FILES, "", Shape.AREA),
    ("stored_s", "From close to stored", Measure.SECONDS, "", Shape.LINE),
)


def tiles(document: Facts, now: datetime | None) -> Html:
    """Show the few most important figures."""
    datatypes = several(document.get("datatypes"))
    waits = [mapping(one.get("waiting")) for one in datatypes]
    files = sum(words.number(one.get("files")) or 0 for one in waits)
    size = sum(words.number(one.get("bytes")) or 0 for one in waits)
    instants = [at for one in waits if (at := words.instant(one.get("oldest")))]
    oldest = min(instants, default=None)
    age = words.duration((now - oldest).total_seconds()) if now and oldest else "none waits"
    spool, memory = mapping(document.get("spool")), mapping(document.get("memory"))
    free, whole = words.number(spool.get("free_bytes")), words.number(spool.get("size_bytes"))
    used = whole - free if free is not None and whole is not None else None
    held, limit = memory.get("held_bytes"), memory.get("limit_bytes")
    return tag(
        "section",
        _tile("Waiting", words.counted(files, "file"), words.size(size)),
        _tile(
            "Oldest waiting", age, f"since {words.clock(oldest, now)}" if now and oldest else None
        ),
        _tile("Uploads", *_uploads(mapping(document.get("uploads")))),
        _tile(
            "Spool's disk",
            f"{words.size(free)} free",
            f"of {words.size(whole)}{_full(spool)}",
            bar(used, whole),
        ),
        _tile("Memory for files", words.size(held), f"of {words.size(limit)}", bar(held, limit)),
        class_="tiles",
        aria_label="Figures",
    )


def _full(spool: Facts) -> str:
    """Write when the disk will be full; empty if it is not filling."""
    left_s = words.number(spool.get("full_in_s"))
    return "" if left_s is None else f"; full in {words.duration(left_s)}"


def charts(history: Facts) -> Html:
    """Draw the charts of the last hours; nothing without history."""
    end = words.instant(history.get("end"))
    step_s = words.number(history.get("step_s"))
    if end is None or not step_s or step_s < 1:
        return NOTHING
    drawn = [
        Chart(
            title=title,
            measure=measure,
            per=per,
            shape=shape,
            values=_values(history.get(member), 60 / step_s if per else 1.0),
            step_s=step_s,
            end=end,
        ).draw()
        for member, title, measure, per, shape in _CHARTS
    ]
    return tag("section", *drawn, class_="charts", aria_label="The last hours, times in UTC")


def _values(series: object, factor: float) -> list[float | None]:
    known = [words.number(value) for value in sequence(series)]
    return [None if value is None else max(0.0, value * factor) for value in known]


def errors(document: Facts, now: datetime | None) -> Html:
    """List the last errors with what to do; nothing if there were none."""
    rows: list[Row] = []
    for error in several(mapping(document.get("uploads")).get("errors")):
        key = f"{text(error.get('class'))} {text(error.get('text'))}"
        hint = tag("p", text(error.get("hint")), class_="hint")
        cells = (
            wrapped(text(error.get("text")), hint, _error_details(error, key)),
            words.count(error.get("times")),
            words.count(error.get("failing")),
            when(error.get("since"), now),
            when(error.get("at"), now),
        )
        rows.append((key, cells))
    if not rows:
        return NOTHING
    heads = ("Error and hint", "Times", "Failing now", "First", "Last")
    shown = table(heads, rows, key="errors", rest=REST)
    return tag("section", tag("h2", "Last errors"), shown, class_="card", data_key="errors")


def _error_details(error: Facts, key: str) -> Html:
    """Show details that only a search for the cause needs (class, tries, objects), folded."""
    next_try = words.number(error.get("next_try_s"))
    tries = words.count(error.get("tries"))
    objects = [text(one) for one in sequence(error.get("objects"))]
    pairs: list[tuple[str, Content]] = [
        ("Class", text(error.get("class"))),
        ("Tries", f"{tries}, next in {words.duration(next_try)}" if next_try else tries),
    ]
    listed = [tag("li", name(one.rsplit("/", 1)[-1], whole=one)) for one in objects]
    return tag(
        "details",
        tag("summary", "Details"),
        fact_list(pairs),
        tag("ul", *listed) if listed else NOTHING,
        class_="more",
        data_key=f"error {key}",
    )


def glance(document: Facts, now: datetime | None) -> Html:
    """List all datatypes, one per row; nothing if there is only one."""
    datatypes = several(document.get("datatypes"))
    if len(datatypes) <= 1:
        return NOTHING
    heads = ("Datatype", "Waiting", "Oldest", "Open", "Under way", "Last stored", "Rejected")
    rows = [_glance(facts, now) for facts in datatypes]
    shown = table(heads, rows, key="glance", rest=REST)
    return tag("section", tag("h2", "Datatypes"), shown, class_="card", data_key="glance")


def _glance(facts: Facts, now: datetime | None) -> Row:
    label = text(facts.get("name"))
    link = tag("a", tag("bdi", label), href=f"#{anchor(label)}")
    level = text(facts.get("level"))
    if level in {"attention", "bad"}:
        link = tag("span", sign(level), " ", link, class_=f"wrong {level}")
    cells = (
        link,
        waiting(facts),
        when(mapping(facts.get("waiting")).get("oldest"), now),
        words.count(len(sequence(facts.get("open")))),
        words.count(len(sequence(facts.get("uploading")))),
        when(facts.get("last_success"), now, missing="none yet"),
        rejected(facts),
    )
    return label, cells


def agent(document: Facts, now: datetime | None) -> Html:
    """Show details of the agent that only a search for a cause needs, folded."""
    about, watch = mapping(document.get("agent")), mapping(document.get("watch"))
    journal = mapping(document.get("journal"))
    scans = ", ".join(
        f"{reason} {words.count(amount)}" for reason, amount in mapping(watch.get("scans")).items()
    )
    pairs: list[tuple[str, Content]] = [
        ("Started", when(about.get("started"), now)),
        ("Heartbeat", when(about.get("heartbeat"), now)),
        ("Mode", text(about.get("mode"))),
        ("Ready", "yes" if about.get("ready") is True else "not yet"),
        ("Waits for", text(about.get("waits_for"))),
        (
            "Version",
            " ".join(filter(None, (text(about.get("version")), text(about.get("commit"))))),
        ),
        ("Native module", text(about.get("native"))),
        ("Reads from", name(about.get("local_data_dir"))),
        ("Watching", _watching(watch)),
        ("Directories watched", text(watch.get("watches"))),
        ("Not watched", text(watch.get("unwatched"))),
        ("Events", words.count(watch.get("events"))),
        ("In the queue", words.count(watch.get("buffered"))),
        ("Scans", scans),
        ("Found by scans", words.count(watch.get("found"))),
        ("Overflows", text(watch.get("overflows"))),
        ("Watches lost", text(watch.get("lost"))),
        ("Journal", f"{words.count(journal.get('entries'))} entries"),
        ("Replayed at the start", text(journal.get("replayed"))),
    ]
    return tag(
        "details",
        tag("summary", "About this agent"),
        fact_list(pairs),
        class_="card",
        data_key="agent",
    )


def _watching(watch: Facts) -> str:
    degraded = text(watch.get("degraded"))
    if degraded:
        return f"by scans only: {degraded}"
    source = text(watch.get("source")) or "yes"
    return f"by {source}; a scan is running" if watch.get("scanning") is True else f"by {source}"


def _uploads(uploads: Facts) -> tuple[str, str]:
    pending = f"{words.count(uploads.get('pending'))} under way"
    if uploads.get("failing") is True:
        return "failing", pending
    return pending, f"{words.counted(uploads.get('threads'), 'thread')}"


def _tile(label: str, figure: str, *more: Content) -> Html:
    return tag(
        "div", tag("h2", label), tag("p", figure, class_="figure"), tag("p", *more), class_="tile"
    )
