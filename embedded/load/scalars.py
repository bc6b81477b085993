"""Convert one JSON value for a column of a simple type, by the rules of a BigQuery load job.

**Invariant:** DuckDB's JSON reader stores a converter's result without changing its meaning.

A value that the documentation does not accept raises a `Flaw` with BigQuery's message.  So does one
on which the documentation says nothing, such as `1.0` for INTEGER or url-safe base64.
Source of every rule: "Loading JSON data from Cloud Storage" and "Data types".
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from embedded.model.fields import Field

    Converter = Callable[[object, str], object]

INT64 = range(-(2**63), 2**63)
INTEGER_DIGITS_MAX = 4_000  # Python's int() accepts 4,300
INTEGER = re.compile(r"(-?)0*([0-9]{1,19})")
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
DATETIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9:]{8}(?:\.[0-9]{1,6})?)")
# The documentation has at most six fraction digits; up to nine are read here, as Go writes them.
TIMESTAMP = re.compile(
    r"([0-9]{4})([-/])([0-9]{2})\2([0-9]{2})[ T]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:Z| UTC|([+-])([0-9]{1,2})(?::([0-5][0-9]))?)?"
)
TRUE = frozenset({"true", "t", "yes", "y", "1"})
FALSE = frozenset({"false", "f", "no", "n", "0"})
SPECIAL_FLOATS = frozenset({"NaN", "Infinity", "-Infinity"})
INFINITE = (math.inf, -math.inf)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = (-62_135_596_800, 253_402_300_799)  # the years 1 to 9999
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)  # BigQuery rounds half away from zero
# How many whole digits and fraction digits are stored.  DuckDB's widest decimal has 38 digits,
# BIGNUMERIC has 76: a value that needs more than 38 is refused, never rounded.
BIGNUMERIC_END = Decimal(2**255).scaleb(-38, WIDE)
DECIMALS = {"NUMERIC": (29, 9), "BIGNUMERIC": (20, 18)}


class NumberText(str):
    """The text of a JSON number that is not an integer, or is a very long one.

    The converters for FLOAT and NUMERIC parse it.
    """

    __slots__ = ()


def integer(text: str) -> int | NumberText:
    """Parse an integer; keep the text of one too long for any type, which Python may refuse."""
    return int(text) if len(text) <= INTEGER_DIGITS_MAX else NumberText(text)


class Flaw(Exception):  # noqa: N818 - it is data about a row, not a failure of this program
    """A row cannot be loaded; the text is BigQuery's message."""


def converter(field: Field) -> Converter:
    """Return the function that converts a JSON value (not null) to the field's stored form."""
    if field.type in DECIMALS:
        return _decimal(field)
    if field.max_length:
        return _limited(field)
    return PLAIN[field.type]


def _unfit(value: object, name: str, kind: str) -> Flaw:
    if isinstance(value, list):
        return Flaw(f"Array specified for non-repeated field: {name}.")
    if isinstance(value, dict):
        return Flaw(f"JSON object specified for non-record field: {name}")
    if isinstance(value, bool):
        text = "true" if value else "false"
        return Flaw(f"Could not convert value 'bool_value: {text}' to {kind}. Field: {name}")
    if type(value) is str:
        return Flaw(
            f"Could not convert value 'string_value: \"{value}\"' to {kind}. "
            f"Field: {name}; Value: {value}"
        )
    shown = f"'number_value: {value}'"
    return Flaw(f"Could not convert value {shown} to {kind}. Field: {name}; Value: {value}")


def _string(value: object, name: str) -> object:
    if type(value) is str or type(value) is NumberText:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    raise _unfit(value, name, "string")


def _bytes(value: object, name: str) -> object:
    if type(value) is not str:
        raise _unfit(value, name, "bytes")
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise Flaw(f"Could not decode base64 string to bytes. Field: {name}") from exc
    return "".join(
        f"\\x{byte:02X}" for byte in raw
    )  # the form that DuckDB casts from VARCHAR to BLOB


def _limited(field: Field) -> Converter:
    plain = PLAIN[field.type]
    width = 4 if field.type == "BYTES" else 1  # _bytes writes up to four characters per byte

    def convert(value: object, name: str) -> object:
        text = str(plain(value, name))
        if len(text) > field.max_length * width:
            raise Flaw(f"Field {name}: value has more than the maximum of {field.max_length}")
        return text

    return convert


def _integer(value: object, name: str) -> object:
    if type(value) is int:
        number = value
    elif type(value) is str and (found := INTEGER.fullmatch(value)):
        number = int(found[1] + found[2])
    else:
        raise _unfit(value, name, "integer")
    if number not in INT64:
        raise _unfit(value, name, "integer")
    return number


def _float(value: object, name: str) -> object:
    if type(value) is not NumberText and type(value) is not int:
        if type(value) is not str:
            raise _unfit(value, name, "double")
        if value in SPECIAL_FLOATS:
            return value
        if not NUMBER.fullmatch(value):
            raise _unfit(value, name, "double")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if number in INFINITE:
        raise _unfit(value, name, "double")
    return number or 0.0  # BigQuery stores no negative zero


def _boolean(value: object, name: str) -> object:
    if isinstance(value, bool):
        return value
    text = str(value).lower() if isinstance(value, str | int) else ""
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    raise _unfit(value, name, "boolean")


def _date(value: object, name: str) -> object:
    if type(value) is str and DATE.fullmatch(value):
        try:
            date.fromisoformat(value)
        except ValueError:
            pass
        else:
            return value
    raise _unfit(value, name, "date")


def _time(value: object, name: str) -> object:
    if type(value) is str and _is_time(value):
        return value
    raise _unfit(value, name, "time")


def _is_time(text: str) -> bool:
    found = TIME.fullmatch(text)
    return found is not None and found[1] < "24" and found[2] < "60" and found[3] < "60"


def _datetime(value: object, name: str) -> object:
    found = DATETIME.fullmatch(value) if type(value) is str else None
    if found and _is_time(found[2]):
        return f"{_date(found[1], name)} {found[2]}"
    raise _unfit(value, name, "datetime")


def _timestamp(value: object, name: str) -> object:
    if type(value) is str:
        found = TIMESTAMP.fullmatch(value)
        instant = _instant(found) if found else None
    else:
        instant = _epoch(value)
    if instant is None:
        raise _unfit(value, name, "timestamp")
    return instant.isoformat(" ")


def _instant(found: re.Match[str]) -> datetime | None:
    year, _, month, day, hour, minute, second, fraction, *zone = found.groups()
    sign, off_hours, off_minutes = zone
    micros = int(f"{fraction or '':0<6}"[:6])  # digits beyond microseconds are dropped
    offset = timedelta(hours=int(off_hours or 0), minutes=int(off_minutes or 0))
    if offset > timedelta(hours=14):
        return None
    try:
        wall = datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micros, UTC
        )
        return wall + offset if sign == "-" else wall - offset
    except (ValueError, OverflowError):
        return None


def _epoch(value: object) -> datetime | None:
    """Read a number as seconds since the epoch, or as milliseconds if too large for seconds.

    BigQuery's page has an example of each.  It does not say what a number in both ranges means;
    seconds is a guess.
    """
    if isinstance(value, bool) or not isinstance(value, NumberText | int):
        return None
    first, last = SECONDS
    try:
        number = float(value)
    except OverflowError:
        return None
    if first <= number <= last:
        micros = 1_000_000
    elif first * 1000 <= number <= last * 1000 + 999:
        micros = 1000
    else:
        return None
    try:
        exact = Decimal(value)
    except InvalidOperation:  # an exponent of more than 18 digits: 0, as the value is in range
        exact = Decimal(0)
    try:
        return EPOCH + timedelta(microseconds=int(exact * micros))
    except OverflowError:
        return None


def _decimal(field: Field) -> Converter:
    kind = field.type
    whole, scale = DECIMALS[kind]
    if field.precision:
        whole, scale = field.precision - field.scale, field.scale
    step = Decimal(1).scaleb(-scale)
    limit = Decimal(10) ** whole
    exact = kind == "BIGNUMERIC" and not field.precision

    def convert(value: object, name: str) -> object:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise _unfit(value, name, kind.lower())
        if isinstance(value, str) and not NUMBER.fullmatch(value):
            raise _unfit(value, name, kind.lower())
        number = _exactly(value)
        try:
            rounded = number.quantize(step, context=WIDE)
        except InvalidOperation:  # more digits than any type has
            rounded = BIGNUMERIC_END
        size = rounded.copy_abs()  # abs() would round to the context's 28 digits
        if size >= (BIGNUMERIC_END if exact else limit):
            raise Flaw(f"Invalid {kind} value: {value}. Field: {name}")
        if exact and (size >= limit or rounded != number):
            raise Flaw(f"{kind} value {value} is wider than the embedded BigQuery can hold: {name}")
        return f"{rounded:f}"

    return convert


def _exactly(value: str | int) -> Decimal:
    """Parse a number; Python's Decimal refuses exponents of more than 18 digits."""
    try:
        return Decimal(value)
    except InvalidOperation:
        digits, _, exponent = str(value).lower().partition("e")
        is_nought = exponent.startswith("-") or not digits.strip("-0.")
        return Decimal(0) if is_nought else Decimal("1e999")


PLAIN: dict[str, Converter] = {
    "STRING": _string,
    "BYTES": _bytes,
    "INTEGER": _integer,
    "FLOAT": _float,
    "BOOLEAN": _boolean,
    "TIMESTAMP": _timestamp,
    "DATE": _date,
    "TIME": _time,
    "DATETIME": _datetime,
}
