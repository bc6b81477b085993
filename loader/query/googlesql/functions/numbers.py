"""Mathematical functions ("Mathematical functions", "Bit functions")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.arithmetic import computed, fails, finite, overflowed
from loader.query.googlesql.comparisons import check_comparable
from loader.query.googlesql.conversions import unified, wanted
from loader.query.googlesql.functions.calls import by_signature
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import FLOAT64, INT64, NUMERIC
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function


def _rounded(call: Call) -> Value:
    """ROUND and TRUNC to a number of digits, away from zero at the half."""
    call.count(1, 2)
    value = call.value(0)
    if value.type == NUMERIC:
        raise call.unsupported(f"{call.name} of NUMERIC")
    value = wanted(value, FLOAT64, call.nodes[0], f"the argument of {call.name}")
    if call.name == "ROUND":
        whole = "(CASE WHEN abs({0}) < 4503599627370496D THEN round({0}) ELSE {0} END)"
    else:
        whole = (
            "(CASE WHEN abs({0}) < 4503599627370496D THEN "
            "CAST(CAST({0} AS BIGINT) AS DOUBLE) ELSE {0} END)"
        )
    if len(call.nodes) == 1:
        return Value(filled(whole, [value.sql]), FLOAT64)
    digits = call.whole(1, "a number of digits")
    if abs(digits) > 15:  # noqa: PLR2004 - digits of a FLOAT64
        raise call.unsupported(f"{call.name} to {digits} digits", 1)
    if digits >= 0:
        scaled = whole.replace("{0}", f"({{0}} * 1e{digits}D)") + f" / 1e{digits}D"
    else:
        scaled = whole.replace("{0}", f"({{0}} / 1e{-digits}D)") + f" * 1e{-digits}D"
    kept = f"(CASE WHEN abs({{0}}) < 1e290D THEN {scaled} ELSE {{0}} END)"
    return Value(filled(kept, [value.sql]), FLOAT64)


def _extreme(call: Call) -> Value:
    """GREATEST and LEAST: NULL if an argument is NULL, NaN if one is NaN."""
    values = unified(call.values(), call.node, f"the arguments of {call.name}")
    kind = values[0].type
    check_comparable(kind, call.node, call.name)
    sqls = [value.sql for value in values]
    places = [f"{{{place}}}" for place in range(len(values))]
    if len(values) == 1:
        return values[0]
    function = "greatest" if call.name == "GREATEST" else "least"
    chosen = f"{function}({', '.join(places)})"
    if kind == FLOAT64 and function == "least":
        nan = " OR ".join(f"isnan({place})" for place in places)
        chosen = f"CASE WHEN {nan} THEN double('NaN') ELSE {chosen} END"
    null = " OR ".join(f"{place} IS NULL" for place in places)
    return Value(filled(f"CASE WHEN NOT ({null}) THEN {chosen} END", sqls), kind)


def _safely(sign: str, function: str) -> Function:
    def rule(call: Call) -> Value:
        call.count(2, 2)
        left, right = unified(call.values(), call.node, f"the arguments of {call.name}")
        if left.type != INT64:
            if left.type == FLOAT64:
                raise call.unsupported(f"{call.name} of FLOAT64")
            raise refusal(Code.TYPE, f"{call.name} does not take {left.type}", call.node)
        return Value(
            f"{function}({left.sql}, {right.sql})", computed(sign, left, right, call.node).type
        )

    return rule


_QUOTIENT = "try_divide({0}, {1})"
_WHOLE = "CASE WHEN abs({0}) < 4503599627370496D THEN CAST({f}({0}) AS DOUBLE) ELSE {0} END"


def _stepped(name: str) -> Function:
    return by_signature([("F", "F", _WHOLE.replace("{f}", name))], total=True)


NUMBERS: dict[str, Function] = {
    "ABS": by_signature([("I", "I", "abs({0})"), ("F", "F", "abs({0})"), ("N", "N", "abs({0})")]),
    "SIGN": by_signature(
        [("I", "I", "CAST(sign({0}) AS BIGINT)"), ("F", "F", "sign({0})")], total=True
    ),
    "ROUND": _rounded,
    "TRUNC": _rounded,
    **dict.fromkeys(("CEIL", "CEILING"), _stepped("ceil")),
    "FLOOR": _stepped("floor"),
    "SQRT": by_signature([("F", "F", fails("{0} < 0D", "sqrt({0})", "SQRT of a negative number"))]),
    **dict.fromkeys(
        ("POW", "POWER"),
        by_signature(
            [
                (
                    "FF",
                    "F",
                    fails(
                        "{0} < 0D AND abs({0}) < double('Infinity') AND {1} <> floor({1})",
                        fails(
                            "{0} = 0D AND {1} < 0D",
                            finite("power({0}, {1})", "{0}", "{1}"),
                            "POW of zero and a negative number",
                        ),
                        "POW of a negative number and a fraction",
                    ),
                )
            ]
        ),
    ),
    "EXP": by_signature([("F", "F", finite("exp({0})", "{0}"))]),
    "LN": by_signature([("F", "F", fails("{0} <= 0D", "ln({0})", "LN of a number below 0"))]),
    "LOG10": by_signature(
        [("F", "F", fails("{0} <= 0D", "log10({0})", "LOG10 of a number below 0"))]
    ),
    "LOG": by_signature(
        [
            ("F", "F", fails("{0} <= 0D", "ln({0})", "LOG of a number below 0")),
            (
                "FF",
                "F",
                fails(
                    "{0} <= 0D OR {1} <= 0D OR {1} = 1D",
                    "(ln({0}) / ln({1}))",
                    "LOG is not defined here",
                ),
            ),
        ]
    ),
    **{
        name: by_signature([("F", "F", f"{name.lower()}({{0}})")])
        for name in ("SIN", "COS", "TAN", "ATAN", "TANH", "CBRT")
    },
    **{
        name: by_signature([("F", "F", finite(f"{name.lower()}({{0}})", "{0}"))])
        for name in ("SINH", "COSH")
    },
    **{
        name: by_signature(
            [("F", "F", fails("abs({0}) > 1D", f"{name.lower()}({{0}})", f"{name} above 1"))]
        )
        for name in ("ASIN", "ACOS")
    },
    "ATAN2": by_signature([("FF", "F", "atan2({0}, {1})")]),
    "DIV": by_signature([("II", "I", "({0} div {1})")]),
    "MOD": by_signature([("II", "I", "({0} % {1})")]),
    "SAFE_DIVIDE": by_signature(
        [
            (
                "FF",
                "F",
                f"CASE WHEN {overflowed(_QUOTIENT, '{0}', '{1}')} THEN NULL ELSE {_QUOTIENT} END",
            )
        ],
        total=True,
    ),
    "IEEE_DIVIDE": by_signature(
        [
            (
                "FF",
                "F",
                (
                    "CASE WHEN {1} <> 0D THEN {0} / {1} WHEN {0} = 0D OR isnan({0}) "
                    "THEN double('NaN') WHEN {0} > 0D = (atan2({1}, -1D) > 0D) "
                    "THEN double('Infinity') WHEN {0} IS NOT NULL AND {1} IS NOT NULL "
                    "THEN double('-Infinity') END"
                ),
            )
        ],
        total=True,
    ),
    "SAFE_ADD": _safely("+", "try_add"),
    "SAFE_SUBTRACT": _safely("-", "try_subtract"),
    "SAFE_MULTIPLY": _safely("*", "try_multiply"),
    "SAFE_NEGATE": by_signature([("I", "I", "try_subtract(0L, {0})")], total=True),
    "GREATEST": _extreme,
    "LEAST": _extreme,
    "IS_NAN": by_signature(
        [("F", "B", "CASE WHEN {0} IS NOT NULL THEN isnan({0}) END")], total=True
    ),
    "IS_INF": by_signature([("F", "B", "(abs({0}) = double('Infinity'))")], total=True),
    "BIT_COUNT": by_signature([("I", "I", "CAST(bit_count({0}) AS BIGINT)")], total=True),
    "RAND": by_signature([("", "F", "rand()")], total=True),
}
