"""Dates and times, which DuckDB counts, cuts, reads and writes otherwise than BigQuery.

**Invariant:** weeks begin on Sunday, TIMESTAMP_DIFF counts whole units, DATE_DIFF counts borders, a
value keeps its type ("Date functions", "Timestamp functions").

It refuses parts and formats that are not known to mean the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.duck import call, duck
from embedded.errors import unsupported

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
    """Count whole units (DuckDB's date_sub), where DATE_DIFF counts boundaries (date_diff)."""
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
        if node.args.get("zone"):
            raise unsupported(f"{node.key.upper()} with a time zone")
        unit = _unit(node, TRUNC_UNITS)
        if unit in {"WEEK", "WEEK(SUNDAY)"}:
            sql = f"CAST(date_trunc('week', :x + INTERVAL 1 DAY) - INTERVAL 1 DAY AS {kind})"
        else:
            part = "week" if "WEEK" in unit else unit.lower()
            sql = f"CAST(date_trunc('{part}', :x) AS {kind})"
        return duck(sql, x=node.this)

    return rule


def _extract(node: exp.Expr) -> exp.Expr:
    """Take a part: weeks and days of the week by GoogleSQL's count, fractions alone."""
    part = node.this.sql("bigquery").upper()
    value = node.args["expression"]
    if part in PLAIN_PARTS:
        return _part(part.lower(), value)
    if part in FRACTIONS:
        return exp.Mod(this=_part(part.lower(), value), expression=FRACTIONS[part].copy())
    if part == "DAYOFWEEK":
        return exp.Paren(this=exp.Add(this=_part("dow", value), expression=exp.Literal.number(1)))
    if part == "WEEK":
        sunday = call("strftime", value, exp.Literal.string("%U"))
        return exp.cast(sunday, exp.DataType.Type.BIGINT)
    if part == "ISOWEEK":
        return _part("week", value)
    if part in {"DATE", "TIME"}:
        return exp.cast(value.copy(), part)
    raise unsupported(f"EXTRACT of {part}")


def _part(part: str, value: exp.Expr) -> exp.Expr:
    return call("date_part", exp.Literal.string(part), value)


def _wrapped(sql: str) -> Callable[[exp.Expr], exp.Expr]:
    """Put the translation of a node into a DuckDB expression, as `:x`."""

    def rule(node: exp.Expr) -> exp.Expr:
        inner = node.copy()
        return duck(sql, x=inner)

    return rule


def _codes(node: exp.Expr) -> set[str]:
    """Return the elements of a format, by their letters.

    Raises:
        ApiError: one of them is not known to mean the same in both.
    """
    text = node.args.get("format")
    if not isinstance(text, exp.Literal):
        raise unsupported("A format that is no literal")
    codes = {pair[1:] for pair in re.findall("%.?", text.name)}
    if not codes <= FORMAT_CODES:
        raise unsupported(f"The format {text.name!r}")
    return codes


def _format(node: exp.Expr) -> exp.Expr:
    """Format in UTC, or in the zone that is given."""
    _codes(node)
    zone = node.args.get("zone")
    value = node.this
    if zone is not None:
        value = exp.AtTimeZone(this=value.this.copy(), zone=zone.copy())
    return call("strftime", exp.cast(value.copy(), "TIMESTAMP"), node.args["format"])


def _parse(kind: str) -> Callable[[exp.Expr], exp.Expr]:
    """Parse a text whose format names a whole date; BigQuery's defaults are other than DuckDB's."""

    def rule(node: exp.Expr) -> exp.Expr:
        if not _codes(node) >= {"Y", "m", "d"} or node.args.get("zone"):
            raise unsupported("Parsing by a format without %Y, %m and %d, or with a time zone")
        return exp.cast(call("strptime", node.this, node.args["format"]), kind)

    return rule


def _from_unix(node: exp.Expr) -> exp.Expr:
    scale = node.args.get("scale")
    names = {"0": "seconds", "3": "millis", "6": "micros"}
    return call(f"bq_timestamp_{names[scale.name if scale else '0']}", node.this)


def _last_day(node: exp.Expr) -> exp.Expr:
    if node.args.get("unit"):
        raise unsupported("LAST_DAY of another part than MONTH")
    return call("last_day", node.this)


def _current(kind: str) -> Callable[[exp.Expr], exp.Expr]:
    """Tell the time in UTC, or in the zone that is given."""

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
    exp.TsOrDsToTime: lambda node: exp.cast(exp.cast(node.this, "TIMESTAMP"), "TIME"),
    exp.UnixSeconds: lambda node: call("bq_unix_seconds", node.this),
    exp.UnixMillis: lambda node: call("bq_unix_millis", node.this),
    exp.UnixMicros: lambda node: call("bq_unix_micros", node.this),
}
