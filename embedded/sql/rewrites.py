"""Rewrite expressions that would have another meaning in DuckDB.

**Invariant:** each rule states the difference between GoogleSQL and DuckDB that it removes.

A form of a function without an equivalent expression is an error.
"""

from __future__ import annotations

import getpass
import os
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from embedded.functions import arithmetic, comparisons, composed, sums, texts
from embedded.functions.dates import DATES
from embedded.functions.duck import call, duck
from embedded.functions.kinds import META, may_be
from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

USER_HOST = "localhost"
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)


def rewritten(tree: exp.Expr, parameters: dict[str, str]) -> exp.Expr:
    """Apply the rules, innermost expressions first, and replace parameters by their expressions."""
    for node in reversed(list(tree.bfs())):
        if isinstance(node, exp.Parameter):
            after: exp.Expr = _parameter(node, parameters)
        else:
            rule = RULES.get(type(node))
            after = rule(node) if rule else node
        if after is not node:
            after.meta[META] = may_be(node)
            if node is tree:
                tree = after
            else:
                node.replace(after)
    return tree


def session_user() -> str:
    """Return the user of every session, as an e-mail address: who runs the server.

    There are no accounts here; a server for one machine mostly belongs to who asks it.
    """
    try:
        return f"{getpass.getuser()}@{USER_HOST}"
    except (OSError, KeyError):  # a container's user has no name
        return f"uid-{os.getuid()}@{USER_HOST}"


def _parameter(node: exp.Expr, parameters: dict[str, str]) -> exp.Expr:
    if node.name not in parameters:
        raise invalid(f"Query parameter '{node.name}' not found")
    return sqlglot.parse_one(parameters[node.name], read="duckdb")


def _literal(node: exp.Expr) -> exp.Expr:
    """Cast 1.5 to FLOAT64 (DuckDB: DECIMAL), and an operand to INT64 (DuckDB: INT32 overflows)."""
    if node.is_string:
        return node
    if not node.is_int:
        return exp.cast(exp.Literal.string(node.name), exp.DataType.Type.DOUBLE)
    parent = node.parent
    if isinstance(parent, ARITHMETIC) and _is_fixed(parent.left) and _is_fixed(parent.right):
        return exp.cast(node.copy(), exp.DataType.Type.BIGINT)
    return node


def _is_fixed(node: exp.Expr) -> bool:
    """Say whether an operand is a constant, which DuckDB may treat as INT32; columns are INT64."""
    return all(
        isinstance(part, (exp.Literal, exp.Paren, exp.Neg, *ARITHMETIC)) for part in node.walk()
    )


def _type(node: exp.Expr) -> exp.Expr:
    """Use the precision with which columns store NUMERIC and BIGNUMERIC."""
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
    """Rewrite CAST by GoogleSQL's rules where DuckDB's differ ("Conversion functions")."""
    if node.args.get("format"):
        raise unsupported("CAST with FORMAT")
    safe = "safe_" if isinstance(node, exp.TryCast) else ""
    kind = node.args["to"].this
    macros = {
        exp.DataType.Type.TEXT: f"bq_{safe}string",
        exp.DataType.Type.VARCHAR: f"bq_{safe}string",
        exp.DataType.Type.BIGINT: f"bq_{safe}int64",
        exp.DataType.Type.BOOLEAN: f"bq_{safe}bool",
        exp.DataType.Type.VARBINARY: "bq_bytes",
        exp.DataType.Type.BINARY: "bq_bytes",
        exp.DataType.Type.DOUBLE: f"bq_{safe}float64",
        exp.DataType.Type.DATE: f"bq_{safe}date",
        exp.DataType.Type.TIME: f"bq_{safe}time",
        exp.DataType.Type.TIMESTAMP: f"bq_{safe}datetime",
        exp.DataType.Type.TIMESTAMPTZ: f"bq_{safe}timestamp",
    }
    if str(node.args["to"]) == "DECIMAL(38, 9)":
        return call(f"bq_{safe}numeric", node.this)
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
        if name not in {"round", "trunc"}:
            raise unsupported(f"{name.upper()} to a number of digits")
        return call(f"bq_{name}_to", node.this, places)

    return rule


def _item(node: exp.Expr) -> exp.Expr:
    """Index arrays from 0 (DuckDB: from 1); out of range is an error, except in SAFE_ forms."""
    (index,) = node.expressions
    if index.is_string:
        raise unsupported("Access to JSON by subscript (use JSON_QUERY or JSON_VALUE)")
    start = node.args.get("offset") or 0
    if start:
        index = exp.Sub(this=index.copy(), expression=exp.Literal.number(start))
    return call("bq_safe_item" if node.args.get("safe") else "bq_item", node.this, index)


def _like(node: exp.Expr) -> exp.Expr:
    """Rewrite LIKE with backslash as its escape character, which DuckDB has only with ESCAPE."""
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


def _approx_quantiles(node: exp.Expr) -> exp.Expr:
    """Rewrite APPROX_QUANTILES by exact quantiles, which the definition allows."""
    count = node.args.get("expression")
    if not isinstance(count, exp.Literal) or not count.is_int:
        raise unsupported("APPROX_QUANTILES with a number that is no literal")
    steps = int(count.name)
    places = exp.Array(expressions=[exp.Literal.number(i / steps) for i in range(steps + 1)])
    return call("quantile_disc", node.this, places)


def _array_agg(node: exp.Expr) -> exp.Expr:
    """Rewrite ARRAY_AGG: IGNORE NULLS as a FILTER, LIMIT as a slice."""
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
    sorting = _own_order(inner)
    inner = inner.this if sorting else inner
    value = inner.this if isinstance(inner, exp.Order) else inner
    value = value.expressions[0] if isinstance(value, exp.Distinct) else value
    after: exp.Expr = exp.ArrayAgg(this=inner.copy())
    if isinstance(node, exp.IgnoreNulls):
        where = exp.Where(this=value.copy().is_(exp.null()).not_())
        after = exp.Filter(this=after, expression=where)
    if sorting:
        after = call(sorting, after)
    return after if limit is None else call("list_slice", after, exp.Literal.number(1), limit)


def _own_order(inner: exp.Expr) -> str:
    """Return the macro that sorts as `DISTINCT x ORDER BY x` says, for an x that is computed.

    DuckDB does not see that both are the same: it expands macros in both, and the order of FLOAT64
    has a second key, for NaN.
    """
    if not isinstance(inner, exp.Order) or not isinstance(inner.this, exp.Distinct):
        return ""
    (value, *_), (*more, key) = inner.this.expressions, inner.expressions
    only_nan = all(str(each.this.this) == "bq_nan_key" for each in more)
    if key.this != value or not only_nan or (isinstance(value, exp.Column) and not more):
        return ""
    kind = "floats" if more else "values"
    return f"bq_sorted_{kind}_{'down' if key.args.get('desc') else 'up'}"


def _count_if(node: exp.Expr) -> exp.Expr:
    """Rewrite COUNTIF, which is 0 of no rows; DuckDB's count_if is NULL."""
    if isinstance(node.this, exp.Distinct):
        return node
    return duck("count(nullif(:x, FALSE))", x=node.this)


def _unnest(node: exp.Expr) -> exp.Expr:
    """Rewrite WITH OFFSET, which counts from 0, by WITH ORDINALITY, which counts from 1."""
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


def _struct(node: exp.Expr) -> exp.Expr:
    """Name the unnamed fields of a STRUCT as BigQuery names them in results."""
    if isinstance(node.parent, exp.Cast):
        return node  # the type has the names
    if isinstance(node.parent, exp.Array) and node is not node.parent.expressions[0]:
        first = node.parent.expressions[0]
        if any(isinstance(item, exp.PropertyEQ) for item in first.expressions):
            return node  # in an array, the first element's names count for all
    named = [
        item
        if isinstance(item, exp.PropertyEQ | exp.Column | exp.Dot)
        else exp.PropertyEQ(this=exp.to_identifier(f"_field_{place}"), expression=item.copy())
        for place, item in enumerate(node.expressions, 1)
    ]
    return exp.Struct(expressions=named)


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    **DATES,
    **arithmetic.RULES,
    **comparisons.RULES,
    **sums.RULES,
    **texts.RULES,
    **composed.RULES,
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
    exp.ApproxDistinct: lambda node: exp.Count(this=exp.Distinct(expressions=[node.this])),
    exp.ApproxQuantiles: _approx_quantiles,
    exp.CountIf: _count_if,
    exp.ArrayAgg: _array_agg,
    exp.IgnoreNulls: _array_agg,
    exp.Struct: _struct,
    exp.Unnest: _unnest,
    exp.SessionUser: lambda _: exp.Literal.string(session_user()),
}
