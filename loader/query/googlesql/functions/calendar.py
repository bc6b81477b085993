"""Parts and periods of the calendar: EXTRACT, …_TRUNC, …_DIFF and LAST_DAY.

**Invariant:** weeks begin on Sunday if nothing else is said; TIMESTAMP_DIFF counts whole units,
DATE_DIFF and DATETIME_DIFF count boundaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.functions.units import (
    MICROS,
    MONTHS,
    checked_zone,
    first_day,
    unit_of,
    zone_of,
)
from loader.query.googlesql.functions.zoned import KINDS, SINCE_1970, as_type, instant, local, typed
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import DATE, DATETIME, INT64, TIMESTAMP, Type
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function
    from loader.query.googlesql.places import Place


def day_of(unit: str) -> str | None:
    """Return a template for the first day of a DATE's unit; None for other units."""
    if unit == "DAY":
        return "{0}"
    if unit in MONTHS:
        return f"trunc({{0}}, '{unit}')"
    start = first_day(unit)
    if start == 2:  # noqa: PLR2004 - Monday
        return "trunc({0}, 'WEEK')"
    return None if start is None else f"date_sub({{0}}, pmod(dayofweek({{0}}) - {start}, 7))"


def _truncated(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(2, 3)
        value = call.wanted(0, kind)
        unit, zone = unit_of(call.nodes[1]), zone_of(call, 2)
        if zone is not None and (kind != TIMESTAMP or unit in {*MICROS} - {"DAY"}):
            raise call.unsupported(f"{call.name} by {unit} in a time zone")
        template = day_of(unit)
        if kind == DATE:
            if template is None:
                raise call.unsupported(f"{call.name} by {unit}", 1)
            return Value(filled(template, [value.sql]), DATE)
        if template is not None:
            inner = local(value, zone).sql if zone else value.sql
            day = Value(filled(template, [f"CAST({inner} AS DATE)"]), DATE)
            start = Value(f"CAST({day.sql} AS TIMESTAMP_NTZ)", DATETIME)
            return instant(start, zone) if kind == TIMESTAMP else start
        if unit == "MICROSECOND":
            return value
        if unit not in MICROS:
            raise call.unsupported(f"{call.name} by {unit}", 1)
        return Value(as_type(f"date_trunc('{unit}', {value.sql})", kind), kind)

    return rule


def _days_between(unit: str) -> str | None:
    """Return a template for the number of a unit's boundaries between two DATEs, {1} to {0}."""
    if unit == "DAY":
        return "CAST(datediff({0}, {1}) AS BIGINT)"
    if first_day(unit) is not None:
        template = day_of(unit) or ""
        since = template.replace("{0}", "{1}")
        return f"CAST(datediff({template}, {since}) div 7 AS BIGINT)"
    months = "(year({0}) * 12 + month({0}) - year({1}) * 12 - month({1}))"
    return {
        "YEAR": "CAST(year({0}) - year({1}) AS BIGINT)",
        "QUARTER": ("CAST(year({0}) * 4 + quarter({0}) - year({1}) * 4 - quarter({1}) AS BIGINT)"),
        "MONTH": f"CAST({months} AS BIGINT)",
        "ISOYEAR": ("CAST(extract(YEAROFWEEK FROM {0}) - extract(YEAROFWEEK FROM {1}) AS BIGINT)"),
    }.get(unit)


def _difference(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(3, 3)
        kinds = (kind,) if kind != DATE else (DATE, DATETIME, TIMESTAMP)
        until, since = typed(call, 0, *kinds), typed(call, 1, *kinds)
        unit = unit_of(call.nodes[2])
        if until.type != since.type:
            raise refusal(Code.TYPE, f"{call.name} needs two values of one type", call.node)
        sqls = [until.sql, since.sql]
        if until.type == TIMESTAMP:
            if unit not in MICROS:
                raise call.refused(f"TIMESTAMP_DIFF does not count {unit}", 2)
            micros = "(unix_micros({0}) - unix_micros({1}))"
            sql = f"({micros} div {MICROS[unit]}L)" if MICROS[unit] > 1 else micros
            return Value(filled(sql, sqls), INT64)
        template = _days_between(unit)
        if template is not None:
            if until.type != DATE:
                sqls = [f"CAST({sql} AS DATE)" for sql in sqls]
            return Value(filled(template, sqls), INT64)
        if until.type == DATE or unit not in MICROS:
            raise call.refused(f"{call.name} does not count {unit} of a {until.type}", 2)
        whole = f"(({SINCE_1970} - pmod({SINCE_1970}, {MICROS[unit]}L)) div {MICROS[unit]}L)"
        return Value(filled(f"({whole} - {whole.replace('{0}', '{1}')})", sqls), INT64)

    return rule


_PARTS = {
    "YEAR": "CAST(year({0}) AS BIGINT)",
    "QUARTER": "CAST(quarter({0}) AS BIGINT)",
    "MONTH": "CAST(month({0}) AS BIGINT)",
    "DAY": "CAST(day({0}) AS BIGINT)",
    "DAYOFWEEK": "CAST(dayofweek({0}) AS BIGINT)",
    "DAYOFYEAR": "CAST(dayofyear({0}) AS BIGINT)",
    "ISOWEEK": "CAST(weekofyear({0}) AS BIGINT)",
    "ISOYEAR": "CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)",
    "HOUR": "CAST(hour({0}) AS BIGINT)",
    "MINUTE": "CAST(minute({0}) AS BIGINT)",
    "SECOND": "CAST(second({0}) AS BIGINT)",
    "MILLISECOND": f"(pmod({SINCE_1970}, 1000000L) div 1000L)",
    "MICROSECOND": f"pmod({SINCE_1970}, 1000000L)",
}


def week_number(start: int) -> str:
    """Return a template for the week of a year; days before its first `start` are in week 0."""
    return f"CAST((dayofyear({{0}}) + 6 - pmod(dayofweek({{0}}) - {start}, 7)) div 7 AS BIGINT)"


def extract(place: Place, node: exp.Expr) -> Value:
    """EXTRACT, of an instant in a time zone or in UTC.

    Raises:
        QueryError: the part is not one of this type.
    """
    part, inner = unit_of(node.this), node.expression
    zone = None
    if isinstance(inner, exp.AtTimeZone):
        named = place.value(inner.args["zone"])
        if named.constant is None or not isinstance(named.constant.value, str):
            raise unsupported("a time zone that is no literal", inner)
        zone = checked_zone(named.constant.value, inner)
        inner = inner.this
        if place.value(inner).type != TIMESTAMP:
            raise refusal(Code.TYPE, "AT TIME ZONE needs a TIMESTAMP", inner)
    value = place.value(inner)
    if value.type not in {DATE, TIMESTAMP, DATETIME}:
        raise refusal(Code.TYPE, f"EXTRACT needs an instant, not {value.type}", inner)
    if value.type == DATE and part in {*MICROS, "DATETIME"} - {"DAY"}:
        raise refusal(Code.ARGUMENT, f"a DATE has no {part}", node)
    if zone is not None:
        value = local(value, zone)
    if part in {"DATE", "DATETIME"}:
        return Value(as_type(value.sql, KINDS[part]), KINDS[part])
    start = first_day(part) if part != "ISOWEEK" else None
    template = week_number(start) if start is not None else _PARTS.get(part)
    if template is None:
        raise unsupported(f"EXTRACT of {part}", node)
    return Value(filled(template, [value.sql]), INT64)


_LAST = {
    "MONTH": "last_day({0})",
    "QUARTER": "last_day(add_months(trunc({0}, 'QUARTER'), 2))",
    "YEAR": "last_day(add_months(trunc({0}, 'YEAR'), 11))",
}


def _last_day(call: Call) -> Value:
    call.count(1, 2)
    value = typed(call, 0, DATE, DATETIME)
    unit = unit_of(call.nodes[1]) if len(call.nodes) > 1 else "MONTH"
    template = _LAST.get(unit)
    if template is None and first_day(unit) is not None:
        template = f"date_add({day_of(unit)}, 6)"
    if template is None:
        raise call.unsupported(f"LAST_DAY of {unit}", 1)
    return Value(filled(template, [f"CAST({value.sql} AS DATE)"]), DATE)


CALENDAR: dict[str, Function] = {
    **{f"{name}_TRUNC": _truncated(kind) for name, kind in KINDS.items()},
    **{f"{name}_DIFF": _difference(kind) for name, kind in KINDS.items()},
    "LAST_DAY": _last_day,
}
