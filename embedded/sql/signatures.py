"""Check the types of the arguments of operators and functions.

**Invariant:** an expression is refused only if none of its possible types (`kinds`) is allowed; the
message is BigQuery's.

Comparisons of arrays, which DuckDB allows, are errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.kinds import NUMBERS, kind_of, may_be
from embedded.model.errors import ApiError
from embedded.sql.clauses import CLAUSES
from embedded.sql.type_checks import (
    BOOL,
    FROM_TEXT,
    NUMERIC,
    check_common_type,
    check_ordered,
    check_type,
    compare,
    no_signature,
    types_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = frozenset({"STRING", "BYTES"})
STRING = frozenset({"STRING"})
WHOLE = frozenset({"INT64"})
BITS = frozenset({"INT64", "BYTES"})
EXACT = frozenset({"INT64", "NUMERIC", "BIGNUMERIC"})
# The types of a function's first argument, by SQLGlot's class; DuckDB checks the other arguments.
_FIRST = {
    TEXT: """Lower Upper Trim Substring Replace Repeat Pad Left Right Length StartsWith EndsWith
        RegexpLike RegexpExtract RegexpExtractAll RegexpReplace RegexpInstr Split StrPosition Like
        ByteLength GroupConcat ToCodePoints""",
    STRING: "Initcap Ascii Unicode Translate Normalize Soundex",
    NUMERIC: """Sqrt Exp Ln Log Sin Cos Tan Asin Acos Atan Atan2 Abs Sign Ceil Floor Round Trunc
        Pow Neg Avg Stddev StddevPop StddevSamp Variance VariancePop SafeDivide IsNan IsInf Sum
        Div PercentileCont SafeAdd SafeSubtract SafeMultiply SafeNegate""",
    BOOL: "Not CountIf LogicalOr LogicalAnd",
    EXACT: "Mod IntDiv",
    BITS: "BitwiseNot BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift",
}
FIRST = {name: taken for taken, names in _FIRST.items() for name in names.split()}
_BOTH = """
Mod IntDiv BitwiseAnd BitwiseOr BitwiseXor Pow Div SafeDivide RegexpLike Like StartsWith EndsWith
Atan2 SafeAdd SafeSubtract SafeMultiply
"""
BOTH = frozenset(_BOTH.split())
COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
DATE_PARTS = frozenset({"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"})
# CAST: the allowed source types of each target type ("Conversion functions: CAST")
CASTS = {
    "INT64": frozenset({"STRING", "BOOL", *NUMBERS}),
    "FLOAT64": frozenset({"STRING", *NUMBERS}),
    "NUMERIC": frozenset({"STRING", *NUMBERS}),
    "BIGNUMERIC": frozenset({"STRING", *NUMBERS}),
    "BOOL": frozenset({"STRING", "BOOL", "INT64"}),
    "STRING": frozenset({"STRING", "BYTES", "BOOL", "INTERVAL", *NUMBERS, *FROM_TEXT}),
    "BYTES": frozenset({"STRING", "BYTES"}),
    "DATE": frozenset({"STRING", "DATE", "DATETIME", "TIMESTAMP"}),
    "DATETIME": frozenset({"STRING", "DATE", "DATETIME", "TIMESTAMP"}),
    "TIMESTAMP": frozenset({"STRING", "DATE", "DATETIME", "TIMESTAMP"}),
    "TIME": frozenset({"STRING", "TIME", "DATETIME", "TIMESTAMP"}),
}


def check_types(tree: exp.Expr) -> None:
    """Check every expression of an annotated statement against the types that BigQuery allows.

    Raises:
        ApiError: an argument has another type for certain.
    """
    for node in tree.walk():
        name = type(node).__name__
        if name in FIRST:
            _function(node, name, FIRST[name])
        elif type(node) in COMPARISONS and not isinstance(node.parent, exp.Update):
            compare(node.this, node.expression, COMPARISONS[type(node)])
        elif isinstance(node, exp.And | exp.Or):
            for side in (node.this, node.expression):
                check_type(side, BOOL, f"operator {name.upper()}", [node.this, node.expression])
        elif type(node) in RULES:
            RULES[type(node)](node)


def _function(node: exp.Expr, name: str, taken: frozenset[str]) -> None:
    args = [node.this]
    if name in BOTH:
        args.append(node.expression)
    spelling = _spelt(node)
    for arg in args:
        inner = arg
        while isinstance(inner, exp.Order | exp.Limit):
            inner = inner.this
        values = inner.expressions if isinstance(inner, exp.Distinct) else [inner]
        for value in values:
            check_type(value, taken, spelling, args)


def _spelt(node: exp.Expr) -> str:
    if isinstance(node, exp.Binary | exp.Unary) and not isinstance(node, exp.Func):
        signs = {"Like": "LIKE", "Not": "NOT", "Neg": "-", "Div": "/", "BitwiseNot": "~"}
        signs |= {"BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^"}
        return f"operator {signs.get(type(node).__name__, type(node).__name__.upper())}"
    try:
        return f"function {node.sql('bigquery').partition('(')[0].upper()}"
    except ValueError:
        return f"function {node.key.upper()}"


def _if(node: exp.Expr) -> None:
    if isinstance(node.parent, exp.Case):
        return
    check_type(node.this, BOOL, "function IF", [node.this, node.args["true"]])
    check_common_type([node.args["true"], node.args.get("false")], "function IF")


def _coalesce(node: exp.Expr) -> None:
    if not node.expressions:
        raise ApiError(
            "invalidQuery",
            "Number of arguments does not match for function IFNULL. "
            "Supported signature: IFNULL(ANY, ANY)",
        )
    check_common_type([node.this, *node.expressions], "function COALESCE")


def _nullif(node: exp.Expr) -> None:
    check_common_type([node.this, node.expression], "function NULLIF")


def _array(node: exp.Expr) -> None:
    check_common_type(node.expressions, "an array's elements", "Array elements of types")


def _between(node: exp.Expr) -> None:
    compare(node.this, node.args["low"], ">=")
    compare(node.this, node.args["high"], "<=")


def _concat(node: exp.Expr) -> None:
    for part in node.expressions:
        check_type(part, TEXT, "function CONCAT", node.expressions)


def _pipes(node: exp.Expr) -> None:
    sides = [node.this, node.expression]
    for side in sides:
        kinds = may_be(side)
        if kinds and not any(kind in TEXT or kind.startswith("ARRAY") for kind in kinds):
            raise no_signature("operator ||", sides)


def _arithmetic(node: exp.Expr) -> None:
    """Check +, - and *: numbers, or a date and an INTERVAL or INT64."""
    sides = [node.this, node.expression]
    sign = {"Add": "+", "Sub": "-", "Mul": "*"}[type(node).__name__]
    taken = NUMERIC if sign == "*" else NUMERIC | FROM_TEXT | {"INTERVAL"}
    for side in sides:
        check_type(side, taken | {"INTERVAL"}, f"operator {sign}", sides)


def _case(node: exp.Expr) -> None:
    for branch in node.args["ifs"]:
        if node.this:
            compare(node.this, branch.this, "=")
        else:
            check_type(branch.this, BOOL, "CASE WHEN", [branch.this])
    results = [branch.args["true"] for branch in node.args["ifs"]]
    check_common_type([*results, node.args.get("default")], "CASE")


def _in(node: exp.Expr) -> None:
    for value in node.expressions:
        compare(node.this, value, "=")


def _bracket(node: exp.Expr) -> None:
    kinds = may_be(node.this)
    if kinds and not any(k.startswith("ARRAY") or k in {"JSON", "STRUCT"} for k in kinds):
        raise ApiError(
            "invalidQuery",
            f"Element access using [] is not supported on values of type {types_text(node.this)}",
        )


def _array_length(node: exp.Expr) -> None:
    kinds = may_be(node.this)
    if kinds and not any(k.startswith("ARRAY") for k in kinds):
        raise no_signature("function ARRAY_LENGTH", [node.this])


def _array_to_string(node: exp.Expr) -> None:
    kinds = may_be(node.this)
    if kinds and not kinds & {"ARRAY<STRING>", "ARRAY<BYTES>", "ARRAY<>"}:
        raise no_signature("function ARRAY_TO_STRING", [node.this])


def _extreme(node: exp.Expr) -> None:
    check_ordered(node.this, f"{node.key.upper()} for argument of type")


def _cast(node: exp.Expr) -> None:
    kind = kind_of(node.args["to"])
    kinds = may_be(node.this)
    if kind == "JSON":
        raise ApiError("invalidQuery", f"Invalid cast from {types_text(node.this)} to JSON")
    taken = CASTS.get(kind)
    if taken is not None and kinds and not kinds & taken:
        raise ApiError("invalidQuery", f"Invalid cast from {types_text(node.this)} to {kind}")


def _date_part(node: exp.Expr) -> None:
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() in DATE_PARTS:
        raise ApiError("invalidQuery", f"{node.key.upper()} does not support {unit.name.upper()}")


def _extract(node: exp.Expr) -> None:
    part = node.this.name.upper()
    if part in DATE_PARTS and may_be(node.expression) == frozenset({"DATE"}):
        raise ApiError("invalidQuery", f"EXTRACT from DATE does not support the {part} date part")


def _instant_part(node: exp.Expr) -> None:
    unit = node.args.get("unit")
    if unit is not None and unit.name.upper() in {"WEEK", "MONTH", "QUARTER", "YEAR"}:
        raise ApiError(
            "invalidQuery",
            f"{node.key.upper()} does not support the {unit.name.upper()} date part when the "
            "argument is TIMESTAMP type",
        )


RULES: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _arithmetic),
    exp.If: _if,
    exp.Case: _case,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Array: _array,
    exp.In: _in,
    exp.Between: _between,
    exp.Concat: _concat,
    exp.DPipe: _pipes,
    exp.Bracket: _bracket,
    exp.ArraySize: _array_length,
    exp.ArrayToString: _array_to_string,
    **dict.fromkeys((exp.Min, exp.Max, exp.Greatest, exp.Least), _extreme),
    **dict.fromkeys((exp.Cast, exp.TryCast), _cast),
    **dict.fromkeys((exp.DateAdd, exp.DateSub, exp.DateTrunc), _date_part),
    exp.Extract: _extract,
    **dict.fromkeys((exp.TimestampAdd, exp.TimestampSub), _instant_part),
    **CLAUSES,
}
