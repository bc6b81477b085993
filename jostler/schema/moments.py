"""The check of texts for DATE, TIME, DATETIME, TIMESTAMP and RANGE columns.

**Invariant:** a text is accepted only if it names a real moment of the years 1 to 9999.  Where no
source says what BigQuery does, the text is refused: second 60, hour 24, lower-case `t` or `z`, a
named zone other than UTC, single digits, more than six fraction digits in TIME and DATETIME.

Pure: each function returns the reason for refusing a text, or None.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

from jostler.schema.flaw import Reason

_DATE_RE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME_RE = re.compile(r"([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,6})?")
_TIMESTAMP_RE = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}/[0-9]{2}/[0-9]{2})[T ]"
    r"(?P<clock>[0-9]{2}:[0-9]{2}(?P<seconds>:[0-9]{2})?)"
    # Any number of fraction digits after seconds: the documentation has at most six, but Go writes
    # nine, and M-Lab's tables are loaded from such files.  BigQuery keeps microseconds.
    r"(?(seconds)(?:\.(?P<fraction>[0-9]+))?)"
    r"(?:Z| UTC|(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-5][0-9]))?)?"
)
_RANGE_RE = re.compile(r"\[([^,\[\])]+), ?([^,\[\])]+)\)")
_UNBOUNDED = frozenset({"UNBOUNDED", "NULL"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET_MAX = timedelta(hours=14)


def date_fault(text: str) -> Reason | None:
    """Check a DATE: `YYYY-MM-DD` and nothing else."""
    return None if _DATE_RE.fullmatch(text) and _is_date(text) else Reason.BAD_DATE


def time_fault(text: str) -> Reason | None:
    """Check a TIME: `HH:MM:SS[.SSSSSS]`."""
    found = _TIME_RE.fullmatch(text)
    return None if found and _is_time(found[1]) else Reason.BAD_TIME


def datetime_fault(text: str) -> Reason | None:
    """Check a DATETIME: a DATE, a space, a TIME; no zone.

    [?] A `T` between them is refused: the page on loading JSON mentions only the space.
    """
    day, separator, clock = text[:10], text[10:11], text[11:]
    good = separator == " " and not date_fault(day) and not time_fault(clock)
    return None if good else Reason.BAD_DATETIME


def timestamp_fault(text: str) -> Reason | None:
    """Check a TIMESTAMP: a date, `T` or a space, a time, with or without seconds and zone."""
    found = _TIMESTAMP_RE.fullmatch(text)
    if not found:
        return Reason.BAD_TIMESTAMP
    if not _is_date(found["date"].replace("/", "-")) or not _is_time(found["clock"]):
        return Reason.BAD_TIMESTAMP
    if not found["sign"]:
        return None
    if _offset(found) > _OFFSET_MAX:
        return Reason.BAD_TIMESTAMP
    try:
        _utc(found)
    except OverflowError:
        return Reason.OUT_OF_RANGE
    return None


def timestamp_us(text: str) -> int | None:
    """Return a TIMESTAMP in microseconds since 1970, later digits cut; None if it is not good."""
    if timestamp_fault(text):
        return None
    found = _TIMESTAMP_RE.fullmatch(text)
    assert found is not None
    micros = int(f"{found['fraction'] or '':0<6.6}")
    return (_utc(found) - _EPOCH) // timedelta(microseconds=1) + micros


def range_fault(text: str, element: str) -> Reason | None:
    """Check a RANGE: `[start, end)`, each a moment of the element's type or UNBOUNDED.

    The end must be later than the start.
    """
    found = _RANGE_RE.fullmatch(text)
    ends = [_range_end(end, element) for end in found.groups()] if found else [Reason.BAD_RANGE]
    bounds = [end for end in ends if end is not None]
    if any(isinstance(end, Reason) for end in bounds):
        return Reason.BAD_RANGE
    return Reason.BAD_RANGE if len(bounds) == len(ends) and bounds[0] >= bounds[1] else None


def _range_end(text: str, element: str) -> str | Reason | None:
    """Return one end as a text that sorts by time; None if it is UNBOUNDED."""
    if text.upper() in _UNBOUNDED:
        return None
    if element == "DATE":
        return date_fault(text) or text
    if element == "DATETIME":
        return datetime_fault(text) or f"{text[:19]}.{text[20:]:0<6}"
    if fault := timestamp_fault(text):
        return fault
    found = _TIMESTAMP_RE.fullmatch(text)
    assert found is not None
    return f"{_utc(found).isoformat()}.{found['fraction'] or '':0<6.6}"


def _offset(found: re.Match[str]) -> timedelta:
    return timedelta(hours=int(found["hours"] or 0), minutes=int(found["minutes"] or 0))


def _utc(found: re.Match[str]) -> datetime:
    """Return the second that a good TIMESTAMP names, without its fraction.

    Raises:
        OverflowError: it lies beyond the years 1 to 9999.
    """
    zone = timezone(-_offset(found) if found["sign"] == "-" else _offset(found))
    local = datetime.fromisoformat(f"{found['date'].replace('/', '-')}T{found['clock']}")
    return local.replace(tzinfo=zone).astimezone(UTC)


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_time(text: str) -> bool:
    try:
        time.fromisoformat(text)
    except ValueError:
        return False
    return True
