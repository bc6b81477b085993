"""Aggregates of `stats` and `timechart`.

**Invariant:** nulls count nowhere but in `count` without an argument.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.spans import SECONDS, Span, Unit
from loader.query.logs.syntax import Name
from loader.query.logs.terms import compiled
from loader.query.logs.values import (
    FLOAT64,
    INT64,
    Type,
    Value,
    bounded,
    timestamp,
    typed_null,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from loader.query.logs.scope import Scope
    from loader.query.logs.syntax import Aggregate

UNORDERED = frozenset({"RECORD", "JSON", "JSON_TEXT", "GEOGRAPHY", "RANGE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What aggregates are computed over.

    Attributes:
        scope: the fields of the rows.
        now: UTC.
        time: SQL of the rows' time as TIMESTAMP; empty if they have none.
        seconds: SQL of the length of the time that a group covers; empty if it is not known.
    """

    scope: Scope
    now: datetime
    time: str
    seconds: str


@dataclass(frozen=True, slots=True)
class _Call:
    """One aggregate with its compiled arguments."""

    part: Aggregate
    group: Group
    args: tuple[Value, ...]

    def wrong(self, place: int, expected: str) -> QueryError:
        arg = self.part.args[place]
        what = f"{self.part.function}: expected {expected}, found a {self.args[place].type.shown}"
        return QueryError(Code.TYPE, what, arg.start, arg.end)

    def refused(self, message: str) -> QueryError:
        what = f"{self.part.function}: {message}"
        return QueryError(Code.ARGUMENT, what, self.part.start, self.part.end)

    def number(self, place: int = 0) -> Value:
        value = self.args[place]
        if value.type.is_null:
            return Value(typed_null(FLOAT64), FLOAT64)
        if not value.type.is_number:
            raise self.wrong(place, "a number")
        return value

    def double(self, place: int = 0) -> str:
        value = self.number(place)
        return value.sql if value.type == FLOAT64 else f"CAST({value.sql} AS FLOAT64)"

    def ordered(self) -> Value:
        """Return an argument that can be compared and grouped."""
        value = self.args[0]
        if value.type.repeated or value.type.kind in UNORDERED:
            raise self.wrong(0, "a number, a text or a time")
        return Value(typed_null(value.type), Type("STRING")) if value.type.is_null else value


def _count(call: _Call) -> Value:
    if not call.args:
        return Value("COUNT(*)", INT64)
    return Value(f"COUNT({call.args[0].sql})", INT64)


def _sum(call: _Call) -> Value:
    value = call.number()
    return Value(f"SUM({value.sql})", value.type)


def _of_doubles(function: str) -> Callable[[_Call], Value]:
    return lambda call: Value(f"{function}({call.double()})", FLOAT64)


def _extreme(function: str) -> Callable[[_Call], Value]:
    def compile_(call: _Call) -> Value:
        value = call.ordered()
        return Value(f"{function}({value.sql})", value.type)

    return compile_


def _range(call: _Call) -> Value:
    value = call.number()
    return Value(f"(MAX({value.sql}) - MIN({value.sql}))", value.type)


def _by_time(function: str) -> Callable[[_Call], Value]:
    """Return the compiler of first and last: of the values that are there, by the rows' time."""

    def compile_(call: _Call) -> Value:
        value = call.ordered()
        if not call.group.time:
            raise call.refused("the rows have no _time here, and so no order")
        when = f"IF({value.sql} IS NULL, NULL, {call.group.time})"
        return Value(f"{function}({value.sql}, {when})", value.type)

    return compile_


def _values(call: _Call) -> Value:
    value = call.ordered()
    sql = f"ARRAY_AGG(DISTINCT {value.sql} IGNORE NULLS ORDER BY {value.sql})"
    return Value(sql, Type(value.type.kind, repeated=True))


def _both(function: str) -> Callable[[_Call], Value]:
    return lambda call: Value(f"{function}({call.double(0)}, {call.double(1)})", FLOAT64)


def _slope(call: _Call) -> Value:
    """Compile slope: how much the second number grows if the first one grows by one."""
    x, y = call.double(0), call.double(1)
    variance = f"VAR_POP(IF({y} IS NULL, NULL, {x}))"
    return Value(f"SAFE_DIVIDE(COVAR_POP({x}, {y}), {variance})", FLOAT64)


def _per(unit: Unit) -> Callable[[_Call], Value]:
    def compile_(call: _Call) -> Value:
        if not call.group.seconds:
            raise call.refused("expected a table with duration, or with from and to")
        total = f"SUM({call.double()})" if call.args else "CAST(COUNT(*) AS FLOAT64)"
        length = f"{call.group.seconds} * 1.0"
        return Value(f"SAFE_DIVIDE({total} * {SECONDS[unit]}, {length})", FLOAT64)

    return compile_


@dataclass(frozen=True, slots=True)
class _Function:
    compile: Callable[[_Call], Value]
    least: int = 1
    most: int = 1


AGGREGATES = {
    "count": _Function(_count, 0),
    "c": _Function(_count, 0),
    "sum": _Function(_sum),
    "avg": _Function(_of_doubles("AVG")),
    "first": _Function(_by_time("MIN_BY")),
    "last": _Function(_by_time("MAX_BY")),
    "min": _Function(_extreme("MIN")),
    "max": _Function(_extreme("MAX")),
    "range": _Function(_range),
    "values": _Function(_values),
    "var": _Function(_of_doubles("VAR_POP")),
    "stddev": _Function(_of_doubles("STDDEV_POP")),
    "covar": _Function(_both("COVAR_POP"), 2, 2),
    "correl": _Function(_both("CORR"), 2, 2),
    "slope": _Function(_slope, 2, 2),
    "per_second": _Function(_per(Unit.SECOND), 0),
    "per_minute": _Function(_per(Unit.MINUTE), 0),
    "per_hour": _Function(_per(Unit.HOUR), 0),
    "per_day": _Function(_per(Unit.DAY), 0),
}


def aggregated(part: Aggregate, group: Group) -> Value:
    """Compile an aggregate.

    Raises:
        QueryError: there is no such aggregate, or its arguments do not fit.
    """
    function = AGGREGATES.get(part.function)
    if function is None:
        what = f"no aggregate {part.function!r}; there are: {', '.join(AGGREGATES)}"
        end = part.start + len(part.function)
        raise QueryError(Code.UNKNOWN_FUNCTION, what, part.start, min(end, part.end))
    args = tuple(compiled(arg, group.scope, group.now) for arg in part.args)
    call = _Call(part, group, args)
    if not function.least <= len(args) <= function.most:
        raise call.refused(f"expected {function.most} arguments, found {len(args)}")
    return bounded(function.compile(call), part)


def default_name(part: Aggregate) -> str:
    """Return the name of an aggregate without `as`: `count`, `avg_MeanThroughputMbps`."""
    if part.args and isinstance(part.args[0], Name):
        return f"{part.function}_{part.args[0].path[-1]}"
    return part.function


def span_seconds(span: Span, bucket: str) -> str:
    """Return the SQL of the length of a bucket in seconds, for a group that is one bucket."""
    if span.seconds is not None:
        return str(span.seconds)
    begin = f"MIN({bucket})"
    after = f"TIMESTAMP(DATETIME_ADD(DATETIME({begin}), INTERVAL {span.count} {span.unit}))"
    return f"TIMESTAMP_DIFF({after}, {begin}, SECOND)"


def time_of(scope: Scope) -> str:
    """Return the SQL of the rows' time; empty if they have none."""
    column = scope.find("_time")
    if column is None or not column.value.type.is_time:
        return ""
    return timestamp(Value(column.value.sql, column.value.type))
