"""Aggregate functions that give one value for a group ("Aggregate functions")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable
from loader.query.googlesql.conversions import wanted
from loader.query.googlesql.functions.aggregating import Aggregate, opened
from loader.query.googlesql.functions.collecting import COLLECTING
from loader.query.googlesql.functions.sums import average_of, sum_of
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import BOOL, FLOAT64, INT64, NULL

if TYPE_CHECKING:
    from loader.query.googlesql.functions.aggregating import Rule
    from loader.query.googlesql.functions.calls import Call
    from loader.query.googlesql.places import Place
    from loader.query.googlesql.values import Value


def _count(one: Aggregate) -> Value:
    one.plain("distinct")
    call = one.call
    call.count(1, 1)
    (node,) = call.nodes
    if isinstance(node, exp.Star):
        if one.modifiers.distinct:
            raise call.refused("COUNT(DISTINCT *) has no meaning")
        return one.made("count(*){over}", INT64)
    value = call.value(0)
    if one.modifiers.distinct:
        check_comparable(value.type, node, "COUNT(DISTINCT)")
        return one.made("count(DISTINCT {0}){over}", INT64, value.sql)
    return one.made("count({0}){over}", INT64, value.sql)


def _countif(one: Aggregate) -> Value:
    one.plain()
    one.call.count(1, 1)
    condition = one.call.place.condition(one.call.nodes[0], "the argument of COUNTIF")
    return one.made("count_if({0}){over}", INT64, condition.sql)


def _extreme(one: Aggregate) -> Value:
    one.plain("distinct")
    one.call.count(1, 1)
    value = one.call.value(0)
    check_comparable(value.type, one.call.node, one.call.name)
    if value.type == FLOAT64 and one.call.name == "MIN":
        # NaN is the least in an order, but MIN is NaN if there is any.
        return one.made(
            "CASE WHEN coalesce(bool_or(isnan({0})){over}, false) THEN double('NaN') "
            "ELSE min({0}){over} END",
            FLOAT64,
            value.sql,
        )
    kind = value.type if value.type != NULL else INT64
    return one.made(f"{one.call.name.lower()}({{0}}){{over}}", kind, value.sql)


def _any_value(one: Aggregate) -> Value:
    one.plain("having")
    one.call.count(1, 1)
    value = one.call.value(0)
    if one.modifiers.having is None:
        return one.made("any_value({0}, true){over}", value.type, value.sql)
    node, greatest = one.modifiers.having
    return _by(one, value, one.call.place.value(node), node, greatest=greatest)


def _by(one: Aggregate, value: Value, key: Value, node: exp.Expr, *, greatest: bool) -> Value:
    check_comparable(key.type, node, "an order")
    if key.type == FLOAT64:
        raise_nan = "CASE WHEN isnan({1}) THEN raise_error('an order by NaN') ELSE {1} END"
    else:
        raise_nan = "{1}"
    function = "max_by" if greatest else "min_by"
    return one.made(f"{function}({{0}}, {raise_nan}){{over}}", value.type, value.sql, key.sql)


def _arg_extreme(one: Aggregate) -> Value:
    one.plain()
    one.call.count(2, 2)
    value, key = one.call.values()
    return _by(one, value, key, one.call.nodes[1], greatest=one.call.name == "MAX_BY")


def _logical(one: Aggregate) -> Value:
    one.plain()
    one.call.count(1, 1)
    function = "bool_and" if one.call.name == "LOGICAL_AND" else "bool_or"
    condition = one.call.place.condition(one.call.nodes[0], "the argument")
    return one.made(f"{function}({{0}}){{over}}", BOOL, condition.sql)


def _bits(one: Aggregate) -> Value:
    one.plain()
    one.call.count(1, 1)
    value = wanted(one.call.value(0), INT64, one.call.node, "the argument")
    return one.made(f"{one.call.name.lower()}({{0}}){{over}}", INT64, value.sql)


_STATISTICS = {
    "STDDEV": "stddev_samp", "STDDEV_SAMP": "stddev_samp", "STDDEV_POP": "stddev_pop",
    "VARIANCE": "var_samp", "VAR_SAMP": "var_samp", "VAR_POP": "var_pop", "CORR": "corr",
    "COVAR_POP": "covar_pop", "COVAR_SAMP": "covar_samp",
}  # fmt: skip


def _statistic(one: Aggregate) -> Value:
    one.plain()
    two = one.call.name.startswith(("CORR", "COVAR"))
    one.call.count(*((2, 2) if two else (1, 1)))
    values = [one.call.wanted(at, FLOAT64).sql for at in range(len(one.call.nodes))]
    places = ", ".join(f"{{{at}}}" for at in range(len(values)))
    return one.made(f"{_STATISTICS[one.call.name]}({places}){{over}}", FLOAT64, *values)


def _distinct_count(one: Aggregate) -> Value:
    """APPROX_COUNT_DISTINCT, exactly: the definition allows it, and both engines agree."""
    one.plain()
    one.call.count(1, 1)
    if one.over:
        raise one.call.unsupported("APPROX_COUNT_DISTINCT over a window")
    value = one.call.value(0)
    check_comparable(value.type, one.call.node, one.call.name)
    return one.made("count(DISTINCT {0})", INT64, value.sql)


AGGREGATES: dict[str, Rule] = {
    "COUNT": _count,
    "COUNTIF": _countif,
    "SUM": sum_of,
    "AVG": average_of,
    "MIN": _extreme,
    "MAX": _extreme,
    "ANY_VALUE": _any_value,
    "MAX_BY": _arg_extreme,
    "MIN_BY": _arg_extreme,
    "LOGICAL_AND": _logical,
    "LOGICAL_OR": _logical,
    **dict.fromkeys(("BIT_AND", "BIT_OR", "BIT_XOR"), _bits),
    **dict.fromkeys(_STATISTICS, _statistic),
    "APPROX_COUNT_DISTINCT": _distinct_count,
    **COLLECTING,
}


def aggregate(call: Call, over: str = "") -> Value:
    """Translate a call of an aggregate function.

    Raises:
        QueryError: it cannot stand here, or has a form that is not supported.
    """
    place: Place = call.place
    if not over and not place.aggregates:
        raise refusal(
            Code.ARGUMENT, f"the aggregate function {call.name} cannot stand here", call.node
        )
    nodes, modifiers = opened(call)
    inner = place.inside() if not over else replace(place, windows=False)
    return AGGREGATES[call.name](
        Aggregate(replace(call, nodes=nodes, place=inner), modifiers, over)
    )


def has_aggregates(node: exp.Expr) -> bool:
    """Say whether an expression has an aggregate function of this query, not of a subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = node.this
        parts = [*inner.expressions, *node.args.get("partition_by", [])]
        if node.args.get("order") is not None:
            parts.append(node.args["order"])
        return any(has_aggregates(part) for part in parts if isinstance(part, exp.Expr))
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in AGGREGATES:
        return not isinstance(node.parent, exp.NetFunc | exp.SafeFunc)
    return any(has_aggregates(part) for part in node.iter_expressions())
