"""Operators: arithmetic, comparisons, `and or not`, and the functions `in`, `contain`, `match`.

**Invariant:** a comparison with null is null, and neither it nor its `not` holds.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs.function_table import MANY, Function
from loader.query.logs.patterns import check_regex, is_wild, like, plain
from loader.query.logs.spans import written_time
from loader.query.logs.syntax import Literal
from loader.query.logs.values import (
    BOOL,
    FLOAT64,
    INT64,
    Value,
    common,
    literal,
    timestamp,
    typed_null,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.arguments import Arguments

    Compile = Callable[[Arguments], Value]

_EQUAL = {"==": "=", "!=": "!="}
_COMPARED = ("STRING", "BOOL", "BYTES", "TIME")


def _calculated(sign: str) -> Compile:
    def compile_(args: Arguments) -> Value:
        left, right = args.number(0), args.number(1)
        kind = INT64 if left.type == right.type == INT64 else FLOAT64
        return Value(f"({left.sql} {sign} {right.sql})", kind)

    return compile_


def _divided(args: Arguments) -> Value:
    return Value(f"SAFE_DIVIDE({args.number(0).sql}, {args.number(1).sql})", FLOAT64)


def remainder(args: Arguments) -> Value:
    """Return what is left of a division; it has the sign of the first number."""
    left, right = args.number(0), args.number(1)
    if left.type == right.type == INT64:
        return Value(f"MOD({left.sql}, NULLIF({right.sql}, 0))", INT64)
    whole = f"TRUNC(SAFE_DIVIDE({left.sql}, {right.sql}))"
    return Value(f"({left.sql} - {right.sql} * {whole})", FLOAT64)


def _negative(args: Arguments) -> Value:
    value = args.number(0)
    return Value(f"(-{value.sql})" if value.sql[0] != "-" else f"(-({value.sql}))", value.type)


def _joined(word: str) -> Compile:
    def compile_(args: Arguments) -> Value:
        sides = [args.boolean(place) for place in range(len(args))]
        return Value(f"({f' {word} '.join(sides)})", BOOL)

    return compile_


def _not(args: Arguments) -> Value:
    return Value(f"(NOT {args.boolean(0)})", BOOL)


def _compared(sign: str) -> Compile:
    return lambda args: Value(comparison(args, sign, 0, 1), BOOL)


def comparison(args: Arguments, sign: str, first: int, second: int) -> str:
    """Return the SQL of a comparison of two arguments.

    Raises:
        QueryError: their types cannot be compared.
    """
    left, right = args.values[first], args.values[second]
    if left.type.is_null or right.type.is_null:
        return typed_null(BOOL)
    if left.type.is_time or right.type.is_time:
        return _times(args, sign, first, second)
    kind = common([left.type, right.type])
    one = kind is not None and not kind.repeated
    if kind is None or not one or not (kind.is_number or kind.kind in _COMPARED):
        found = left.type.shown
        hint = ": use contain" if left.type.repeated else ""
        raise args.wrong(second, f"what can be compared with a {found}{hint}")
    if kind == BOOL and sign not in _EQUAL:
        raise args.wrong(second, "a number, a text or a time on both sides")
    if kind.kind == "STRING" and sign in _EQUAL:
        return _text(args, sign, first, second)
    return f"({left.sql} {_EQUAL.get(sign, sign)} {right.sql})"


def _text(args: Arguments, sign: str, first: int, second: int) -> str:
    """Compare texts; a `*` in one that is written out on the right stands for any characters."""
    left, written = args.values[first].sql, args.call.args[second]
    if not isinstance(written, Literal):
        return f"({left} {_EQUAL[sign]} {args.values[second].sql})"
    text = str(written.value)
    if not is_wild(text):
        return f"({left} {_EQUAL[sign]} {literal(plain(text))})"
    negated = "NOT " if sign == "!=" else ""
    return f"({left} {negated}LIKE {literal(like(text))})"


def _times(args: Arguments, sign: str, first: int, second: int) -> str:
    left, right = args.values[first], args.values[second]
    sign = _EQUAL.get(sign, sign)
    if left.type == right.type:
        return f"({left.sql} {sign} {right.sql})"
    day = left.type.kind == "DATE" and _day(args, second)
    if day:  # a day is compared as a day, so that BigQuery need not read other partitions
        return f"({left.sql} {sign} {day})"
    return f"({args.instant(first)} {sign} {args.instant(second)})"


def _day(args: Arguments, place: int) -> str:
    """Return a DATE for a text that is written out and names a day; else nothing."""
    arg = args.call.args[place]
    written = (
        written_time(arg.value) if isinstance(arg, Literal) and isinstance(arg.value, str) else None
    )
    if written is None or (written.hour, written.minute, written.second) != (0, 0, 0):
        return ""
    return f"DATE '{written.date().isoformat()}'"


def _in(args: Arguments) -> Value:
    sides = [comparison(args, "==", 0, place) for place in range(1, len(args))]
    return Value(f"({' OR '.join(sides)})", BOOL)


def _contain(args: Arguments) -> Value:
    value = args.values[0]
    if not value.type.repeated:
        return Value(f"(STRPOS({args.text(0)}, {args.text(1)}) > 0)", BOOL)
    item, wanted = value.type.kind, args.values[1].type
    if wanted.is_null:
        return Value(typed_null(BOOL), BOOL)
    if common([type(wanted)(item), wanted]) is None or item == "RECORD":
        raise args.wrong(1, f"what the list has: a {type(wanted)(item).shown}")
    sql = timestamp(args.values[1]) if item == "TIMESTAMP" else args.values[1].sql
    return Value(f"({sql} IN UNNEST({value.sql}))", BOOL)


def _match(args: Arguments) -> Value:
    args.parsed(1, check_regex)
    return Value(f"REGEXP_CONTAINS({args.text(0)}, {literal(args.written_text(1))})", BOOL)


OPERATORS = {
    **{sign: Function(_calculated(sign), 2, 2) for sign in ("+", "-", "*")},
    "/": Function(_divided, 2, 2),
    "%": Function(remainder, 2, 2),
    "mod": Function(remainder, 2, 2),
    "neg": Function(_negative),
    "not": Function(_not),
    "and": Function(_joined("AND"), 2, 10_000),
    "or": Function(_joined("OR"), 2, 10_000),
    **{sign: Function(_compared(sign), 2, 2) for sign in ("==", "!=", "<", "<=", ">", ">=")},
    "in": Function(_in, 2, MANY),
    "contain": Function(_contain, 2, 2),
    "match": Function(_match, 2, 2),
}
SIGNS = frozenset({"+", "-", "*", "/", "%", "neg", "not", "and", "or"}) | {
    "==", "!=", "<", "<=", ">", ">=",
}  # fmt: skip
"""Those that are no functions that one could call by name."""
