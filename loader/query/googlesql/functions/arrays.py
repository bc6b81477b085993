"""Functions of arrays ("Array functions")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import unified
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import INT64, NULL, STRING, array
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function


def _list(call: Call, at: int = 0) -> Value:
    value = call.value(at)
    if value.type.element is None:
        raise refusal(Code.TYPE, f"{call.name} needs an ARRAY, not {value.type}", call.nodes[at])
    return value


def _length(call: Call) -> Value:
    call.count(1, 1)
    return Value(f"CAST(size({_list(call).sql}) AS BIGINT)", INT64)


def _concat(call: Call) -> Value:
    call.count(1, 1000)
    values = unified([_list(call, at) for at in range(len(call.nodes))], call.node, "the arrays")
    return Value(f"concat({', '.join(value.sql for value in values)})", values[0].type)


def _reverse(call: Call) -> Value:
    call.count(1, 1)
    value = _list(call)
    return Value(f"reverse({value.sql})", value.type)


def _to_string(call: Call) -> Value:
    call.count(2, 3)
    value = _list(call)
    if value.type.element not in {STRING, NULL}:
        raise call.unsupported(f"ARRAY_TO_STRING of {value.type}")
    others = [call.wanted(at, STRING).sql for at in range(1, len(call.nodes))]
    return Value(f"array_join({value.sql}, {', '.join(others)})", STRING)


def _generated(call: Call) -> Value:
    call.count(2, 3)
    values = [call.wanted(at, INT64) for at in range(len(call.nodes))]
    step = values[2].constant.value if len(values) > 2 and values[2].constant else 1  # noqa: PLR2004
    if len(values) > 2 and values[2].constant is None:  # noqa: PLR2004
        raise call.unsupported("a step that is no literal", 2)
    if not isinstance(step, int) or step == 0:
        raise call.refused("a step of 0", 2)
    order = ">" if step > 0 else "<"
    made = (
        f"CASE WHEN {{0}} {order} {{1}} THEN CAST(array() AS ARRAY<BIGINT>) "
        f"WHEN {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN sequence({{0}}, {{1}}, {step}L) END"
    )
    return Value(filled(made, [value.sql for value in values[:2]]), array(INT64))


def _end(call: Call) -> Value:
    call.count(1, 1)
    value = _list(call)
    assert value.type.element is not None
    at = "1" if call.name == "ARRAY_FIRST" else "-1"
    made = (
        f"CASE WHEN size({{0}}) = 0 THEN raise_error('{call.name} of an empty array') "
        f"ELSE element_at({{0}}, {at}) END"
    )
    return Value(filled(made, [value.sql]), value.type.element)


ARRAYS: dict[str, Function] = {
    "ARRAY_LENGTH": _length,
    "ARRAY_CONCAT": _concat,
    "ARRAY_REVERSE": _reverse,
    "ARRAY_TO_STRING": _to_string,
    "GENERATE_ARRAY": _generated,
    "ARRAY_FIRST": _end,
    "ARRAY_LAST": _end,
}
