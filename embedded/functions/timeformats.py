"""Format and parse dates and times by format elements that DuckDB lacks ("Format elements").

**Invariant:** elements have the reference's meaning, for formatting and parsing.  Parts that a text
does not have are those of 1970-01-01 00:00:00.

Unknown elements, and %Z in zones other than UTC, are errors.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_ELEMENT = re.compile(r"%(E[0-9*]S|E4Y|Ez|-d|S\.%f|.)", re.DOTALL)
_LONGER = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "T": "%H:%M:%S",
    "x": "%m/%d/%y", "X": "%H:%M:%S", "h": "%b", "-d": "%e", "S.%f": "%E6S", "E4Y": "%Y",
}  # fmt: skip
CLOCK = frozenset({"H", "I", "M", "S", "p", "P", "k", "l", "s", "Z", "z", "Ez"})
CALENDAR = frozenset("AaBbCdeGgjmQUuVWwYysZz") | {"Ez"}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_PARSED = {
    "Y": r"(?P<Y>[0-9]{1,4})", "y": r"(?P<y>[0-9]{2})", "m": r"(?P<m>[0-9]{1,2})",
    "d": r"(?P<d>[0-9]{1,2})", "e": r" ?(?P<d>[0-9]{1,2})", "H": r"(?P<H>[0-9]{1,2})",
    "k": r" ?(?P<H>[0-9]{1,2})", "I": r"(?P<I>[0-9]{1,2})", "M": r"(?P<M>[0-9]{1,2})",
    "S": r"(?P<S>[0-9]{1,2})", "p": r"(?P<p>[AaPp][Mm])", "s": r"(?P<s>-?[0-9]+)",
    "b": r"(?P<b>[A-Za-z]+)", "B": r"(?P<b>[A-Za-z]+)", "a": "[A-Za-z]+", "A": "[A-Za-z]+",
    "E*S": r"(?P<S>[0-9]{1,2})(?:\.(?P<f>[0-9]{1,6})[0-9]*)?",
    "z": r"(?P<z>[+-][0-9]{2}:?[0-9]{2})", "Ez": r"(?P<z>[+-][0-9]{2}:[0-9]{2}|Z)", "%": "%",
}  # fmt: skip


def longer(pattern: str) -> str:
    """Replace an element that abbreviates several, such as %F, by these."""
    return _ELEMENT.sub(lambda m: _LONGER.get(m[1], m[0]), pattern)


def elements(pattern: str) -> set[str]:
    """Return the elements of a format, without the percent sign."""
    return {found[1] for found in _ELEMENT.finditer(longer(pattern))}


def formatted(
    value: datetime | None, utc: datetime | None, pattern: str | None, zone: str | None
) -> str | None:
    """Format a timestamp.

    Args:
        value: its date and time in the zone.
        utc: its date and time in UTC.
        pattern: the format.
        zone: the zone's name.

    Raises:
        ValueError: an element is unknown.
    """
    if value is None or utc is None or pattern is None:
        return None
    offset = value - utc

    def one(found: re.Match[str]) -> str:
        return _element(found[1], value, offset, zone or "UTC")

    return _ELEMENT.sub(one, longer(pattern))


def _element(name: str, value: datetime, offset: timedelta, zone: str) -> str:
    if name in {"%", "n", "t"}:
        return {"%": "%", "n": "\n", "t": "\t"}[name]
    if name in {"z", "Ez"}:
        minutes = round(abs(offset.total_seconds()) / 60)
        sign = "-" if offset < timedelta(0) else "+"
        colon = ":" if name == "Ez" else ""
        return f"{sign}{minutes // 60:02}{colon}{minutes % 60:02}"
    if name == "Z" and zone == "UTC":
        return "UTC"
    if name == "s":
        return str((value - offset - datetime(1970, 1, 1)) // timedelta(seconds=1))  # noqa: DTZ001
    if name.startswith("E") and name.endswith("S"):
        return _seconds(name[1], value)
    found = _simple(name, value)
    if found is None:
        raise ValueError(f"The format element %{name} is not supported by the embedded BigQuery")
    return found


def _seconds(digits: str, value: datetime) -> str:
    fraction = f"{value.microsecond:06}"
    if digits == "*":
        fraction = fraction.rstrip("0")
    else:
        fraction = fraction.ljust(int(digits), "0")[: int(digits)]
    return f"{value.second:02}.{fraction}" if fraction else f"{value.second:02}"


def _simple(name: str, value: datetime) -> str | None:
    year, week, weekday = value.isocalendar()
    hour = (value.hour + 11) % 12 + 1
    numbers = {
        "Y": f"{value.year}", "C": f"{value.year // 100:02}", "y": f"{value.year % 100:02}",
        "G": f"{year}", "g": f"{year % 100:02}", "V": f"{week:02}", "u": f"{weekday}",
        "m": f"{value.month:02}", "d": f"{value.day:02}", "e": f"{value.day:2}",
        "Q": f"{(value.month + 2) // 3}", "H": f"{value.hour:02}", "k": f"{value.hour:2}",
        "I": f"{hour:02}", "l": f"{hour:2}", "M": f"{value.minute:02}", "S": f"{value.second:02}",
    }  # fmt: skip
    if name in numbers:
        return numbers[name]
    if name == "P":
        return "am" if value.hour < 12 else "pm"  # noqa: PLR2004 - noon
    return value.strftime(f"%{name}") if name in set("AaBbjUWwp") else None


def parsed(text: str | None, pattern: str | None) -> datetime | None:
    """Parse a text by a format; return its date and time, in UTC if the text has an offset.

    Raises:
        ValueError: the text does not match the format.
    """
    if text is None or pattern is None:
        return None
    found = re.fullmatch(rf"\s*{_expression(pattern)}\s*", text)
    if found is None:
        raise ValueError(f'Failed to parse input string "{text}"')
    parts = {name: part for name, part in found.groupdict().items() if part is not None}
    try:
        return _built(parts)
    except (ValueError, IndexError, OverflowError):
        raise ValueError(f'Failed to parse input string "{text}"') from None


def _expression(pattern: str) -> str:
    """Return a format's regular expression; white space in it matches any white space."""
    out, at, pattern = [], 0, longer(pattern)
    for found in _ELEMENT.finditer(pattern):
        out.append(_plain(pattern[at : found.start()]))
        name = re.sub(r"E[0-9*]S", "E*S", found[1])
        if name not in _PARSED:
            raise ValueError(f"Parsing by %{found[1]} is not supported by the embedded BigQuery")
        out.append(_PARSED[name])
        at = found.end()
    return "".join(out) + _plain(pattern[at:])


def _plain(text: str) -> str:
    return "".join(r"\s*" if char.isspace() else re.escape(char) for char in text)


def _built(parts: dict[str, str]) -> datetime:
    if "s" in parts:
        return datetime(1970, 1, 1) + timedelta(seconds=int(parts["s"]))  # noqa: DTZ001
    year = int(parts.get("Y", 1970))
    if "y" in parts:
        short = int(parts["y"])
        year = short + (2000 if short < 69 else 1900)  # noqa: PLR2004 - as strptime has it
    month = int(parts.get("m", 1))
    if "b" in parts:
        month = _MONTHS.index(parts["b"][:3].lower()) + 1
    hour = int(parts.get("H", 0))
    if "I" in parts:
        hour = int(parts["I"]) % 12 + (12 if parts.get("p", "").lower() == "pm" else 0)
    micros = int(parts.get("f", "0").ljust(6, "0"))
    value = datetime(
        year, month, int(parts.get("d", 1)), hour, int(parts.get("M", 0)),
        int(parts.get("S", 0)), micros, UTC,
    ).replace(tzinfo=None)  # fmt: skip
    zone = parts.get("z", "Z")
    if zone == "Z":
        return value
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return value + offset if zone[0] == "-" else value - offset
