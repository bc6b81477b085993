"""Expressions whose plain translation would mean something else in DuckDB.

**Invariant:** `rewritten` changes nothing but meaning: each rule names the difference it removes.

It refuses forms of a function for which no faithful rewriting is known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from loader.embedded.errors import invalid, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
WHOLE_UNITS = frozenset({"DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"})
BOUNDARY_UNITS = WHOLE_UNITS | {"MONTH", "QUARTER", "YEAR"}
TRUNC_UNITS = BOUNDARY_UNITS | {"WEEK", "ISOWEEK", "WEEK(MONDAY)", "WEEK(SUNDAY)"}
FRACTIONS = {"MILLISECOND": exp.Literal.number(1000), "MICROSECOND": exp.Literal.number(1_000_000)}
PLAIN_PARTS = frozenset(
    ["YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DAYOFYEAR", "ISOYEAR"]
)
FORMAT_CODES = frozenset("YmdHMSjybBaAIp%")


def call(name: str, *args: exp.Expr) -> exp.Anonymous:
    """Return a call of a DuckDB function or macro."""
    return exp.Anonymous(this=name, expressions=list(args))


def duck(sql: str, **parts: exp.Expr) -> exp.Expr:
    """Parse a DuckDB expression in which `:name` stands for a part."""
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Placeholder)):
        node.replace(parts[str(node.this)].copy())
    return tree


def rewritten(tree: exp.Expr, parameters: dict[str, str]) -> exp.Expr:
    """Apply every rule, innermost expressions first; parameters become their expressions."""
    for node in reversed(list(tree.bfs())):
        if isinstance(node, exp.Parameter):
            after: exp.Expr = _parameter(node, parameters)
        else:
            rule = RULES.get(type(node))
            after = rule(node) if rule else node
        if after is not node:
            if node is tree:
                tree = after
            else:
                node.replace(after)
    return tree


def _parameter(node: exp.Expr, parameters: dict[str, str]) -> exp.Expr:
    if node.name not in parameters:
        raise invalid(f"Query parameter '{node.name}' not found")
    return sqlglot.parse_one(parameters[node.name], read="duckdb")


def _literal(node: exp.Expr) -> exp.Expr:
    """Make 1.5 FLOAT64 (DuckDB: DECIMAL), and an operand INT64 (DuckDB: INT32, which overflows)."""
    if node.is_string:
        return node
    if not node.is_int:
        return exp.cast(exp.Literal.string(node.name), exp.DataType.Type.DOUBLE)
    if isinstance(node.parent, ARITHMETIC):
        return exp.cast(node.copy(), exp.DataType.Type.BIGINT)
    return node


def _type(node: exp.Expr) -> exp.Expr:
    """Give NUMERIC and BIGNUMERIC the precision that columns have here."""
    assert isinstance(node, exp.DataType)
    names = {
        exp.DataType.Type.DECIMAL: "DECIMAL(38, 9)",
        exp.DataType.Type.BIGDECIMAL: "DECIMAL(38, 18)",
    }
    if node.this not in names:
        return node
    if node.expressions:
        raise unsupported("A parameterized NUMERIC in a query")
    return exp.DataType.build(names[node.this], dialect="duckdb")


def _cast(node: exp.Expr) -> exp.Expr:
    """Convert by GoogleSQL's rules where DuckDB's differ ("Conversion functions")."""
    if node.args.get("format"):
        raise unsupported("CAST with FORMAT")
    safe = "safe_" if isinstance(node, exp.TryCast) else ""
    kind = node.args["to"].this
    macros = {
        exp.DataType.Type.TEXT: "bq_string",
        exp.DataType.Type.VARCHAR: "bq_string",
        exp.DataType.Type.BIGINT: f"bq_{safe}int64",
        exp.DataType.Type.BOOLEAN: f"bq_{safe}bool",
        exp.DataType.Type.VARBINARY: "bq_bytes",
        exp.DataType.Type.BINARY: "bq_bytes",
    }
    if isinstance(node.this, exp.Literal) and node.this.is_int:
        return node
    if kind not in macros or isinstance(node.this, exp.Null):
        return node
    return call(macros[kind], node.this)


def _macro(name: str) -> Callable[[exp.Expr], exp.Expr]:
    def rule(node: exp.Expr) -> exp.Expr:
        return call(name, *(arg for arg in (node.this, node.args.get("expression")) if arg))

    return rule


def _rounding(name: str) -> Callable[[exp.Expr], exp.Expr]:
    def rule(node: exp.Expr) -> exp.Expr:
        places = node.args.get("decimals")
        if places is None:
            return call(f"bq_{name}", node.this)
        if name != "round":
            raise unsupported(f"{name.upper()} to a number of digits")
        return call("bq_round_to", node.this, places)

    return rule


def _item(node: exp.Expr) -> exp.Expr:
    """Count array items from 0 and fail outside of the array, unless it is a SAFE_ form."""
    (index,) = node.expressions
    if index.is_string:
        raise unsupported("Access to JSON by subscript (use JSON_QUERY or JSON_VALUE)")
    start = node.args.get("offset") or 0
    if start:
        index = exp.Sub(this=index.copy(), expression=exp.Literal.number(start))
    return call("bq_safe_item" if node.args.get("safe") else "bq_item", node.this, index)


def _like(node: exp.Expr) -> exp.Expr:
    """Escape with a backslash, as GoogleSQL does without being told."""
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))


def _path(node: exp.Expr) -> exp.Expr:
    path = node.args.get("expression")
    if path is None:
        return exp.Literal.string("$")
    if not isinstance(path, exp.JSONPath):
        raise unsupported("A JSON path that is no literal")
    text = "$"
    for part in path.expressions:
        if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str):
            text += '."' + part.this.replace('"', '\\"') + '"'
        elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int):
            text += f"[{part.this}]"
        elif not isinstance(part, exp.JSONPathRoot):
            raise unsupported(f"The JSON path {path.sql('bigquery')}")
    return exp.Literal.string(text)


def _json(name: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: call(name, node.this, _path(node))


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


def _approx_quantiles(node: exp.Expr) -> exp.Expr:
    """Give the exact quantiles, which are an approximation too."""
    count = node.args.get("expression")
    if not isinstance(count, exp.Literal) or not count.is_int:
        raise unsupported("APPROX_QUANTILES with a number that is no literal")
    steps = int(count.name)
    places = exp.Array(expressions=[exp.Literal.number(i / steps) for i in range(steps + 1)])
    return call("quantile_disc", node.this, places)


def _array_agg(node: exp.Expr) -> exp.Expr:
    """Move IGNORE NULLS into a FILTER and LIMIT into a slice."""
    agg = node.this if isinstance(node, exp.IgnoreNulls) else node
    if not isinstance(agg, exp.ArrayAgg):
        return node
    if isinstance(node.parent, exp.IgnoreNulls):
        return node
    inner = agg.this
    limit = None
    if isinstance(inner, exp.Limit):
        limit = inner.args["expression"]
        inner = inner.this
    value = inner.this if isinstance(inner, exp.Order) else inner
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    after: exp.Expr = exp.ArrayAgg(this=inner.copy())
    if isinstance(node, exp.IgnoreNulls):
        where = exp.Where(this=value.copy().is_(exp.null()).not_())
        after = exp.Filter(this=after, expression=where)
    return after if limit is None else call("list_slice", after, exp.Literal.number(1), limit)


def _unnest(node: exp.Expr) -> exp.Expr:
    """Count offsets from 0; DuckDB's WITH ORDINALITY counts from 1."""
    offset = node.args.get("offset")
    if offset is None or isinstance(offset, bool):
        if offset:
            raise unsupported("WITH OFFSET without an alias")
        return node
    alias = node.args.get("alias")
    if alias is None or not alias.columns:
        raise unsupported("UNNEST WITH OFFSET without an alias")
    (array,) = node.expressions
    select = duck("SELECT unnest(:x) AS a, generate_subscripts(:x, 1) - 1 AS o", x=array)
    item, place = select.expressions
    item.set("alias", alias.columns[0].copy())
    place.set("alias", offset.copy())
    name = exp.to_identifier(f"_unnested_{alias.columns[0].name}", quoted=True)
    after = exp.Subquery(this=select, alias=exp.TableAlias(this=name))
    join = node.parent
    if isinstance(join, exp.Join) and join.side and not join.args.get("on"):
        join.set("on", exp.true())
    return after


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Literal: _literal,
    exp.DataType: _type,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Div: _macro("bq_div"),
    exp.SafeDivide: _macro("bq_safe_divide"),
    exp.IntDiv: _macro("bq_intdiv"),
    exp.Mod: _macro("bq_mod"),
    exp.Bracket: _item,
    exp.Like: _like,
    exp.Ceil: _rounding("ceil"),
    exp.Floor: _rounding("floor"),
    exp.Round: _rounding("round"),
    exp.Trunc: _rounding("trunc"),
    exp.Sign: _macro("bq_sign"),
    exp.Length: lambda node: call("bq_length", node.this),
    exp.Substring: lambda node: call(
        "bq_substr", *(node.args[k] for k in ("this", "start", "length") if node.args.get(k))
    ),
    exp.JSONExtractScalar: _json("bq_json_value"),
    exp.JSONExtract: _json("bq_json_query"),
    exp.JSONExtractArray: _json("bq_json_query_array"),
    exp.JSONValueArray: _json("bq_json_value_array"),
    exp.Int64: _macro("bq_json_int64"),
    exp.Float64: _macro("bq_json_float64"),
    exp.JSONBool: _macro("bq_json_bool"),
    exp.String: _macro("bq_json_string"),
    exp.JSONFormat: lambda node: call("bq_to_json_string", node.this),
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
    exp.UnixSeconds: _macro("bq_unix_seconds"),
    exp.UnixMillis: _macro("bq_unix_millis"),
    exp.UnixMicros: _macro("bq_unix_micros"),
    exp.ApproxDistinct: lambda node: exp.Count(this=exp.Distinct(expressions=[node.this])),
    exp.ApproxQuantiles: _approx_quantiles,
    exp.Avg: lambda node: exp.Avg(this=call("bq_no_numeric", node.this)),
    exp.ArrayAgg: _array_agg,
    exp.IgnoreNulls: _array_agg,
    exp.Unnest: _unnest,
}
