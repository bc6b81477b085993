"""Comparisons, orders and patterns where Spark has other rules for NaN, STRUCT and escapes.

**Invariant:** no comparison with NaN holds except `!=`; in an order NaN comes after NULL and before
all numbers.  In Spark NaN equals itself and is the greatest number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import same, unified
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import BOOL, FLOAT64
from loader.query.googlesql.values import Value, filled, text

if TYPE_CHECKING:
    from sqlglot import exp

    from loader.query.googlesql.types import Type

OPERATORS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
ORDERED = {
    "INT64",
    "FLOAT64",
    "BOOL",
    "STRING",
    "BYTES",
    "DATE",
    "TIMESTAMP",
    "DATETIME",
    "NUMERIC",
}


def check_comparable(kind: Type, node: exp.Expr, what: str) -> None:
    """Refuse types without an order.

    Raises:
        QueryError: values of this type cannot be compared, grouped or sorted with the same answer.
    """
    if kind.kind not in {*ORDERED, "NULL"}:
        raise unsupported(f"{what} of {kind.kind}", node)


def compared(operator: str, left: Value, right: Value, node: exp.Expr) -> Value:
    """Compare two values; NULL if one of them is.

    Raises:
        QueryError: their types are not comparable.
    """
    left, right = unified([left, right], node, f"the operands of {operator}")
    check_comparable(left.type, node, "a comparison")
    plain = f"({{0}} {operator} {{1}})"
    if left.type != FLOAT64 or operator == "<>":
        # NaN <> NaN is false in Spark.
        if (
            operator == "<>"
            and left.type == FLOAT64
            and not (_is_number(left) or _is_number(right))
        ):
            plain = "((isnan({0}) AND {1} IS NOT NULL) OR {0} <> {1})"
        return Value(filled(plain, [left.sql, right.sql]), BOOL)
    guards = []
    if not _is_number(left) and (
        operator in {">", ">="} or (operator in {"=", "<="} and not _is_number(right))
    ):
        guards.append("isnan({0})")
    if not _is_number(right) and (
        operator in {"<", "<="} or (operator == ">=" and not _is_number(left))
    ):
        guards.append("isnan({1})")
    if not guards:
        return Value(filled(plain, [left.sql, right.sql]), BOOL)
    known = "{0} IS NOT NULL AND {1} IS NOT NULL"
    guarded = f"CASE WHEN {known} THEN {plain} AND NOT ({' OR '.join(guards)}) END"
    if _is_number(left) or _is_number(right):
        # NULL AND … is NULL or false: the same for a filter, and the operand is a number.
        guarded = f"({plain} AND NOT {guards[0]})"
    return Value(filled(guarded, [left.sql, right.sql]), BOOL)


def _is_number(value: Value) -> bool:
    constant = value.constant
    return (
        constant is not None
        and isinstance(constant.value, float)
        and not math.isnan(constant.value)
    )


def distinct(left: Value, right: Value, node: exp.Expr, *, negated: bool) -> Value:
    """IS [NOT] DISTINCT FROM, for which NULL is a value; NaN is not distinct from NaN."""
    left, right = unified([left, right], node, "the operands of IS DISTINCT FROM")
    check_comparable(left.type, node, "a comparison")
    sql = f"({left.sql} <=> {right.sql})"
    return Value(sql if negated else f"(NOT {sql})", BOOL)


def member(left: Value, values: list[Value], node: exp.Expr) -> Value:
    """IN with a list: NULL if nothing is equal and something is NULL."""
    if not same(left.type, FLOAT64):
        items = unified([left, *values], node, "the operands of IN")
        if items[0].type != FLOAT64:
            check_comparable(items[0].type, node, "IN")
            listed = ", ".join(item.sql for item in items[1:])
            return Value(f"({items[0].sql} IN ({listed}))", BOOL)
    each = [compared("=", left, value, node).sql for value in values]
    return Value(f"({' OR '.join(each)})", BOOL)


def sorted_by(value: Value, node: exp.Expr, *, descending: bool, nulls_first: bool) -> list[str]:
    """Return the keys of ORDER BY in Spark for one of GoogleSQL.

    Raises:
        QueryError: the type has no order.
    """
    check_comparable(value.type, node, "an order")
    way = "DESC" if descending else "ASC"
    nulls = "NULLS FIRST" if nulls_first else "NULLS LAST"
    keys = [f"{value.sql} {way} {nulls}"]
    if value.type == FLOAT64:
        nan = filled("CASE WHEN {0} IS NOT NULL THEN NOT isnan({0}) END", [value.sql])
        keys.insert(0, f"{nan} {way} {nulls}")
    return keys


def like(value: Value, pattern: Value, node: exp.Expr) -> Value:
    """LIKE, whose backslash escapes any character; Spark's escapes `%`, `_` and itself.

    Raises:
        QueryError: the operands are no STRING, or the pattern ends with a backslash.
    """
    for operand in (value, pattern):
        if operand.type.kind not in {"STRING", "NULL"}:
            raise refusal(Code.TYPE, f"LIKE needs STRING, not {operand.type}", node)
    if pattern.constant is None or not isinstance(pattern.constant.value, str):
        return Value(f"({value.sql} LIKE {pattern.sql})", BOOL)
    out, at, given = "", 0, pattern.constant.value
    while at < len(given):
        char = given[at]
        if char == "\\":
            at += 1
            if at == len(given):
                raise refusal(Code.ARGUMENT, "the pattern of LIKE ends with a backslash", node)
            out += f"\\{given[at]}" if given[at] in "%_\\" else given[at]
        else:
            out += char
        at += 1
    return Value(f"({value.sql} LIKE {text(out)})", BOOL)
