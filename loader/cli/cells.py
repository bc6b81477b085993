"""Values of an answer as texts: for a table, for JSON and for CSV.

**Invariant:** a text for a table is one line without control characters, whatever the value is.

Pure.
"""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from datetime import date, datetime, time
from decimal import Decimal


def plain(value: object) -> object:  # noqa: PLR0911 - one for each kind of value
    """Convert a value of the client to a JSON value, written as BigQuery would load it."""
    match value:
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case None | bool() | int() | float() | str():
            return value
    return str(value)


def cell(value: object) -> str:
    """Write a value for a person on one line: NULL as NULL, nested values as JSON.

    Control characters are written as escapes.
    """
    value = plain(value)
    if value is None:
        return "NULL"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def padded(text: str, wide: int, *, right: bool) -> str:
    """Fill a text up to so many columns of a terminal."""
    blank = " " * (wide - width(text))
    return blank + text if right else text + blank


def csv_field(value: object) -> str:
    """Write a value for CSV: NULL as nothing, nested values as JSON."""
    value = plain(value)
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
