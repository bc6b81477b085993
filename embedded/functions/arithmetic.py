"""Numeric functions by GoogleSQL's rules, as DuckDB macros.

**Invariant:** where BigQuery raises an error (logarithm of 0, overflow of FLOAT64), the macro does.
The result is an infinity or NaN only if an argument is ("Mathematical functions").

NUMERIC arguments whose exact result may differ from BigQuery's are errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.duck import call
from embedded.functions.kinds import NUMBERS, may_be

if TYPE_CHECKING:
    from collections.abc import Callable

_R = "CAST({0} AS DOUBLE)"


def _no(what: str) -> str:
    return f"error('{what} is not supported by the embedded BigQuery')"


def _is_decimal(name: str) -> str:
    return f"typeof({name}) LIKE 'DECIMAL%'"


def _checked(name: str, wrong: str, value: str) -> str:
    """Return a macro of one argument x; under the condition `wrong` it raises an error."""
    message = f"'Floating point error in function: {name.upper()}(' || CAST(x AS VARCHAR) || ')'"
    return (
        f"CASE WHEN {_is_decimal('x')} THEN {_no(f'{name.upper()} of NUMERIC')} "
        f"WHEN {wrong} THEN error({message}) ELSE {value} END"
    )


def _overflow(sign: str) -> str:
    """Return the condition of an overflow of FLOAT64: a result out of range, operands in range."""
    value = f"(CAST(a AS DOUBLE) {sign} CAST(b AS DOUBLE))"
    message = f"'double overflow: ' || CAST(a AS VARCHAR) || ' {sign} ' || CAST(b AS VARCHAR)"
    finite = "NOT isinf(CAST(a AS DOUBLE)) AND NOT isinf(CAST(b AS DOUBLE))"
    return f"CASE WHEN isinf({value}) AND {finite} THEN error({message}) ELSE {value} END"


def _perhaps(sign: str) -> str:
    """Return the condition if only DuckDB knows the type; an infinity's text begins with inf."""
    text = "CAST({0} AS VARCHAR) IN ('inf', '-inf')"
    message = f"'double overflow: ' || CAST(a AS VARCHAR) || ' {sign} ' || CAST(b AS VARCHAR)"
    exact = f"{_is_decimal('a')} AND {_is_decimal('b')}"
    refused = f"WHEN {exact} THEN {_no('NUMERIC * NUMERIC')} " if sign == "*" else ""
    if sign == "-":
        days = "typeof(a) = 'DATE' AND typeof(b) = 'DATE'"
        refused = f"WHEN {days} THEN {_no('DATE - DATE')} "
    return (
        f"CASE {refused}WHEN typeof(a {sign} b) = 'DOUBLE' AND "
        f"{text.format(f'(a {sign} b)')} AND NOT "
        f"({text.format('a')} OR {text.format('b')}) THEN error({message}) ELSE a {sign} b END"
    )


_X = _R.format("x")
_INF = f"isinf(exp({_X})) AND NOT isinf({_X})"
_POW = "pow(CAST(a AS DOUBLE), CAST(b AS DOUBLE))"
_POW_SAID = "'Floating point error in function: POW(' || a || ', ' || b || ')'"
_FINITE = "isfinite(CAST(a AS DOUBLE)) AND isfinite(CAST(b AS DOUBLE))"
_MIN = "(-9223372036854775807 - 1)"

BODIES: dict[str, tuple[str, str]] = {
    "bq_ln": ("x", _checked("ln", f"{_X} <= 0", f"ln({_X})")),
    "bq_log10": ("x", _checked("log10", f"{_X} <= 0", f"log10({_X})")),
    "bq_sqrt": ("x", _checked("sqrt", f"{_X} < 0", f"sqrt({_X})")),
    "bq_exp": ("x", _checked("exp", _INF, f"exp({_X})")),
    "bq_acos": ("x", _checked("acos", f"abs({_X}) > 1 AND NOT isnan({_X})", f"acos({_X})")),
    "bq_asin": ("x", _checked("asin", f"abs({_X}) > 1 AND NOT isnan({_X})", f"asin({_X})")),
    "bq_log": (
        "a, b",
        (
            "CASE WHEN CAST(a AS DOUBLE) <= 0 OR CAST(b AS DOUBLE) <= 0 OR CAST(b AS DOUBLE) = 1 "
            "THEN error('Floating point error in function: LOG(' || a || ', ' || b || ')') "
            "ELSE ln(CAST(a AS DOUBLE)) / ln(CAST(b AS DOUBLE)) END"
        ),
    ),
    "bq_pow": (
        "a, b",
        (
            f"CASE WHEN {_is_decimal('a')} OR {_is_decimal('b')} THEN {_no('POW of NUMERIC')} "
            f"WHEN {_FINITE} AND NOT isfinite({_POW}) THEN error({_POW_SAID}) ELSE {_POW} END"
        ),
    ),
    **{
        f"bq_{name}_real": ("a, b", _overflow(sign))
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))
    },
    **{
        f"bq_{name}_any": ("a, b", _perhaps(sign))
        for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))
    },
    "bq_ieee_divide": (
        "a, b",
        (
            "CASE WHEN CAST(b AS DOUBLE) = 0 THEN CASE WHEN CAST(a AS DOUBLE) = 0 OR "
            "isnan(CAST(a AS DOUBLE)) THEN CAST('nan' AS DOUBLE) WHEN CAST(a AS DOUBLE) > 0 THEN "
            "CAST('inf' AS DOUBLE) WHEN a IS NOT NULL THEN CAST('-inf' AS DOUBLE) END "
            "ELSE CAST(a AS DOUBLE) / CAST(b AS DOUBLE) END"
        ),
    ),
    "bq_shift_left": (
        "a, b",
        (
            "CASE WHEN b < 0 THEN error('Bitwise left shift by negative amount') WHEN b >= 64 "
            "THEN 0 WHEN a IS NOT NULL AND b IS NOT NULL THEN CAST(CASE WHEN b = 0 THEN a ELSE "
            # shift the remaining bits, then read them as a signed number
            "(((CAST(a AS HUGEINT) & ((1::HUGEINT << (64 - CAST(b AS INTEGER))) - 1)) "
            "* (1::HUGEINT << CAST(b AS INTEGER)) + 9223372036854775808::HUGEINT) "
            "% 18446744073709551616::HUGEINT) - 9223372036854775808::HUGEINT END AS BIGINT) END"
        ),
    ),
    "bq_shift_right": (
        "a, b",
        (
            "CASE WHEN b < 0 THEN error('Bitwise right shift by negative amount') WHEN b >= 64 "
            "THEN 0 WHEN a IS NOT NULL AND b IS NOT NULL THEN CAST(CASE WHEN b = 0 THEN a ELSE "
            "(CASE WHEN a < 0 THEN a + 18446744073709551616::HUGEINT ELSE a END) // "
            "(1::HUGEINT << CAST(b AS INTEGER)) END AS BIGINT) END"
        ),
    ),
    "bq_bit_count": ("x", "CAST(bit_count(CAST(x AS BIGINT)) AS BIGINT)"),
    "bq_abs": (
        "x",
        (
            f"CASE WHEN typeof(x) = 'BIGINT' AND CAST(x AS VARCHAR) = CAST({_MIN} AS VARCHAR) "
            f"THEN error('int64 overflow: ABS({_MIN})') ELSE abs(x) END"
        ),
    ),
}


def arithmetic(name: str) -> Callable[[exp.Expr], exp.Expr]:
    """Return the rule of an operator: it checks overflow if the result may be FLOAT64."""

    def rule(node: exp.Expr) -> exp.Expr:
        kinds = may_be(node)
        if kinds == frozenset({"FLOAT64"}):
            return call(f"bq_{name}_real", node.this, node.expression)
        if kinds is not None and "FLOAT64" not in kinds and name != "mul":
            return node
        sides = [may_be(node.this), may_be(node.expression)]
        if kinds == frozenset({"INT64"}):
            return node
        if any(side and not side & set(NUMBERS) for side in sides):
            return call("bq_sub", node.this, node.expression) if name == "sub" else node
        return call(f"bq_{name}_any", node.this, node.expression)

    return rule


def _log(node: exp.Expr) -> exp.Expr:
    """Rewrite LOG(x), LOG(x, base) and LOG10(x); SQLGlot parses them all as Log, base first."""
    if node.args.get("expression") is None:
        return call("bq_ln", node.this)
    base = node.this
    ten = base.find(exp.Literal)
    if ten is not None and ten.name == "10":
        return call("bq_log10", node.expression)
    return call("bq_log", node.expression, base)


def _one(name: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: call(name, node.this)


def _two(name: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: call(name, node.this, node.expression)


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Add: arithmetic("add"),
    exp.Sub: arithmetic("sub"),
    exp.Mul: arithmetic("mul"),
    exp.Ln: _one("bq_ln"),
    exp.Log: _log,
    exp.Sqrt: _one("bq_sqrt"),
    exp.Exp: _one("bq_exp"),
    exp.Acos: _one("bq_acos"),
    exp.Asin: _one("bq_asin"),
    exp.Pow: _two("bq_pow"),
    exp.BitwiseLeftShift: _two("bq_shift_left"),
    exp.BitwiseRightShift: _two("bq_shift_right"),
    exp.BitwiseCount: _one("bq_bit_count"),
    exp.Abs: _one("bq_abs"),
}
