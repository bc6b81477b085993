"""Date parts and time zones that a call names: `DAY`, `WEEK(MONDAY)`, `INTERVAL 1 HOUR`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql import instants
from loader.query.googlesql.conversions import wanted
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import INT64

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call
    from loader.query.googlesql.places import Place
    from loader.query.googlesql.values import Value

MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
DAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
PARTS = {
    *MICROS, *MONTHS, "WEEK", "ISOWEEK", "ISOYEAR", "DAYOFWEEK", "DAYOFYEAR", "DATE", "DATETIME",
    "TIME",
}  # fmt: skip


def unit_of(node: exp.Expr) -> str:
    """Return a date part as it is written, in upper case.

    Raises:
        QueryError: there is no such part.
    """
    name = node.name.upper() if not isinstance(node, exp.Anonymous) else str(node.this).upper()
    if isinstance(node, exp.Anonymous | exp.WeekStart):
        inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        day = inner.name.upper()
        if day in DAYS and (isinstance(node, exp.WeekStart) or name == "WEEK"):
            return f"WEEK({day})"
    elif name in PARTS and isinstance(node, exp.Column | exp.Var | exp.Identifier):
        return name
    raise refusal(Code.ARGUMENT, "a date part was expected, such as DAY", node)


def first_day(unit: str) -> int | None:
    """Return the day on which the weeks of a part begin, 1 for Sunday; None for other parts."""
    if unit == "WEEK":
        return 1
    if unit == "ISOWEEK":
        return 2
    return DAYS.index(unit[5:-1]) + 1 if unit.startswith("WEEK(") else None


def zone_of(call: Call, at: int) -> str | None:
    """Return a time zone that a call names; None if it does not name one, or names UTC.

    Raises:
        QueryError: there is no such zone, or it is no literal.
    """
    if len(call.nodes) <= at:
        return None
    return checked_zone(call.text(at, "a time zone"), call.nodes[at])


def checked_zone(name: str, node: exp.Expr) -> str | None:
    """Return a time zone; None if it is UTC.

    Raises:
        QueryError: there is no such zone.
    """
    if instants.zone(name) is None:
        raise refusal(Code.ARGUMENT, f"{name!r} is no time zone", node)
    return None if name.upper() in {"UTC", "Z", "ETC/UTC"} else name


def interval(place: Place, node: exp.Expr) -> tuple[Value, str]:
    """Return the number and the part of `INTERVAL number part`.

    Raises:
        QueryError: it is no such interval.
    """
    unit = node.args.get("unit")
    if not isinstance(node, exp.Interval) or node.this is None or unit is None:
        raise refusal(Code.ARGUMENT, "INTERVAL with a number and a date part was expected", node)
    inner = node.this
    if isinstance(unit, exp.IntervalSpan):
        raise unsupported("an INTERVAL of several parts", node)
    if isinstance(inner, exp.Literal) and inner.is_string:
        digits = str(inner.this)
        if not digits.lstrip("-").isdigit():
            raise unsupported("this INTERVAL", node)
        # SQLGlot writes numbers of intervals as texts.
        inner = exp.Literal.number(abs(int(digits)))
        inner = exp.Neg(this=inner) if digits.startswith("-") else inner
    return wanted(place.value(inner), INT64, node, "the number of an INTERVAL"), unit_of(unit)
