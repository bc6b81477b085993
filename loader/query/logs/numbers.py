"""Functions of numbers, choices, and questions about types.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs.function_table import MANY, Function
from loader.query.logs.values import (
    BOOL,
    FLOAT64,
    INT64,
    NOTHING,
    STRING,
    Type,
    Value,
    common,
    converted,
    literal,
    typed_null,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.arguments import Arguments

    Compile = Callable[[Arguments], Value]

_MOST_EXP = 709
"""The greatest whole number of which a double holds the exponential."""


def _abs(args: Arguments) -> Value:
    value = args.number(0)
    return Value(f"ABS({value.sql})", value.type)


def _extreme(function: str) -> Compile:
    def compile_(args: Arguments) -> Value:
        kind = _shared(args, list(range(len(args))))
        if kind.repeated or kind.kind in {"RECORD", "JSON", "BOOL"}:
            raise args.wrong(0, "numbers, texts or times")
        sides = ", ".join(converted(value, kind) for value in args.values)
        return Value(f"{function}({sides})", STRING if kind.is_null else kind)

    return compile_


def _shared(args: Arguments, places: list[int]) -> Type:
    """Return the type that some arguments have together."""
    types = [args.values[place].type for place in places]
    kind = common(types)
    if kind is None:
        last = next(p for p in places if common([*types[: places.index(p) + 1]]) is None)
        raise args.wrong(last, f"a {args.values[places[0]].type.shown} as in the arguments before")
    return kind


def _whole(function: str) -> Compile:
    """Return the compiler of floor and ceil; a whole number stays what it is."""

    def compile_(args: Arguments) -> Value:
        value = args.number(0)
        return value if value.type == INT64 else Value(f"{function}({value.sql})", FLOAT64)

    return compile_


def _round(args: Arguments) -> Value:
    value = args.number(0)
    if len(args) == 1:
        return value if value.type == INT64 else Value(f"ROUND({value.sql})", FLOAT64)
    digits = args.written_number(1, 0, 15)
    return Value(f"ROUND(CAST({value.sql} AS FLOAT64), {digits})", FLOAT64)


def _real(args: Arguments, place: int) -> str:
    value = args.number(place)
    return value.sql if value.type == FLOAT64 else f"CAST({value.sql} AS FLOAT64)"


def _sqrt(args: Arguments) -> Value:
    x = _real(args, 0)
    return Value(f"IF({x} >= 0, SQRT({x}), NULL)", FLOAT64)


def _exp(args: Arguments) -> Value:
    x = _real(args, 0)
    return Value(f"IF({x} <= {_MOST_EXP}, EXP({x}), NULL)", FLOAT64)


def _log(args: Arguments) -> Value:
    x = _real(args, 0)
    if len(args) == 1:
        return Value(f"IF({x} > 0, LN({x}), NULL)", FLOAT64)
    base = _real(args, 1)
    return Value(f"IF({x} > 0 AND {base} > 0 AND {base} != 1, LOG({x}, {base}), NULL)", FLOAT64)


def _pow(args: Arguments) -> Value:
    """Compile pow; null where it is no number, and where it is none that a double holds."""
    x, y = _real(args, 0), _real(args, 1)
    defined = f"({x} > 0 OR ({x} = 0 AND {y} >= 0) OR ({x} < 0 AND {y} = TRUNC({y})))"
    # |x|^y < 1e308, by its logarithm; of 0 there is none, and NULLIF makes the test null
    small = f"IFNULL({y} * LN(NULLIF(ABS({x}), 0)) < {_MOST_EXP}, TRUE)"
    return Value(f"IF({defined} AND {small}, POW({x}, {y}), NULL)", FLOAT64)


def _if(args: Arguments) -> Value:
    condition = args.boolean(0)
    kind = _shared(args, [1, 2])
    if kind.is_null:
        return NOTHING
    yes, no = (converted(args.values[place], kind) for place in (1, 2))
    return Value(f"IF({condition}, {yes}, {no})", kind)


def _case(args: Arguments) -> Value:
    """Compile `case(c1, x1, c2, x2, …, otherwise)`."""
    pairs = len(args) // 2
    results = [2 * pair + 1 for pair in range(pairs)]
    last = [len(args) - 1] if len(args) % 2 else []
    kind = _shared(args, [*results, *last])
    if kind.is_null:
        return NOTHING
    sql = "CASE"
    for place in results:
        sql += f" WHEN {args.boolean(place - 1)} THEN {converted(args.values[place], kind)}"
    if last:
        sql += f" ELSE {converted(args.values[last[0]], kind)}"
    return Value(f"{sql} END", kind)


def _nvl(args: Arguments) -> Value:
    kind = _shared(args, [0, 1])
    if kind.is_null:
        return NOTHING
    first, second = (converted(value, kind) for value in args.values)
    return Value(f"IFNULL({first}, {second})", kind)


def _isnull(args: Arguments) -> Value:
    return Value(f"({args.values[0].sql} IS NULL)", BOOL)


def _is(test: Callable[[Type], bool]) -> Compile:
    def compile_(args: Arguments) -> Value:
        value = args.values[0]
        return Value(f"({value.sql} IS NOT NULL)" if test(value.type) else "FALSE", BOOL)

    return compile_


def _typeof(args: Arguments) -> Value:
    value = args.values[0]
    if value.type.is_null:
        return Value(typed_null(STRING), STRING)
    return Value(f"IF({value.sql} IS NULL, NULL, {literal(value.type.shown)})", STRING)


def _int(args: Arguments) -> Value:
    """Compile int and long: a double loses its fraction, a text must be a whole number."""
    value = args.values[0]
    if value.type == INT64:
        return value
    if value.type.is_one("FLOAT64", "NUMERIC", "BIGNUMERIC"):
        return Value(f"SAFE_CAST(TRUNC({args.number(0).sql}) AS INT64)", INT64)
    if value.type.is_one("STRING", "BOOL", "NULL"):
        return Value(f"SAFE_CAST({value.sql} AS INT64)", INT64)
    raise args.wrong(0, "a number, a text or a bool")


def _double(args: Arguments) -> Value:
    value = args.values[0]
    if value.type.is_number or value.type.is_one("STRING", "NULL"):
        return Value(f"SAFE_CAST({value.sql} AS FLOAT64)", FLOAT64)
    raise args.wrong(0, "a number or a text")


NUMBERS = {
    "abs": Function(_abs),
    "min": Function(_extreme("LEAST"), 1, MANY),
    "max": Function(_extreme("GREATEST"), 1, MANY),
    "floor": Function(_whole("FLOOR")),
    "ceil": Function(_whole("CEIL")),
    "round": Function(_round, 1, 2),
    "sqrt": Function(_sqrt),
    "pow": Function(_pow, 2, 2),
    "log": Function(_log, 1, 2),
    "exp": Function(_exp),
    "if": Function(_if, 3, 3),
    "case": Function(_case, 2, MANY),
    "nvl": Function(_nvl, 2, 2),
    "isnull": Function(_isnull),
    "isnum": Function(_is(lambda kind: kind.is_number)),
    "isstr": Function(_is(lambda kind: kind.is_one("STRING"))),
    "typeof": Function(_typeof),
    "int": Function(_int),
    "long": Function(_int),
    "double": Function(_double),
}
