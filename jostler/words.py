"""Numbers, sizes, durations, instants and names in a form for people.

**Invariant:** every function accepts any value.  A value that is missing or not a number becomes a
dash.  Returned text has no control characters, so it is safe on a terminal.

Pure: the current time is an argument.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from jostler.format.names import display

DASH = "–"  # noqa: RUF001 - a dash is meant
MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
KIB = 1024
_LARGE = 100
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_FEW_S = 9.5
_SECOND_PARTS = ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min"), (1, "s"))


def text(value: object) -> str:
    """Return a string, or a number as text; for anything else an empty text."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def number(value: object) -> float | None:
    """Return a finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) else None


def count(value: object) -> str:
    """Write a count with thousands separators; below ten, a fraction keeps one or two digits."""
    known = number(value)
    if known is None:
        return DASH
    if known == int(known) or known >= _LARGE:
        return f"{round(known):,}"
    return f"{known:.3g}"


def counted(value: object, noun: str) -> str:
    """Write a count and its noun: `1 file`, `2 files`; `noun` must have a regular plural."""
    return f"{count(value)} {noun}" if value == 1 else f"{count(value)} {noun}s"


def size(value: object) -> str:
    """Write a number of bytes."""
    known = number(value)
    if known is None:
        return DASH
    power = 0
    while abs(known) >= KIB and power < len(_SIZES) - 1:
        known /= KIB
        power += 1
    digits = 0 if power == 0 or abs(known) >= _LARGE else 1
    return f"{known:.{digits}f} {_SIZES[power]}"


def duration(seconds: object) -> str:
    """Write seconds as their two largest units: `0.9 s`, `8 min 48 s`, `3 d 4 h`."""
    known = number(seconds)
    if known is None:
        return DASH
    if known < MINUTE_S:
        return f"{max(0.0, round(known, 2)):.2g} s" if known < _FEW_S else f"{int(known)} s"
    left = int(known)
    parts: list[str] = []
    for length, unit in _SECOND_PARTS:
        amount, rest = divmod(left, length)
        if amount:
            parts.append(f"{amount:,} {unit}")
            left = rest
        if len(parts) == 2 or (parts and not amount):  # noqa: PLR2004 - two units are enough
            break
    return " ".join(parts)


def instant(value: object) -> datetime | None:
    """Read an RFC 3339 instant; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        read = datetime.fromisoformat(value)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def ago(then: datetime, now: datetime) -> str:
    """Write how long before or after `now` an instant is."""
    seconds = (now - then).total_seconds()
    if abs(seconds) < 1:
        return "now"
    if seconds < 0:
        return f"in {duration(math.ceil(-seconds))}"
    return f"{duration(math.floor(seconds))} ago"


def clock(then: datetime, now: datetime) -> str:
    """Write the time of day in UTC, with the date if it is not today's."""
    return f"{then:%H:%M:%S}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M:%S}"


def rfc3339(when: datetime) -> str:
    """Write an aware instant in UTC, with microseconds."""
    return when.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    r"""Replace invisible, control and text-direction characters by their escapes.

    Printable text stays as it is; other characters become `\t`, `\x1b`, `\u202e`, `\ud800`, etc.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def shown(text: str) -> str:
    """Make a path or any other text safe for JSON and terminals."""
    return visible(display(text))
