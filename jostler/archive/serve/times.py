"""Instants in requests and answers: milliseconds since 1970, and RFC 3339 for people.

Pure.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MS = timedelta(milliseconds=1)
# The years 2000 to 2099 are those of the folders; a day to either side belongs to them.
FIRST = datetime(1999, 12, 31, tzinfo=UTC)
LAST = datetime(2100, 1, 2, tzinfo=UTC)


def to_ms(when: datetime | None) -> int | None:
    """Return whole milliseconds since 1970, rounded down; None for None."""
    return None if when is None else (when - _EPOCH) // MS


def to_iso(when: datetime | None) -> str | None:
    """Return an instant in UTC with milliseconds, `2026-01-02T03:04:05.678Z`; None for None."""
    if when is None:
        return None
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_ms(text: str) -> datetime:
    """Read milliseconds since 1970.

    Raises:
        ValueError: the text is no whole number, or the instant lies outside of 2000 to 2099.
    """
    if not text.isascii() or not text.removeprefix("-").isdigit():
        raise ValueError(f"{text[:40]!r} is not a number of milliseconds since 1970")
    try:
        when = _EPOCH + int(text) * MS
    except (OverflowError, ValueError):
        when = None
    if when is None or not FIRST <= when <= LAST:
        raise ValueError(f"{text[:40]!r} milliseconds since 1970 is no instant of 2000 to 2099")
    return when


def end_of(text: str) -> datetime:
    """Read the end of a range: the last microsecond of this millisecond.

    Records show whole milliseconds, so a file that is shown to begin at `end` is in the range.

    Raises:
        ValueError: as `from_ms`.
    """
    return from_ms(text) + MS - timedelta(microseconds=1)
