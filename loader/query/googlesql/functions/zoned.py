"""DATE, TIMESTAMP and DATETIME as each other, in a time zone.

**Invariant:** the session's time zone is UTC, so a DATETIME and a TIMESTAMP of the same text are
the same instant in Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import coerced
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import DATE, DATETIME, TIMESTAMP, Type
from loader.query.googlesql.values import Value, text

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call

KINDS = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "DATETIME": DATETIME}
SINCE_1970 = "unix_micros(CAST({0} AS TIMESTAMP))"
"""A template for the microseconds since 1970 of an instant."""


def as_type(template: str, kind: Type) -> str:
    """Return a template for an instant as one of a type."""
    return f"CAST({template} AS {kind.spark})"


def local(value: Value, zone: str | None) -> Value:
    """Return the DATETIME of a TIMESTAMP in a zone."""
    plain = f"CAST({value.sql} AS TIMESTAMP_NTZ)"
    if zone is not None:
        plain = f"convert_timezone('UTC', {text(zone)}, {plain})"
    return Value(plain, DATETIME)


def instant(value: Value, zone: str | None) -> Value:
    """Return the TIMESTAMP of a DATETIME in a zone."""
    plain = value.sql
    if zone is not None:
        plain = f"convert_timezone({text(zone)}, 'UTC', {plain})"
    return Value(f"CAST({plain} AS TIMESTAMP)", TIMESTAMP)


def typed(call: Call, at: int, *kinds: Type) -> Value:
    """Return an argument of one of several types; a literal of STRING becomes the first one.

    Raises:
        QueryError: it has another type.
    """
    value = call.value(at)
    for kind in kinds:
        if value.type == kind:
            return value
    found = coerced(value, kinds[0])
    if found is None:
        names = " or ".join(str(kind) for kind in kinds)
        raise refusal(Code.TYPE, f"{call.name} needs {names}, not {value.type}", call.nodes[at])
    return found
