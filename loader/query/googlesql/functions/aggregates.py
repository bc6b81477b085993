"""Aggregate functions ("Aggregate functions", "Statistical aggregate functions").

**Invariant:** each template has `{over}` after each aggregate of Spark, so that one rule serves
for groups and for windows; what Spark cannot compute over a window says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable, sorted_by
from loader.query.googlesql.conversions import coerced, wanted
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    FLOAT64,
    INT64,
    NULL,
    NUMERIC,
    STRING,
    array,
)
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.googlesql.functions.calls import Call
    from loader.query.googlesql.places import Place
    from loader.query.googlesql.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Modifiers:
    """What may stand in the brackets of an aggregate function beside its arguments.

    Attributes:
        distinct: DISTINCT.
        ignore_nulls: IGNORE NULLS.
        order: the items of ORDER BY.
        limit: the number of LIMIT.
        having: the expression of HAVING MAX or MIN, and whether it is MAX.
    """

    distinct: bool = False
    ignore_nulls: bool = False
    order: tuple[exp.Expr, ...] = ()
    limit: int | None = None
    having: tuple[exp.Expr, bool] | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call of an aggregate function, its arguments without what modifies them.

    Attributes:
        call: the call.
        modifiers: what modifies it.
        over: Spark's `OVER (…)`, or nothing.
    """

    call: Call
    modifiers: Modifiers
    over: str = ""

    def made(self, template: str, kind: Type, *values: str) -> Value:
        """Fill a template, in which `{over}` stands after each aggregate."""
        return Value(filled(template.replace("{over}", self.over), list(values)), kind)

    def plain(self, *allowed: str) -> None:
        """Refuse modifiers that the function does not have.

        Raises:
            QueryError: there is one.
        """
        for name, value in (
            ("distinct", self.modifiers.distinct),
            ("ignore_nulls", self.modifiers.ignore_nulls),
            ("order", self.modifiers.order),
            ("limit", self.modifiers.limit is not None),
            ("having", self.modifiers.having),
        ):
            if value and name not in allowed:
                what = name.replace("_", " ").upper()
                raise self.call.unsupported(f"{self.call.name} with {what}")
        if self.modifiers.distinct and self.over:
            raise self.call.unsupported("DISTINCT over a window")


def opened(call: Call) -> tuple[list[exp.Expr], Modifiers]:
    """Take what modifies a call off its arguments.

    Raises:
        QueryError: LIMIT is no number.
    """
    nodes: list[exp.Expr] = []
    found = Modifiers()
    for node in call.nodes:
        inner, found = _opened(node, found)
        if isinstance(inner, exp.Distinct):
            found = replace(found, distinct=True)
            for part in inner.expressions:
                # After a call SQLGlot takes IGNORE NULLS for a part of it.
                bare, found = _opened(part, found)
                nodes.append(bare)
        else:
            nodes.append(inner)
    return nodes, found


def _opened(node: exp.Expr, found: Modifiers) -> tuple[exp.Expr, Modifiers]:
    while True:
        if isinstance(node, exp.Limit):
            number = node.expression
            if not isinstance(number, exp.Literal) or not str(number.this).isdigit():
                raise unsupported("a LIMIT that is no number", node)
            found = replace(found, limit=int(str(number.this)))
        elif isinstance(node, exp.Order):
            found = replace(found, order=tuple(node.expressions))
        elif isinstance(node, exp.IgnoreNulls):
            found = replace(found, ignore_nulls=True)
        elif isinstance(node, exp.HavingMax):
            found = replace(found, having=(node.expression, bool(node.args.get("max"))))
        elif not isinstance(node, exp.RespectNulls):
            return node, found
        if node.this is None:
            raise unsupported("this form of an aggregate function", node)
        node = node.this


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


def _sum(one: Aggregate) -> Value:
    one.plain("distinct")
    one.call.count(1, 1)
    value = one.call.value(0)
    if value.type not in {INT64, FLOAT64, NUMERIC, NULL}:
        raise refusal(Code.TYPE, f"SUM does not take {value.type}", one.call.node)
    kind = value.type if value.type != NULL else INT64
    given = coerced(value, kind)
    assert given is not None
    template = f"sum({_word(one)}{{0}}){{over}}"
    if kind == NUMERIC:
        template = f"CAST({template} AS DECIMAL(38, 9))"
    return one.made(template, kind, given.sql)


def _word(one: Aggregate) -> str:
    return "DISTINCT " if one.modifiers.distinct else ""


def _average(one: Aggregate) -> Value:
    one.plain("distinct")
    one.call.count(1, 1)
    value = one.call.value(0)
    if value.type == NUMERIC:
        raise one.call.unsupported("AVG of NUMERIC")
    if value.type not in {INT64, FLOAT64, NULL}:
        raise refusal(Code.TYPE, f"AVG does not take {value.type}", one.call.node)
    return one.made(f"avg({_word(one)}{{0}}){{over}}", FLOAT64, value.sql)


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


def ordered_list(one: Aggregate, value: Value) -> str:
    """Return a template's part that collects values, NULLs too, in the order of ORDER BY.

    Raises:
        QueryError: there is more than one way to sort.
    """
    if one.over:
        raise one.call.unsupported(f"{one.call.name} over a window")
    distinct = "DISTINCT " if one.modifiers.distinct else ""
    filtered = ""
    if one.modifiers.ignore_nulls:
        filtered = f" FILTER (WHERE {value.sql} IS NOT NULL)"
    if not one.modifiers.order:
        listed = f"collect_list({distinct}named_struct('v', {value.sql})){filtered}"
        if one.modifiers.distinct:
            listed = f"array_sort({listed})"
        return f"transform({listed}, _e -> _e.v)"
    fields: list[str] = []
    ways: set[bool] = set()
    inside = one.call.place
    for item in one.modifiers.order:
        key = inside.value(item.this)
        if one.modifiers.distinct and key.sql != value.sql:
            raise unsupported("an order by something else than the DISTINCT value", item)
        descending = bool(item.args.get("desc"))
        if bool(item.args.get("nulls_first")) == descending:
            raise unsupported("NULLS FIRST or LAST in an aggregate function", item)
        ways.add(descending)
        for sql in sorted_by(key, item, descending=descending, nulls_first=not descending):
            bare = sql.removesuffix(" ASC NULLS FIRST").removesuffix(" DESC NULLS LAST")
            fields.append(f"'k{len(fields)}', {bare}")
    if len(ways) > 1:
        raise one.call.unsupported("an order with both ASC and DESC in an aggregate function")
    listed = (
        f"collect_list({distinct}named_struct({', '.join(fields)}, 'v', {value.sql})){filtered}"
    )
    ascending = "false" if ways == {True} else "true"
    return f"transform(sort_array({listed}, {ascending}), _e -> _e.v)"


def _limited(one: Aggregate, listed: str) -> str:
    return listed if one.modifiers.limit is None else f"slice({listed}, 1, {one.modifiers.limit})"


def _array_agg(one: Aggregate) -> Value:
    one.plain("distinct", "ignore_nulls", "order", "limit")
    one.call.count(1, 1)
    value = one.call.value(0)
    if value.type.element is not None:
        raise refusal(Code.TYPE, "ARRAY_AGG does not take an ARRAY", one.call.node)
    if one.modifiers.distinct:
        check_comparable(value.type, one.call.node, "DISTINCT")
    listed = _limited(one, ordered_list(one, value))
    # Spark's list of no rows is empty, BigQuery's is NULL.
    return Value(f"nullif({listed}, CAST(array() AS ARRAY<{value.type.spark}>))", array(value.type))


def _string_agg(one: Aggregate) -> Value:
    one.plain("distinct", "order", "limit")
    one.call.count(1, 2)
    value = one.call.value(0)
    if value.type not in {STRING, NULL}:
        if value.type == BYTES:
            raise one.call.unsupported("STRING_AGG of BYTES")
        raise refusal(Code.TYPE, f"STRING_AGG does not take {value.type}", one.call.node)
    mark = one.call.wanted(1, STRING) if len(one.call.nodes) > 1 else literal(",")
    without = Aggregate(one.call, replace(one.modifiers, ignore_nulls=True), one.over)
    listed = _limited(one, ordered_list(without, value))
    return Value(
        filled("CASE WHEN size({0}) > 0 THEN array_join({0}, {1}) END", [listed, mark.sql]), STRING
    )


def _distinct_count(one: Aggregate) -> Value:
    """APPROX_COUNT_DISTINCT, exactly: the definition allows it, and both engines agree."""
    one.plain()
    one.call.count(1, 1)
    if one.over:
        raise one.call.unsupported("APPROX_COUNT_DISTINCT over a window")
    value = one.call.value(0)
    check_comparable(value.type, one.call.node, one.call.name)
    return one.made("count(DISTINCT {0})", INT64, value.sql)


def quantiles(one: Aggregate, picked: int | None = None) -> Value:
    """APPROX_QUANTILES, exactly: elements of the sorted values; one of them if `picked` is given.

    Raises:
        QueryError: the number is no literal.
    """
    one.plain()
    one.call.count(2, 2)
    value, steps = one.call.value(0), one.call.whole(1, "a number of quantiles")
    check_comparable(value.type, one.call.node, "APPROX_QUANTILES")
    if one.over or not 1 <= steps <= 1000:  # noqa: PLR2004 - a sensible list
        raise one.call.unsupported("this APPROX_QUANTILES")
    given = value.sql
    if value.type == FLOAT64:
        given = filled(
            "CASE WHEN isnan({0}) THEN raise_error('a quantile of NaN') ELSE {0} END", [value.sql]
        )
    listed = f"array_sort(collect_list({given}))"

    def index(step: int) -> str:
        return f"CAST(greatest((size(_q) * {step} + {steps - 1}) div {steps}, 1) AS INT)"

    chosen = range(steps + 1) if picked is None else [picked]
    items = ", ".join(f"element_at(_q, {index(step)})" for step in chosen)
    made = f"transform(array({listed}), _q -> CASE WHEN size(_q) > 0 THEN array({items}) END)[0]"
    if picked is None:
        return Value(made, array(value.type))
    return Value(f"{made}[0]", value.type)


if TYPE_CHECKING:
    Rule = Callable[[Aggregate], Value]

AGGREGATES: dict[str, Rule] = {
    "COUNT": _count,
    "COUNTIF": _countif,
    "SUM": _sum,
    "AVG": _average,
    "MIN": _extreme,
    "MAX": _extreme,
    "ANY_VALUE": _any_value,
    "MAX_BY": _arg_extreme,
    "MIN_BY": _arg_extreme,
    "LOGICAL_AND": _logical,
    "LOGICAL_OR": _logical,
    **dict.fromkeys(("BIT_AND", "BIT_OR", "BIT_XOR"), _bits),
    **dict.fromkeys(_STATISTICS, _statistic),
    "ARRAY_AGG": _array_agg,
    "STRING_AGG": _string_agg,
    "APPROX_COUNT_DISTINCT": _distinct_count,
    "APPROX_QUANTILES": quantiles,
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
