"""Functions of times.  All of them are UTC, and a day is its first instant.

Pure: `now()` is the time that the question was compiled at, the same in all rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs.function_table import Function
from loader.query.logs.patterns import time_regex
from loader.query.logs.spans import (
    SECONDS,
    Span,
    Unit,
    bucket,
    bucket_span,
    span,
    timestamp_literal,
)
from loader.query.logs.values import INT64, TIMESTAMP, Type, Value, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.arguments import Arguments

    Compile = Callable[[Arguments], Value]

_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_799
"""The seconds of the first instant of year 1 and of the last second of year 9999."""


def _now(args: Arguments) -> Value:
    return Value(timestamp_literal(args.now), TIMESTAMP)


def _date(args: Arguments) -> Value:
    """Compile date: of a text, with a format or as SQL writes times, or of seconds since 1970."""
    if len(args) > 1:
        pattern, made = args.parsed(1, time_regex)
        text, regex = args.text(0), literal(pattern)
        whole = f"REGEXP_REPLACE({text}, {regex}, {literal(made)})"
        cast = f"SAFE_CAST({whole} AS TIMESTAMP)"
        return Value(f"IF(REGEXP_CONTAINS({text}, {regex}), {cast}, NULL)", TIMESTAMP)
    value = args.values[0]
    if value.type.is_one("STRING"):
        return Value(f"SAFE_CAST({value.sql} AS TIMESTAMP)", TIMESTAMP)
    if value.type == INT64:
        within = f"{value.sql} >= {_FIRST_S} AND {value.sql} <= {_LAST_S}"
        return Value(f"TIMESTAMP_SECONDS(IF({within}, {value.sql}, NULL))", TIMESTAMP)
    return Value(args.instant(0), TIMESTAMP)


def _dateadd(args: Arguments) -> Value:
    unit, count, instant = args.unit(1), args.whole(2), args.instant(0)
    if unit in {Unit.MONTH, Unit.YEAR}:
        local = f"DATETIME_ADD(DATETIME({instant}), INTERVAL {count} {unit})"
        return Value(f"TIMESTAMP({local})", TIMESTAMP)
    if unit is Unit.WEEK:
        count, unit = f"(7 * {count})", Unit.DAY
    return Value(f"TIMESTAMP_ADD({instant}, INTERVAL {count} {unit})", TIMESTAMP)


def _datediff(args: Arguments) -> Value:
    begin, until, unit = args.instant(0), args.instant(1), args.unit(2)
    if unit in {Unit.MONTH, Unit.YEAR}:
        return Value(f"DATETIME_DIFF(DATETIME({until}), DATETIME({begin}), {unit})", INT64)
    seconds = f"TIMESTAMP_DIFF({until}, {begin}, SECOND)"
    if unit is Unit.SECOND:
        return Value(seconds, INT64)
    return Value(f"DIV({seconds}, {SECONDS[unit]})", INT64)


def _datetrunc(args: Arguments) -> Value:
    return Value(bucket(args.instant(0), args.parsed(1, bucket_span)), TIMESTAMP)


def _daterange(args: Arguments) -> Value:
    begin, until, step = args.instant(0), args.instant(1), args.parsed(2, _fixed)
    sql = f"GENERATE_TIMESTAMP_ARRAY({begin}, {until}, INTERVAL {step.count} {step.unit})"
    return Value(sql, Type("TIMESTAMP", repeated=True))


def _fixed(text: str) -> Span:
    """Read a span that is always as long, in a unit that GENERATE_TIMESTAMP_ARRAY has."""
    found = span(text)
    if found.seconds is None:
        raise ValueError("expected a span of s, m, h, d or w: months differ in length")
    return Span(found.count * 7, Unit.DAY) if found.unit is Unit.WEEK else found


def _epoch(args: Arguments) -> Value:
    return Value(f"UNIX_SECONDS({args.instant(0)})", INT64)


TIMES = {
    "now": Function(_now, 0, 0),
    "date": Function(_date, 1, 2),
    "dateadd": Function(_dateadd, 3, 3),
    "datediff": Function(_datediff, 3, 3),
    "datetrunc": Function(_datetrunc, 2, 2),
    "daterange": Function(_daterange, 3, 3),
    "epoch": Function(_epoch),
}
