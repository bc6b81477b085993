"""SUM and AVG as GoogleSQL defines them, whose results do not depend on the order of the rows.

A SUM is exact, and an error only if the result is out of range; an AVG of finite numbers never is
(GoogleSQL's reference implementation, `reference_impl/function.cc`).  Spark's SUM of INT64 fails
when a part of the sum overflows, and that of FLOAT64 goes to infinity.

**Invariant:** the result is Spark's own where that is finite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import coerced
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import FLOAT64, INT64, NULL, NUMERIC
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.functions.aggregating import Aggregate

_INFINITE = "double('Infinity')"
_MOST = "1.7976931348623157E308D"
# {0} is the aggregate, {1} that of the numbers times 2^-64, which only overflows beyond 2^64 rows:
# it is infinite or NaN exactly if a number is, and then it is the result.
_OWN = f"{{0}} IS NULL OR abs({{0}}) < {_INFINITE} THEN {{0}}"
_OF_SPECIAL = f"isnan({{1}}) OR abs({{1}}) = {_INFINITE} THEN {{1}}"
_LARGE = "{1} * 1.8446744073709552E19D"
_SUM = (
    f"CASE WHEN {_OWN} WHEN {_OF_SPECIAL} "
    f"WHEN abs({{1}}) < 9.7453140114E288D THEN {_LARGE} "
    "ELSE raise_error('double overflow: SUM') END"
)
_AVERAGE = (
    f"CASE WHEN {_OWN} WHEN {_OF_SPECIAL} ELSE greatest(least({_LARGE}, {_MOST}), -{_MOST}) END"
)
_SMALL = "{0} * 5.421010862427522E-20D"
# The upper and the lower halves: neither sum overflows below 2^31 rows.
_INT64 = (
    "CASE WHEN {0} + shiftright({1}, 32) BETWEEN -2147483648L AND 2147483647L "
    "THEN shiftleft({0} + shiftright({1}, 32), 32) + ({1} & 4294967295L) "
    "WHEN {0} IS NULL THEN NULL ELSE raise_error('int64 overflow: SUM') END"
)


def sum_of(one: Aggregate) -> Value:
    """Translate SUM.

    Raises:
        QueryError: its argument has no sum, or it has a form that is not supported.
    """
    one.plain("distinct")
    one.call.count(1, 1)
    value = one.call.value(0)
    if value.type not in {INT64, FLOAT64, NUMERIC, NULL}:
        raise refusal(Code.TYPE, f"SUM does not take {value.type}", one.call.node)
    kind = value.type if value.type != NULL else INT64
    given = coerced(value, kind)
    assert given is not None
    distinct = "DISTINCT " if one.modifiers.distinct else ""
    if kind == NUMERIC:
        template = f"CAST(sum({distinct}{{0}}){{over}} AS DECIMAL(38, 9))"
        return one.made(template, kind, given.sql)
    if kind == FLOAT64:
        return _unbounded(one, "sum", _SUM, given.sql)
    if distinct:
        template = "CAST(sum(DISTINCT CAST({0} AS DECIMAL(20, 0))){over} AS BIGINT)"
        return one.made(template, kind, given.sql)
    halves = ("sum(shiftright({0}, 32)){over}", "sum({0} & 4294967295L){over}")
    parts = [one.made(half, kind, given.sql).sql for half in halves]
    return Value(filled(_INT64, parts), kind)


def average_of(one: Aggregate) -> Value:
    """Translate AVG.

    Raises:
        QueryError: as `sum_of`.
    """
    one.plain("distinct")
    one.call.count(1, 1)
    value = one.call.value(0)
    if value.type == NUMERIC:
        raise one.call.unsupported("AVG of NUMERIC")
    if value.type not in {INT64, FLOAT64, NULL}:
        raise refusal(Code.TYPE, f"AVG does not take {value.type}", one.call.node)
    if value.type == FLOAT64:
        return _unbounded(one, "avg", _AVERAGE, value.sql)
    distinct = "DISTINCT " if one.modifiers.distinct else ""
    return one.made(f"avg({distinct}{{0}}){{over}}", FLOAT64, value.sql)


def _unbounded(one: Aggregate, function: str, template: str, value: str) -> Value:
    distinct = "DISTINCT " if one.modifiers.distinct else ""
    parts = [
        one.made(f"{function}({distinct}{number}){{over}}", FLOAT64, value).sql
        for number in ("{0}", _SMALL)
    ]
    return Value(filled(template, parts), FLOAT64)
