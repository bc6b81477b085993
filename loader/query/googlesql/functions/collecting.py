"""Aggregate functions that collect the values of a group: into an ARRAY, a text, or quantiles.

**Invariant:** the order of what is collected is that of ORDER BY in the call, whatever order Spark
reads rows in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable, sorted_by
from loader.query.googlesql.functions.aggregating import Aggregate
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import BYTES, FLOAT64, NULL, STRING, array
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from loader.query.googlesql.functions.aggregating import Rule


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


COLLECTING: dict[str, Rule] = {
    "ARRAY_AGG": _array_agg,
    "STRING_AGG": _string_agg,
    "APPROX_QUANTILES": quantiles,
}
