"""The page of search results, and how the text of the search box is understood.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.archive.catalogue import Query
from jostler.archive.serve.pages.layout import Site, card, files_table, page
from jostler.web.html import tag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.catalogue import File

_HASH_RE = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
_TIME_RE = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d(?::\d\d(?::\d\d(?:\.\d{1,6})?)?)?)(Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_WORK_ID_RE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SPANS = {0: timedelta(days=1), 2: timedelta(hours=1), 5: timedelta(minutes=1)}


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the text: what it may be, and the query for it."""

    description: str
    query: Query


@dataclass(frozen=True, slots=True)
class Results:
    """What one reading has found; `more` if there is more than is shown."""

    reading: Reading
    files: Sequence[File]
    more: bool


def readings(text: str, first: date, last: date) -> list[Reading]:
    """Return what a text may be: a time, a hash, a work id, a name or a pattern.

    Args:
        text: what was typed.
        first: the first day to search, unless the text itself names its days.
        last: the last day to search.
    """
    text = text.strip()
    if found := _TIME_RE.fullmatch(text):
        try:
            start, end = _range(found)
        except (ValueError, OverflowError):
            return []
        return [Reading(f"at {text}", Query(start=start, end=end))]
    if _HASH_RE.fullmatch(text):
        return [Reading(f"with the hash {text}", Query(hash=text, first_day=first, last_day=last))]
    try:
        named = Query(filename=text, first_day=first, last_day=last) if text else None
    except ValueError:
        named = None
    found_readings = [Reading(f"named {text}", named)] if named else []
    if _WORK_ID_RE.fullmatch(text):
        query = Query(work_id=text, first_day=first, last_day=last)
        found_readings.append(Reading(f"of the job {text}", query))
    return found_readings


def _range(found: re.Match[str]) -> tuple[datetime, datetime]:
    """Return the range that a time means: its day, hour or minute, or the second."""
    day, clock, zone = found[1], found[2] or "", found[3] or "Z"
    full = f"{clock}:00" if len(clock) == 2 else clock or "00:00"  # noqa: PLR2004 - hh
    start = datetime.fromisoformat(f"{day}T{full}{zone}").astimezone(UTC)
    span = _SPANS.get(len(clock), timedelta(seconds=1))
    return start, start + span - timedelta(microseconds=1)


def search(
    site: Site,
    text: str,
    results: Sequence[Results],
    *,
    first: date,
    last: date,
    problems: Sequence[str],
) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        text: what was typed.
        results: of each reading.
        first: the first day that was searched.
        last: the last day that was searched.
        problems: what could not be read.
    """
    sections = [
        card(
            f"Files {one.reading.description}",
            files_table(one.files, site.now),
            tag("p", "There are more; `jostler list` shows all.", class_="note")
            if one.more
            else None,
        )
        for one in results
    ]
    days = f"Searched: folders of {first} to {last}, and those of the days that the text names."
    if not text.strip():
        days = "Type a file's name (with * and ?), a hash, a work id, or a time."
    elif not results:
        days = "This is no name, hash, work id or time."
    note = tag("p", days, class_="note")
    return page(
        site,
        f"Search: {text}",
        *sections,
        note,
        trail=[("archive", "/")],
        asked=text,
        problems=problems,
    )
