"""Conditional functions that are calls: COALESCE, IFNULL, NULLIF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.googlesql.comparisons import compared
from loader.query.googlesql.conversions import unified
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function


def _coalesce(call: Call) -> Value:
    call.count(*((2, 2) if call.name == "IFNULL" else (1, 1000)))
    values = unified(call.values(), call.node, f"the arguments of {call.name}")
    return Value(f"coalesce({', '.join(value.sql for value in values)})", values[0].type)


def _nullif(call: Call) -> Value:
    call.count(2, 2)
    first, second = unified(call.values(), call.node, "the arguments of NULLIF")
    same = compared("=", Value("{0}", first.type), Value("{1}", second.type), call.node)
    template = f"CASE WHEN {same.sql} THEN NULL ELSE {{0}} END"
    return Value(filled(template, [first.sql, second.sql]), first.type)


CONDITIONS: dict[str, Function] = {
    "COALESCE": _coalesce,
    "IFNULL": _coalesce,
    "NULLIF": _nullif,
}
