"""Functions over windows ("Window function calls")."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable, sorted_by
from loader.query.googlesql.conversions import unified
from loader.query.googlesql.functions.aggregates import AGGREGATES, aggregate
from loader.query.googlesql.functions.aggregating import opened
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import FLOAT64, INT64
from loader.query.googlesql.values import Value

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call
    from loader.query.googlesql.places import Place

RANKS = {
    "ROW_NUMBER": ("CAST(row_number(){over} AS BIGINT)", INT64),
    "RANK": ("CAST(rank(){over} AS BIGINT)", INT64),
    "DENSE_RANK": ("CAST(dense_rank(){over} AS BIGINT)", INT64),
    "PERCENT_RANK": ("percent_rank(){over}", FLOAT64),
    "CUME_DIST": ("cume_dist(){over}", FLOAT64),
}
VALUES = {"LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "NTILE"}
SIDES = {"PRECEDING", "FOLLOWING"}


def over(place: Place, node: exp.Expr) -> str:
    """Return Spark's OVER clause.

    Raises:
        QueryError: the window has a form that is not supported.
    """
    if node.args.get("alias") is not None or node.args.get("first") is not None:
        raise unsupported("a named window (write it in OVER)", node)
    inner = replace(place, windows=False)
    keys = []
    for item in node.args.get("partition_by") or []:
        value = inner.value(item)
        check_comparable(value.type, item, "PARTITION BY")
        keys.append(value.sql)
    parts = [f"PARTITION BY {', '.join(keys)}"] if keys else []
    order = node.args.get("order")
    sorts: list[str] = []
    for item in order.expressions if order is not None else []:
        value = inner.value(item.this)
        sorts += sorted_by(
            value,
            item,
            descending=bool(item.args.get("desc")),
            nulls_first=bool(item.args.get("nulls_first")),
        )
    if sorts:
        parts.append(f"ORDER BY {', '.join(sorts)}")
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame(place, spec, len(sorts)))
    return f" OVER ({' '.join(parts)})"


def _frame(place: Place, spec: exp.Expr, keys: int) -> str:
    if spec.args.get("exclude") is not None:
        raise unsupported("EXCLUDE of a window", spec)
    kind = str(spec.args.get("kind")).upper()
    ends = [
        _bound(place, spec, spec.args.get(side), spec.args.get(f"{side}_side"))
        for side in ("start", "end")
    ]
    numbers = any(end and end[0].isdigit() for end in ends)
    if kind not in {"ROWS", "RANGE"} or (kind == "RANGE" and numbers and keys != 1):
        raise unsupported("this frame of a window", spec)
    start, end = ends
    return f"{kind} BETWEEN {start} AND {end or 'CURRENT ROW'}"


def _bound(place: Place, spec: exp.Expr, value: object, side: object) -> str:
    if value is None:
        return ""
    if value == "CURRENT ROW":
        return "CURRENT ROW"
    way = str(side).upper()
    if way not in SIDES:
        raise unsupported("this frame of a window", spec)
    if value == "UNBOUNDED":
        return f"UNBOUNDED {way}"
    assert isinstance(value, exp.Expr)
    found = place.value(value)
    number = found.constant.value if found.constant is not None else None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise unsupported("a frame of a window that is no number", spec)
    return f"{number} {way}"


def windowed(place: Place, call: Call, node: exp.Expr) -> Value:
    """Translate a function over a window.

    Raises:
        QueryError: it cannot stand here, or has a form that is not supported.
    """
    if not place.windows:
        raise refusal(Code.ARGUMENT, f"{call.name} OVER cannot stand here", node)
    clause = over(place, node)
    if call.name in RANKS:
        call.count(0, 0)
        template, kind = RANKS[call.name]
        return Value(template.replace("{over}", clause), kind)
    if call.name in VALUES:
        nodes, modifiers = opened(call)
        inner = replace(call, nodes=nodes, place=replace(place, windows=False))
        nulls = " IGNORE NULLS" if modifiers.ignore_nulls else ""
        return _value(inner, nulls, clause)
    if call.name in AGGREGATES:
        return aggregate(call, clause)
    raise unsupported(f"{call.name} OVER", node)


def _value(call: Call, nulls: str, clause: str) -> Value:
    if call.name == "NTILE":
        call.count(1, 1)
        return Value(f"CAST(ntile({call.whole(0, 'a number')}){clause} AS BIGINT)", INT64)
    if call.name in {"LAG", "LEAD"}:
        call.count(1, 3)
        value = call.value(0)
        steps = call.whole(1, "a number of rows") if len(call.nodes) > 1 else 1
        if steps < 0:
            raise call.refused("a number of rows is not negative", 1)
        values = [value, call.value(2)] if len(call.nodes) == 3 else [value]  # noqa: PLR2004
        values = unified(values, call.node, "the arguments")
        others = "".join(f", {other.sql}" for other in values[1:])
        sql = f"{call.name.lower()}({values[0].sql}, {steps}{others}){nulls}{clause}"
        return Value(sql, values[0].type)
    call.count(*((2, 2) if call.name == "NTH_VALUE" else (1, 1)))
    value = call.value(0)
    nth = f", {call.whole(1, 'a number')}" if call.name == "NTH_VALUE" else ""
    return Value(f"{call.name.lower()}({value.sql}{nth}){nulls}{clause}", value.type)
