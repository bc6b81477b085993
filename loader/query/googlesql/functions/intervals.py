"""Instants that are moved by an interval, and arrays of them in equal steps.

**Invariant:** what is computed from constants is a constant, so that the days that a condition
leaves are known before anything is read.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import wanted
from loader.query.googlesql.functions.units import MICROS, MONTHS, interval
from loader.query.googlesql.functions.zoned import KINDS, SINCE_1970
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import DATE, DATETIME, INT64, NULL, TIMESTAMP, Type, array
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from sqlglot import exp

    from loader.query.googlesql.functions.calls import Call, Function
    from loader.query.googlesql.places import Place


def moved(value: Value, count: Value, unit: str, sign: str, node: exp.Expr) -> Value:
    """Add an interval to an instant, or subtract it.

    Raises:
        QueryError: the type does not take this part.
    """
    kind, scale = value.type, MICROS.get(unit)
    if kind == DATE and unit in {"DAY", "WEEK"}:
        days = f"(7L * {count.sql})" if unit == "WEEK" else count.sql
        function = "date_add" if sign == "+" else "date_sub"
        sql = f"{function}({value.sql}, CAST({days} AS INT))"
    elif kind != TIMESTAMP and unit in MONTHS:
        months = f"CAST({sign}{count.sql} * {MONTHS[unit]}L AS INT)"
        sql = f"({value.sql} + make_ym_interval(0, {months}))"
    elif kind in {TIMESTAMP, DATETIME} and (scale is not None or unit == "WEEK"):
        if unit == "WEEK" and kind == TIMESTAMP:
            raise refusal(Code.ARGUMENT, f"a TIMESTAMP is not moved by {unit}", node)
        micros = scale if scale is not None else 7 * MICROS["DAY"]
        step = f"{count.sql} * {micros}L" if micros > 1 else count.sql
        moved_sql = filled(f"timestamp_micros({SINCE_1970} {sign} {{1}})", [value.sql, f"({step})"])
        sql = moved_sql if kind == TIMESTAMP else f"CAST({moved_sql} AS TIMESTAMP_NTZ)"
    else:
        raise refusal(Code.ARGUMENT, f"a {kind} is not moved by {unit}", node)
    known = _moved_constant(value, count, unit, sign)
    return literal(known) if known is not None else Value(sql, kind)


def _moved_constant(value: Value, count: Value, unit: str, sign: str) -> date | None:
    """Compute the result, if all is known; ranges of days are found from it."""
    if value.constant is None or count.constant is None:
        return None
    start, number = value.constant.value, count.constant.value
    if not isinstance(start, date) or not isinstance(number, int):
        return None
    number = -number if sign == "-" else number
    try:
        if unit in MONTHS:
            months = start.year * 12 + start.month - 1 + number * MONTHS[unit]
            year, month = months // 12, months % 12 + 1
            last = (date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)).day
            return start.replace(year=year, month=month, day=min(start.day, last))
        micros = MICROS.get(unit, 7 * MICROS["DAY"])
        return start + timedelta(microseconds=number * micros)
    except (ValueError, OverflowError):
        return None


def shifted(place: Place, node: exp.Expr, sign: str) -> Value:
    """An instant plus or minus an INTERVAL; a DATE becomes a DATETIME.

    Raises:
        QueryError: the operands have other types.
    """
    value = place.value(node.args["this"])
    count, unit = interval(place, node.args["expression"])
    if sign == "*" or value.type not in {DATE, TIMESTAMP, DATETIME}:
        raise refusal(Code.TYPE, f"{value.type} {sign} INTERVAL has no meaning", node)
    if value.type == DATE:
        value = Value(f"CAST({value.sql} AS TIMESTAMP_NTZ)", DATETIME)
    return moved(value, count, unit, sign, node)


def days_added(left: Value, right: Value, sign: str, node: exp.Expr) -> Value:
    """A DATE plus or minus a number of days.

    Raises:
        QueryError: the operands have other types.
    """
    if sign == "+" and right.type == DATE:
        left, right = right, left
    if right.type not in {INT64, NULL}:
        raise unsupported(f"{left.type} {sign} {right.type}", node)
    count = wanted(right, INT64, node, "a number of days")
    return moved(left, count, "DAY", sign, node)


def _moving(kind: Type, sign: str) -> Function:
    def rule(call: Call) -> Value:
        call.count(2, 2)
        value = call.wanted(0, kind)
        return moved(value, *interval(call.place, call.nodes[1]), sign, call.node)

    return rule


def _stepped(call: Call) -> Value:
    """GENERATE_DATE_ARRAY and GENERATE_TIMESTAMP_ARRAY; an array that cannot begin is empty."""
    dates = call.name == "GENERATE_DATE_ARRAY"
    call.count(2 if dates else 3, 3)
    kind = DATE if dates else TIMESTAMP
    sqls = [call.wanted(at, kind).sql for at in (0, 1)]
    count, unit = literal(1), "DAY"
    if len(call.nodes) == 3:  # noqa: PLR2004 - start, end, step
        count, unit = interval(call.place, call.nodes[2])
    steps = count.constant.value if count.constant is not None else None
    if not isinstance(steps, int) or steps == 0:
        raise call.unsupported("a step that is no literal, or 0", 2)
    order = ">" if steps > 0 else "<"
    if unit in MONTHS and dates:
        made = f"sequence({{0}}, {{1}}, make_ym_interval(0, {steps * MONTHS[unit]}))"
    elif dates and unit in {"DAY", "WEEK"}:
        made = f"sequence({{0}}, {{1}}, make_dt_interval({steps * (7 if unit == 'WEEK' else 1)}))"
    elif not dates and unit in MICROS:
        made = (
            f"transform(sequence(unix_micros({{0}}), unix_micros({{1}}), {steps * MICROS[unit]}L), "
            "_m -> timestamp_micros(_m))"
        )
    else:
        raise call.refused(f"{call.name} has no steps of {unit}", 2)
    empty = f"CAST(array() AS ARRAY<{kind.spark}>)"
    sql = (
        f"CASE WHEN {{0}} {order} {{1}} THEN {empty} "
        f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {made} END"
    )
    return Value(filled(sql, sqls), array(kind))


INTERVALS: dict[str, Function] = {
    **{f"{name}_ADD": _moving(kind, "+") for name, kind in KINDS.items()},
    **{f"{name}_SUB": _moving(kind, "-") for name, kind in KINDS.items()},
    "GENERATE_DATE_ARRAY": _stepped,
    "GENERATE_TIMESTAMP_ARRAY": _stepped,
}
