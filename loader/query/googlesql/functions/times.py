"""Functions of DATE, TIMESTAMP and DATETIME ("Date functions", "Timestamp functions").

**Invariant:** weeks begin on Sunday if nothing else is said; TIMESTAMP_DIFF counts whole units,
DATE_DIFF and DATETIME_DIFF count boundaries.  The session's time zone is UTC, so a DATETIME and a
TIMESTAMP of the same text are the same instant in Spark.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql import instants
from loader.query.googlesql.conversions import cast, coerced, wanted
from loader.query.googlesql.functions.calls import by_signature
from loader.query.googlesql.functions.units import (
    MICROS,
    MONTHS,
    checked_zone,
    first_day,
    interval,
    unit_of,
    zone_of,
)
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import (
    DATE,
    DATETIME,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array,
)
from loader.query.googlesql.values import Constant, Value, filled, literal, text

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function
    from loader.query.googlesql.places import Place

INSTANTS = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "DATETIME": DATETIME}
_MICROS = "unix_micros(CAST({0} AS TIMESTAMP))"


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


def _typed(call: Call, at: int, *kinds: Type) -> Value:
    """Return an argument of one of several types; a literal of STRING becomes the first one."""
    value = call.value(at)
    for kind in kinds:
        if value.type == kind:
            return value
    found = coerced(value, kinds[0])
    if found is None:
        names = " or ".join(str(kind) for kind in kinds)
        raise refusal(Code.TYPE, f"{call.name} needs {names}, not {value.type}", call.nodes[at])
    return found


def _now(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(0, 1)
        zone = zone_of(call, 0)
        now = call.place.work.now
        place = instants.zone(zone) if zone else UTC
        here = now.astimezone(place).replace(tzinfo=None)
        if kind == TIMESTAMP:
            call.count(0, 0)
            return literal(now)
        return literal(here.date() if kind == DATE else here)

    return rule


def _date(call: Call) -> Value:
    call.count(1, 3)
    if len(call.nodes) == 3:  # noqa: PLR2004 - year, month, day
        parts = [f"CAST({call.wanted(at, INT64).sql} AS INT)" for at in range(3)]
        return Value(f"make_date({', '.join(parts)})", DATE)
    value = call.value(0)
    if value.type == STRING and len(call.nodes) == 1:
        return cast(call.place, value, DATE, safe=False, node=call.node)
    value = _typed(call, 0, TIMESTAMP, DATETIME, DATE)
    constant = _date_of(value.constant)
    inner = local(value, zone_of(call, 1)) if value.type == TIMESTAMP else value
    if len(call.nodes) == 2:  # noqa: PLR2004 - a zone
        constant = None
        if value.type != TIMESTAMP:
            raise refusal(Code.TYPE, "DATE with a time zone needs a TIMESTAMP", call.node)
    found = Value(f"CAST({inner.sql} AS DATE)", DATE, constant)
    return literal(constant.value) if constant is not None else found


def _date_of(constant: Constant | None) -> Constant | None:
    if constant is not None and isinstance(constant.value, datetime):
        return Constant(constant.value.date())
    return constant if constant is not None and isinstance(constant.value, date) else None


def _timestamp(call: Call) -> Value:
    call.count(1, 2)
    value, zone = call.value(0), zone_of(call, 1)
    if value.type == STRING:
        if zone is None:
            return cast(call.place, value, TIMESTAMP, safe=False, node=call.node)
        if value.constant is None:
            raise call.unsupported("TIMESTAMP of a STRING in a time zone")
        found = instants.parsed_timestamp(str(value.constant.value), instants.zone(zone) or UTC)
        if found is None:
            raise call.refused(f"{value.constant.value!r} is no TIMESTAMP", 0)
        return literal(found)
    value = _typed(call, 0, DATETIME, DATE, TIMESTAMP)
    if value.type == TIMESTAMP:
        return value
    constant = value.constant.value if value.constant is not None else None
    if zone is None and isinstance(constant, date) and not isinstance(constant, datetime):
        return literal(datetime(constant.year, constant.month, constant.day, tzinfo=UTC))
    return instant(Value(f"CAST({value.sql} AS TIMESTAMP_NTZ)", DATETIME), zone)


def _datetime(call: Call) -> Value:
    call.count(1, 6)
    if len(call.nodes) == 6:  # noqa: PLR2004 - year to second
        parts = [f"CAST({call.wanted(at, INT64).sql} AS INT)" for at in range(6)]
        return Value(f"make_timestamp_ntz({', '.join(parts)})", DATETIME)
    call.count(1, 2)
    value = call.value(0)
    if value.type == STRING and len(call.nodes) == 1:
        return cast(call.place, value, DATETIME, safe=False, node=call.node)
    value = _typed(call, 0, TIMESTAMP, DATE, DATETIME)
    if value.type == TIMESTAMP:
        return local(value, zone_of(call, 1))
    if len(call.nodes) > 1:
        raise call.unsupported("DATETIME of these arguments")
    return Value(f"CAST({value.sql} AS TIMESTAMP_NTZ)", DATETIME)


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
        moved_sql = filled(f"timestamp_micros({_MICROS} {sign} {{1}})", [value.sql, f"({step})"])
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
        until, since = _typed(call, 0, *kinds), _typed(call, 1, *kinds)
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
        whole = f"(({_MICROS} - pmod({_MICROS}, {MICROS[unit]}L)) div {MICROS[unit]}L)"
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
    "MILLISECOND": f"(pmod({_MICROS}, 1000000L) div 1000L)",
    "MICROSECOND": f"pmod({_MICROS}, 1000000L)",
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
        return Value(as_type(value.sql, INSTANTS[part]), INSTANTS[part])
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
    value = _typed(call, 0, DATE, DATETIME)
    unit = unit_of(call.nodes[1]) if len(call.nodes) > 1 else "MONTH"
    template = _LAST.get(unit)
    if template is None and first_day(unit) is not None:
        template = f"date_add({day_of(unit)}, 6)"
    if template is None:
        raise call.unsupported(f"LAST_DAY of {unit}", 1)
    return Value(filled(template, [f"CAST({value.sql} AS DATE)"]), DATE)


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


def _unix(micros: int) -> Function:
    whole = f"((unix_micros({{0}}) - pmod(unix_micros({{0}}), {micros}L)) div {micros}L)"
    return by_signature([("T", "I", whole if micros > 1 else "unix_micros({0})")], total=True)


TIMES: dict[str, Function] = {
    **{f"CURRENT_{name}": _now(kind) for name, kind in INSTANTS.items()},
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "DATETIME": _datetime,
    **{f"{name}_ADD": _moving(kind, "+") for name, kind in INSTANTS.items()},
    **{f"{name}_SUB": _moving(kind, "-") for name, kind in INSTANTS.items()},
    **{f"{name}_TRUNC": _truncated(kind) for name, kind in INSTANTS.items()},
    **{f"{name}_DIFF": _difference(kind) for name, kind in INSTANTS.items()},
    "LAST_DAY": _last_day,
    "GENERATE_DATE_ARRAY": _stepped,
    "GENERATE_TIMESTAMP_ARRAY": _stepped,
    "UNIX_DATE": by_signature([("D", "I", "CAST(unix_date({0}) AS BIGINT)")], total=True),
    "DATE_FROM_UNIX_DATE": by_signature([("I", "D", "date_from_unix_date(CAST({0} AS INT))")]),
    "UNIX_SECONDS": _unix(1_000_000),
    "UNIX_MILLIS": _unix(1_000),
    "UNIX_MICROS": _unix(1),
    "TIMESTAMP_SECONDS": by_signature([("I", "T", "timestamp_seconds({0})")]),
    "TIMESTAMP_MILLIS": by_signature([("I", "T", "timestamp_millis({0})")]),
    "TIMESTAMP_MICROS": by_signature([("I", "T", "timestamp_micros({0})")]),
}
