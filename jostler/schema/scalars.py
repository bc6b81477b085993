"""The check of JSON values for each column type except RECORD.

**Invariant:** where no source says what BigQuery does, or sources disagree, the value is refused:
one bad row would fail the load of a whole day, while a refused row is kept and counted.  Each such
choice is marked `[?]`.

Pure: a rule checks one parsed value (see `document`), neither null nor a REPEATED column's array.
"""

from __future__ import annotations

import binascii
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

from jostler.schema import moments
from jostler.schema.fields import spelled
from jostler.schema.flaw import Flaw, Reason, shown
from jostler.schema.geography import is_geography
from jostler.schema.stream import CONTAINERS, Part, values

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema.fields import Field

    Rule = Callable[[Part], Flaw | None]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
INT64_DIGITS = 19
JSON_DEPTH = 500
# A number in a TIMESTAMP is an epoch.  One of the documentation's two examples is in range only as
# seconds, the other only as milliseconds, so the wider range is accepted.
EPOCH_MIN, EPOCH_MAX = -62_135_596_800_000, 253_402_300_799_999
BOOLEANS = frozenset({"true", "false", "1", "0", "t", "f", "yes", "no", "y", "n"})
FLOAT_WORDS = frozenset({"NaN", "Infinity", "-Infinity"})
_DECIMAL_DIGITS = 40
_EXACT = Context(prec=120, rounding=ROUND_HALF_UP)
_BIGNUMERIC_END = Decimal(2**255).scaleb(-38, _EXACT)

_INTEGER_RE = re.compile(r"-?[0-9]+")
_NUMBER_RE = re.compile(r"-?(?P<digits>[0-9]+(?:\.[0-9]+)?)(?:[eE](?P<exponent>[+-]?[0-9]+))?")


def rule(field: Field) -> Rule:
    """Return the rule for a column that is not a RECORD."""
    match field.type:
        case "STRING":
            return lambda value: _string(value, field.max_length)
        case "BYTES":
            return lambda value: _bytes(value, field.max_length)
        case "NUMERIC" | "BIGNUMERIC":
            return lambda value: _decimal(value, field)
        case "RANGE":
            return lambda value: _range(value, field.range_element)
        case _:
            return _RULES[field.type]


def flaw(reason: Reason, expected: str, value: Part) -> Flaw:
    """Return a flaw that says what was expected and what was found."""
    return Flaw(reason=reason, field="", detail=f"expected {expected}, found {shown(value)}")


def unclean(text: str) -> Flaw | None:
    """Refuse text that a STRING cannot contain: a lone surrogate, and [?] the character NUL."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        return flaw(Reason.LONE_SURROGATE, "whole characters", text)
    if "\0" in text:
        return flaw(Reason.NUL_CHARACTER, "text without the character NUL", text)
    return None


def _string(value: Part, max_length: int | None) -> Flaw | None:
    """Accept text, and numbers and booleans, which become text."""
    if isinstance(value, CONTAINERS):
        return flaw(Reason.WRONG_TYPE, "STRING", value)
    if isinstance(value, str) and (found := unclean(value)):
        return found
    if max_length is not None:
        text = value if isinstance(value, (str, bytes)) else str(value)
        if len(text) > max_length:
            return flaw(Reason.TOO_LONG, f"STRING of at most {max_length} characters", value)
    return None


def _bytes(value: Part, max_length: int | None) -> Flaw | None:
    """Accept base64 with padding; [?] not the url-safe alphabet."""
    if not isinstance(value, str):
        return flaw(Reason.WRONG_TYPE, "BYTES in base64", value)
    try:
        found = binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        return flaw(Reason.BAD_BASE64, "BYTES in base64", value)
    if max_length is not None and len(found) > max_length:
        return flaw(Reason.TOO_LONG, f"BYTES of at most {max_length} bytes", value)
    return None


def _integer(value: Part) -> Flaw | None:
    """Accept digits, quoted or not; [?] neither `1.0` nor `1e3`."""
    if isinstance(value, bytes) and len(value) < INT64_DIGITS and value.isdigit():
        return None  # the usual case; this shortcut halves the time for an NDT7 row
    literal = _literal(value)
    if literal is None or not _INTEGER_RE.fullmatch(literal):
        return flaw(Reason.WRONG_TYPE, "INTEGER", value)
    sign = "-" if literal.startswith("-") else ""
    digits = literal.lstrip("-").lstrip("0") or "0"
    if len(digits) > INT64_DIGITS or not INT64_MIN <= int(sign + digits) <= INT64_MAX:
        return flaw(Reason.OUT_OF_RANGE, "INTEGER of 64 bits", value)
    return None


def _float(value: Part) -> Flaw | None:
    """Accept numbers, quoted or not, and the three special words; [?] no number that overflows."""
    literal = _literal(value)
    if literal in FLOAT_WORDS:
        return None
    if literal is None or not _NUMBER_RE.fullmatch(literal):
        return flaw(Reason.WRONG_TYPE, "FLOAT", value)
    if not math.isfinite(float(literal)):
        return flaw(Reason.OUT_OF_RANGE, "FLOAT of 64 bits", value)
    return None


def _decimal(value: Part, field: Field) -> Flaw | None:
    """Accept numbers, quoted or not; digits beyond the scale are rounded as BigQuery does."""
    literal = _literal(value)
    found = _NUMBER_RE.fullmatch(literal) if literal is not None else None
    if literal is None or found is None:
        return flaw(Reason.WRONG_TYPE, field.type, value)
    if not found["digits"].strip("0."):
        return None
    try:
        number = Decimal(literal).copy_abs()
    except InvalidOperation:  # an exponent of more than 18 digits
        number = Decimal("0" if (found["exponent"] or "").startswith("-") else "1e99")
    scale, limit = _decimal_bounds(field)
    if number.adjusted() > _DECIMAL_DIGITS or _rounded(number, scale) >= limit:
        return flaw(Reason.OUT_OF_RANGE, spelled(field), value)
    return None


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _decimal_bounds(field: Field) -> tuple[int, Decimal]:
    """Return the number of digits after the point, and the smallest number that is too big."""
    if field.precision is not None:
        scale = field.scale or 0
        return scale, Decimal(10) ** (field.precision - scale)
    if field.type == "NUMERIC":
        return 9, Decimal(10) ** 29
    return 38, _BIGNUMERIC_END


def _boolean(value: Part) -> Flaw | None:
    """Accept true and false, 1 and 0, and the quoted words for them in any letter case."""
    if isinstance(value, bool):
        return None
    literal = _literal(value)
    if literal is not None and literal.isascii() and literal.lower() in BOOLEANS:
        return None
    return flaw(Reason.WRONG_TYPE, "BOOLEAN", value)


def _timestamp(value: Part) -> Flaw | None:
    """Accept text, or a number as an epoch; [?] no epoch in quotes."""
    if isinstance(value, bytes):
        if EPOCH_MIN <= float(value) <= EPOCH_MAX:
            return None
        return flaw(Reason.OUT_OF_RANGE, "TIMESTAMP of the years 1 to 9999", value)
    return _moment(value, "TIMESTAMP", moments.timestamp_fault)


def _moment(value: Part, name: str, fault: Callable[[str], Reason | None]) -> Flaw | None:
    if not isinstance(value, str):
        return flaw(Reason.WRONG_TYPE, name, value)
    reason = fault(value)
    return flaw(reason, name, value) if reason else None


def _range(value: Part, element: str) -> Flaw | None:
    """Accept the literal `[start, end)`; [?] not an object with start and end."""
    name = f"RANGE<{element}> like '[start, end)'"
    return _moment(value, name, lambda text: moments.range_fault(text, element))


def _geography(value: Part) -> Flaw | None:
    """Accept text that is WKT, GeoJSON or hexadecimal WKB; [?] no GeoJSON object."""
    name = "GEOGRAPHY as text"
    if not isinstance(value, str):
        return flaw(Reason.WRONG_TYPE, name, value)
    if found := unclean(value):
        return found
    return None if is_geography(value) else flaw(Reason.BAD_GEOGRAPHY, name, value)


def _json(value: Part) -> Flaw | None:
    """Accept any value of valid text and 64-bit numbers, even with duplicate keys (first wins)."""
    for part, depth in values(value):
        if isinstance(part, str):
            if found := unclean(part):
                return found
        elif isinstance(part, bytes):
            if not math.isfinite(float(part)):
                return flaw(Reason.OUT_OF_RANGE, "JSON with numbers of 64 bits", part)
        elif depth > JSON_DEPTH and isinstance(part, CONTAINERS):
            return flaw(Reason.TOO_DEEP, f"JSON of at most {JSON_DEPTH} levels", part)
    return None


def _literal(value: Part) -> str | None:
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else None


_RULES: dict[str, Rule] = {
    "INTEGER": _integer,
    "FLOAT": _float,
    "BOOLEAN": _boolean,
    "TIMESTAMP": _timestamp,
    "DATE": lambda value: _moment(value, "DATE as YYYY-MM-DD", moments.date_fault),
    "TIME": lambda value: _moment(value, "TIME", moments.time_fault),
    "DATETIME": lambda value: _moment(value, "DATETIME", moments.datetime_fault),
    "GEOGRAPHY": _geography,
    "JSON": _json,
}
