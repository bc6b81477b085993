"""Texts of dates and times that a question holds, read as BigQuery reads them.

Pure.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAY = r"(\d{4})-(\d{1,2})-(\d{1,2})"
CLOCK = r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,6}))?"
OFFSET = r"(?: ?([zZ]|[+-]\d{1,2}(?::\d{2})?)| ([A-Za-z_]+(?:/[A-Za-z_+0-9-]+)*))?"
_DATE = re.compile(DAY, re.ASCII)
_DATETIME = re.compile(rf"{DAY}(?:[ Tt]{CLOCK})?", re.ASCII)
_TIMESTAMP = re.compile(rf"{DAY}(?:[ Tt]{CLOCK})?{OFFSET}", re.ASCII)


def zone(name: str) -> tzinfo | None:
    """Return a time zone by its name or offset; None if there is none."""
    offset = re.fullmatch(r"(?:UTC)?([+-])(\d{1,2})(?::(\d{2}))?", name)
    if offset is not None:
        shift = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if shift > timedelta(hours=14):
            return None
        return timezone(-shift if offset[1] == "-" else shift)
    if name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def parsed_date(text: str) -> date | None:
    """Return the DATE of a text; None if it has none."""
    found = _DATE.fullmatch(text.strip())
    try:
        return date(int(found[1]), int(found[2]), int(found[3])) if found else None
    except ValueError:
        return None


def parsed_datetime(text: str) -> datetime | None:
    """Return the DATETIME of a text, without a time zone."""
    found = _DATETIME.fullmatch(text.strip())
    return _built(found) if found else None


def parsed_timestamp(text: str, default: tzinfo = UTC) -> datetime | None:
    """Return the TIMESTAMP of a text, in UTC."""
    found = _TIMESTAMP.fullmatch(text.strip())
    place = default
    if found is not None and (found[8] or found[9]):
        named = zone(found[8] or found[9])
        if named is None:
            return None
        place = named
    plain = _built(found) if found else None
    try:
        return plain.replace(tzinfo=place).astimezone(UTC) if plain else None
    except OverflowError:
        return None


def _built(found: re.Match[str]) -> datetime | None:
    year, month, day, hour, minute, second = (int(found[place] or 0) for place in range(1, 7))
    micros = int((found[7] or "0").ljust(6, "0"))
    try:
        return datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - no zone
    except ValueError:
        return None
