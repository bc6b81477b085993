"""Spans of time: `10m`, `1d`, `3mon`; where buckets of them begin; and points in time.

**Invariant:** all times are UTC; a week begins on Monday.

Pure.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Unit(StrEnum):
    """A unit of a span, with its part in GoogleSQL."""

    SECOND = "SECOND"
    MINUTE = "MINUTE"
    HOUR = "HOUR"
    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    YEAR = "YEAR"


SECONDS = {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600, Unit.DAY: 86_400, Unit.WEEK: 604_800}
SHORT = {
    "s": Unit.SECOND, "m": Unit.MINUTE, "h": Unit.HOUR, "d": Unit.DAY, "w": Unit.WEEK,
    "mon": Unit.MONTH, "y": Unit.YEAR,
}  # fmt: skip
LONG = {unit.value.lower(): unit for unit in Unit}
MONTHS = (1, 2, 3, 4, 6)
_FIRST_MONDAY_S = 4 * 86_400  # 5 January 1970
_SPAN = re.compile(r"([0-9]{1,9})([A-Za-z]+)")
_MOST_S = 10_000 * 366 * 86_400
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?)?", re.ASCII)
_WRITTEN = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """A number of units; at least one."""

    count: int
    unit: Unit

    @property
    def seconds(self) -> int | None:
        """The length; None for months and years, which differ."""
        return self.count * SECONDS[self.unit] if self.unit in SECONDS else None

    def after(self, instant: datetime, times: int = 1) -> datetime:
        """Return the instant that is this span (or some of it; negative: before) away.

        Raises:
            OverflowError: there is no such year.
        """
        if self.seconds is not None:
            return instant + timedelta(seconds=self.seconds * times)
        months = self.count * (12 if self.unit is Unit.YEAR else 1) * times
        year, month = divmod(instant.year * 12 + instant.month - 1 + months, 12)
        if not 1 <= year <= 9999:  # noqa: PLR2004 - what a datetime holds
            raise OverflowError(f"the year {year}")
        day = min(instant.day, calendar.monthrange(year, month + 1)[1])
        return instant.replace(year=year, month=month + 1, day=day)


DAY = Span(1, Unit.DAY)


def span(text: str) -> Span:
    """Read `10m`, `1mon`.

    Raises:
        ValueError: it is no span; the message says what is expected.
    """
    match = _SPAN.fullmatch(text)
    unit = SHORT.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError("expected a number and one of s, m, h, d, w, mon, y, as in 10m")
    found = Span(int(match[1]), unit)
    length = found.seconds or found.count * 31 * 86_400
    if not 0 < length <= _MOST_S:
        raise ValueError("expected a span of more than nothing and less than 10,000 years")
    return found


def bucket_span(text: str) -> Span:
    """Read the span of a bucket, which is no longer than a year and divides it if it has months.

    Raises:
        ValueError: it is no such span; the message says what is expected.
    """
    found = span(text)
    if found.unit is Unit.MONTH and found.count not in MONTHS:
        raise ValueError("expected 1mon, 2mon, 3mon, 4mon or 6mon")
    if found.unit is Unit.YEAR and found.count != 1:
        raise ValueError("expected 1y: buckets are no longer than a year")
    if found.seconds is not None and found.seconds > 366 * 86_400:
        raise ValueError("expected a span of at most a year")
    return found


def bucket(instant: str, length: Span) -> str:
    """Return the SQL of the start of the bucket that an instant (SQL of a TIMESTAMP) lies in."""
    if length.count == 1:
        part = "WEEK(MONDAY)" if length.unit is Unit.WEEK else length.unit
        return f"TIMESTAMP_TRUNC({instant}, {part})"
    if length.seconds is None:
        month = f"DIV(EXTRACT(MONTH FROM {instant}) - 1, {length.count}) * {length.count} + 1"
        return f"TIMESTAMP(DATE(EXTRACT(YEAR FROM {instant}), {month}, 1))"
    begin = _FIRST_MONDAY_S if length.unit is Unit.WEEK else 0
    since = f"UNIX_SECONDS({instant})" + (f" - {begin}" if begin else "")
    number = f"CAST(FLOOR(({since}) / {length.seconds}) AS INT64)"  # DIV would round up before 1970
    again = f" + {begin}" if begin else ""
    return f"TIMESTAMP_SECONDS({number} * {length.seconds}{again})"


def point(text: str) -> datetime:
    """Read a time of the form `yyyyMMdd[HH[mm[ss]]]`.

    Raises:
        ValueError: it is no such time.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError("expected a time as yyyyMMdd[HH[mm[ss]]]")
    return _instant(match)


def written_time(text: str) -> datetime | None:
    """Read a time that a text is compared with: `2026-01-02[ 10:11[:12]]` or as `point`."""
    match = _WRITTEN.fullmatch(text) or _TIME.fullmatch(text)
    try:
        return _instant(match) if match else None
    except ValueError:
        return None


def _instant(match: re.Match[str]) -> datetime:
    parts = [int(group or 0) for group in match.groups()]
    try:
        return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError as exc:
        raise ValueError(f"expected a time that there is: {exc}") from exc


def timestamp_literal(instant: datetime) -> str:
    """Return the SQL of an instant."""
    return f"TIMESTAMP '{instant.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')}+00'"
