"""Rewrite date and time functions, which differ between BigQuery and DuckDB.

**Invariant:** weeks begin on Sunday, TIMESTAMP_DIFF counts whole units, DATE_DIFF counts
boundaries, and a value keeps its type ("Date functions", "Timestamp functions").

Date parts and formats without an equivalent are errors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.duck import call, duck
from embedded.functions.kinds import may_be
from embedded.functions.timeformats import CALENDAR, CLOCK, elements
from embedded.model.errors import ApiError, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

WHOLE_UNITS = frozenset({"DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"})
BOUNDARY_UNITS = WHOLE_UNITS | {"MONTH", "QUARTER", "YEAR"}
TRUNC_UNITS = BOUNDARY_UNITS | {"WEEK", "ISOWEEK", "WEEK(MONDAY)", "WEEK(SUNDAY)"}
FRACTIONS = {"MILLISECOND": exp.Literal.number(1000), "MICROSECOND": exp.Literal.number(1_000_000)}
PLAIN_PARTS = frozenset(
    ["YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFYEAR", "ISOYEAR"]
)
FORMAT_CODES = frozenset("YmdHMSjybBaAIp%")


def _timestamp_diff(node: exp.Expr) -> exp.Expr:
    """Count whole units, as DuckDB's date_sub does; its date_diff counts boundaries."""
    unit = _unit(node, WHOLE_UNITS)
    return call("date_sub", exp.Literal.string(unit), node.args["expression"], node.this)


def _date_diff(node: exp.Expr) -> exp.Expr:
    """Count boundaries; weeks begin on Sunday in GoogleSQL and on Monday in DuckDB."""
    unit = _unit(node, BOUNDARY_UNITS | {"WEEK", "WEEK(SUNDAY)", "ISOWEEK", "WEEK(MONDAY)"})
    since, until = node.args["expression"], node.this
    if "WEEK" not in unit:
        return call("date_diff", exp.Literal.string(unit), since, until)
    monday = "CAST(:x AS DATE)" if unit in {"ISOWEEK", "WEEK(MONDAY)"} else "CAST(:x AS DATE) + 1"
    weeks = [
        call("date_trunc", exp.Literal.string("week"), duck(monday, x=x)) for x in (since, until)
    ]
    days = call("date_diff", exp.Literal.string("day"), *weeks)
    return exp.Paren(this=exp.IntDiv(this=days, expression=exp.Literal.number(7)))


def _unit(node: exp.Expr, known: frozenset[str]) -> str:
    unit = node.args.get("unit")
    text = unit.sql("bigquery").upper().replace("'", "") if unit is not None else "DAY"
    if text not in known:
        raise unsupported(f"{node.key.upper()} by {text}")
    return text


def _trunc(kind: str) -> Callable[[exp.Expr], exp.Expr]:
    """Truncate and keep the type (DuckDB gives a TIMESTAMP for a DATE)."""

    def rule(node: exp.Expr) -> exp.Expr:
        unit = _unit(node, TRUNC_UNITS)
        if node.args.get("zone"):
            return _trunc_in_zone(node, unit)
        if unit in {"WEEK", "WEEK(SUNDAY)"}:
            sql = f"CAST(date_trunc('week', :x + INTERVAL 1 DAY) - INTERVAL 1 DAY AS {kind})"
        else:
            part = "week" if "WEEK" in unit else unit.lower()
            sql = f"CAST(date_trunc('{part}', :x) AS {kind})"
        return duck(sql, x=node.this)

    return rule


def _trunc_in_zone(node: exp.Expr, unit: str) -> exp.Expr:
    """Truncate a timestamp to a unit in a time zone."""
    if unit in WHOLE_UNITS - {"DAY"}:
        raise unsupported(f"{node.key.upper()} by {unit} in a time zone")
    if unit in {"WEEK", "WEEK(SUNDAY)"}:
        cut = "date_trunc('week', timezone(:z, :x) + INTERVAL 1 DAY) - INTERVAL 1 DAY"
    else:
        part = "week" if "WEEK" in unit else unit.lower()
        cut = f"date_trunc('{part}', timezone(:z, :x))"
    return duck(f"timezone(:z, CAST({cut} AS TIMESTAMP))", x=node.this, z=node.args["zone"])


def _extract(node: exp.Expr) -> exp.Expr:
    """Rewrite EXTRACT: weeks and weekdays in GoogleSQL's numbering, sub-second parts alone."""
    part = node.this.sql("bigquery").upper()
    value = node.args["expression"]
    if part in PLAIN_PARTS:
        return _part(part.lower(), value)
    if part in FRACTIONS:
        return exp.Mod(this=_part(part.lower(), value), expression=FRACTIONS[part].copy())
    if part == "DAYOFWEEK":
        return exp.Paren(this=exp.Add(this=_part("dow", value), expression=exp.Literal.number(1)))
    return _extract_week(part, value)


def _extract_week(part: str, value: exp.Expr) -> exp.Expr:
    codes = {"WEEK": "%U", "WEEK(SUNDAY)": "%U", "WEEK(MONDAY)": "%W"}
    if part in codes:
        week = call("strftime", value, exp.Literal.string(codes[part]))
        return exp.cast(week, exp.DataType.Type.BIGINT)
    if part == "ISOWEEK":
        return _part("week", value)
    kinds = {"DATE": "DATE", "TIME": "TIME", "DATETIME": "TIMESTAMP"}
    if part in kinds:
        return exp.cast(value.copy(), kinds[part], dialect="duckdb")
    raise unsupported(f"EXTRACT of {part}")


def _part(part: str, value: exp.Expr) -> exp.Expr:
    return call("date_part", exp.Literal.string(part), value)


def _wrapped(sql: str) -> Callable[[exp.Expr], exp.Expr]:
    """Return a DuckDB expression in which `:x` is the translation of a node."""

    def rule(node: exp.Expr) -> exp.Expr:
        inner = node.copy()
        return duck(sql, x=inner)

    return rule


def _codes(node: exp.Expr) -> set[str]:
    """Return the letters of a format's elements."""
    text = node.args.get("format")
    if not isinstance(text, exp.Literal):
        raise unsupported("A format that is no literal")
    return {pair[1:] for pair in re.findall("%.?", text.name)}


def _format(node: exp.Expr) -> exp.Expr:
    """Rewrite FORMAT_… in UTC or in the given time zone."""
    codes = _codes(node)
    zone = node.args.get("zone")
    value = node.this
    kind = next(iter(may_be(value) or {"TIMESTAMP"}))
    held = elements(node.args["format"].name) - {"n", "t", "%"}
    if (kind == "DATE" and held & CLOCK) or (kind == "TIME" and held & CALENDAR):
        raise ApiError("invalidQuery", f"Invalid format: a {kind} has no {', '.join(sorted(held))}")
    utc = duck("CAST(:x AS TIMESTAMP)", x=value) if kind != "TIME" else _on_a_day(value)
    local = utc
    if zone is not None:
        local = duck("timezone(:z, bq_timestamp(:x))", x=value.this, z=zone)
    if codes <= FORMAT_CODES:
        return call("strftime", local, node.args["format"])
    return call("py_strftime", local, utc, node.args["format"], zone or exp.null())


def _on_a_day(value: exp.Expr) -> exp.Expr:
    return duck("DATE '1970-01-01' + :x", x=value)


def _parse(kind: str) -> Callable[[exp.Expr], exp.Expr]:
    """Rewrite PARSE_… if the format has a whole date; the defaults of parts differ in DuckDB."""

    def rule(node: exp.Expr) -> exp.Expr:
        codes = _codes(node)
        zone = node.args.get("zone")
        plain = {"Y", "m", "d"} <= codes <= FORMAT_CODES and not zone
        name = "strptime" if plain else "py_strptime"
        value: exp.Expr = call(name, node.this, node.args["format"])
        if zone is not None and not elements(node.args["format"].name) & {"z", "Ez", "s"}:
            value = duck("timezone(:z, :x)", z=zone, x=value)
        return exp.cast(value, kind)

    return rule


def _from_unix(node: exp.Expr) -> exp.Expr:
    scale = node.args.get("scale")
    names = {"0": "seconds", "3": "millis", "6": "micros"}
    return call(f"bq_timestamp_{names[scale.name if scale else '0']}", node.this)


_MONDAY = "date_trunc('week', :x) + INTERVAL 6 DAY"
_SUNDAY = "date_trunc('week', :x + 1) + INTERVAL 5 DAY"
_LAST_DAY = {
    "MONTH": "last_day(:x)",
    "QUARTER": "last_day(CAST(date_trunc('quarter', :x) + INTERVAL 2 MONTH AS DATE))",
    "YEAR": "last_day(CAST(date_trunc('year', :x) + INTERVAL 11 MONTH AS DATE))",
    **dict.fromkeys(("WEEK", "WEEK(SUNDAY)"), f"CAST({_SUNDAY} AS DATE)"),
    **dict.fromkeys(("ISOWEEK", "WEEK(MONDAY)"), f"CAST({_MONDAY} AS DATE)"),
}
LAST_DAYS = frozenset(_LAST_DAY)


def _time(node: exp.Expr) -> exp.Expr:
    """Rewrite TIME(x): the time of day of a TIMESTAMP or DATETIME; a TIME does not change."""
    kinds = may_be(node.this)
    if kinds == frozenset({"TIME"}):
        bare: exp.Expr = node.this
        return bare.copy()
    if kinds == frozenset({"STRING"}):
        return call("bq_time", node.this)
    return exp.cast(exp.cast(node.this, "TIMESTAMP"), "TIME")


def _time_diff(node: exp.Expr) -> exp.Expr:
    unit = exp.Literal.string(_unit(node, WHOLE_UNITS - {"DAY"}))
    return call("date_diff", unit, node.expression, node.this)


def _time_trunc(node: exp.Expr) -> exp.Expr:
    unit = _unit(node, WHOLE_UNITS - {"DAY"}).lower()
    return duck(f"CAST(date_trunc('{unit}', DATE '1970-01-01' + :x) AS TIME)", x=node.this)


def _time_moved(sign: str) -> Callable[[exp.Expr], exp.Expr]:
    def rule(node: exp.Expr) -> exp.Expr:
        unit = _unit(node, WHOLE_UNITS - {"DAY"})
        return duck(f"(:x {sign} CAST(:n AS BIGINT) * INTERVAL 1 {unit})",
                    x=node.this, n=node.expression)  # fmt: skip

    return rule


def _time_of(node: exp.Expr) -> exp.Expr:
    return duck(
        "make_time(CAST(:h AS BIGINT), CAST(:m AS BIGINT), CAST(:s AS DOUBLE))",
        h=node.args["hour"], m=node.args["min"], s=node.args["sec"],
    )  # fmt: skip


def _datetime_of(node: exp.Expr) -> exp.Expr:
    parts = ("year", "month", "day", "hour", "min")
    whole = [duck("CAST(:x AS BIGINT)", x=node.args[part]) for part in parts]
    return call("make_timestamp", *whole, duck("CAST(:x AS DOUBLE)", x=node.args["sec"]))


def _instants(node: exp.Expr) -> exp.Expr:
    return call("generate_series", node.args["start"], node.args["end"], node.args["step"])


def _last_day(node: exp.Expr) -> exp.Expr:
    unit = _unit(node, LAST_DAYS) if node.args.get("unit") else "MONTH"
    return duck(_LAST_DAY[unit], x=node.this)


def _current(kind: str) -> Callable[[exp.Expr], exp.Expr]:
    """Rewrite CURRENT_… in UTC or in the given time zone."""

    def rule(node: exp.Expr) -> exp.Expr:
        now: exp.Expr = exp.CurrentTimestamp()
        if node.this:
            now = exp.AtTimeZone(this=now, zone=node.this.copy())
        return exp.cast(exp.cast(now, "TIMESTAMP"), kind)

    return rule


DATES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.CurrentDate: _current("DATE"),
    exp.CurrentDatetime: _current("TIMESTAMP"),
    exp.CurrentTime: _current("TIME"),
    exp.TimestampDiff: _timestamp_diff,
    exp.DateDiff: _date_diff,
    exp.DatetimeDiff: _date_diff,
    exp.DateTrunc: _trunc("DATE"),
    exp.TimestampTrunc: _trunc("TIMESTAMPTZ"),
    exp.DatetimeTrunc: _trunc("TIMESTAMP"),
    exp.DateAdd: _wrapped("CAST(:x AS DATE)"),
    exp.DateSub: _wrapped("CAST(:x AS DATE)"),
    exp.Extract: _extract,
    exp.TimeToStr: _format,
    exp.StrToDate: _parse("DATE"),
    exp.StrToTime: _parse("TIMESTAMPTZ"),
    exp.ParseDatetime: _parse("TIMESTAMP"),
    exp.UnixToTime: _from_unix,
    exp.LastDay: _last_day,
    exp.TsOrDsToTime: _time,
    exp.TimeDiff: _time_diff,
    exp.TimeTrunc: _time_trunc,
    exp.TimeAdd: _time_moved("+"),
    exp.TimeSub: _time_moved("-"),
    exp.TimeFromParts: _time_of,
    exp.TimestampFromParts: _datetime_of,
    exp.GenerateTimestampArray: _instants,
    exp.ParseTime: _parse("TIME"),
    exp.DateFromUnixDate: lambda node: duck("DATE '1970-01-01' + CAST(:x AS INTEGER)", x=node.this),
    exp.UnixSeconds: lambda node: call("bq_unix_seconds", node.this),
    exp.UnixMillis: lambda node: call("bq_unix_millis", node.this),
    exp.UnixMicros: lambda node: call("bq_unix_micros", node.this),
}
