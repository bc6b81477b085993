"""Functions of texts and lists.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs import values
from loader.query.logs.function_table import MANY, Function
from loader.query.logs.patterns import strftime
from loader.query.logs.syntax import Literal
from loader.query.logs.values import INT64, STRING, Type, Value, literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.arguments import Arguments

    Compile = Callable[[Arguments], Value]

_HASHES = {"md5": "MD5", "sha1": "SHA1", "sha256": "SHA256", "sha512": "SHA512"}
# Bytes that are written together are decoded together, for one character may have several.
_ENCODED = "(?:%[0-9A-Fa-f]{2})+|[^%]+|%"


def _of_text(function: str) -> Compile:
    return lambda args: Value(f"{function}({args.text(0)})", STRING)


def _len(args: Arguments) -> Value:
    if args.values[0].type.repeated:
        return Value(f"ARRAY_LENGTH({args.values[0].sql})", INT64)
    return Value(f"LENGTH({args.text(0)})", INT64)


def _not_negative(args: Arguments, place: int) -> str:
    """Return a number of characters; a negative one counts as 0."""
    arg = args.call.args[place]
    if isinstance(arg, Literal) and isinstance(arg.value, int):
        return str(arg.value)
    return f"GREATEST({args.whole(place)}, 0)"


def _substr(args: Arguments) -> Value:
    text, begin = args.text(0), _not_negative(args, 1)
    args.whole(1)
    first = str(int(begin) + 1) if begin.isdecimal() else f"{begin} + 1"
    if len(args) == 2:  # noqa: PLR2004 - without an end
        return Value(f"SUBSTR({text}, {first})", STRING)
    length = f"GREATEST({args.whole(2)} - {begin}, 0)"
    return Value(f"SUBSTR({text}, {first}, {length})", STRING)


def _side(function: str) -> Compile:
    def compile_(args: Arguments) -> Value:
        args.whole(1)
        return Value(f"{function}({args.text(0)}, {_not_negative(args, 1)})", STRING)

    return compile_


def _concat(args: Arguments) -> Value:
    return Value(f"CONCAT({', '.join(values.text(value) for value in args.values)})", STRING)


def _replace(args: Arguments) -> Value:
    sides = ", ".join(args.text(place) for place in range(3))
    return Value(f"REPLACE({sides})", STRING)


def _split(args: Arguments) -> Value:
    if not args.written_text(1):
        raise args.refused(1, "expected at least one character that separates")
    return Value(f"SPLIT({args.text(0)}, {args.text(1)})", Type("STRING", repeated=True))


def _indexof(args: Arguments) -> Value:
    return Value(f"(STRPOS({args.text(0)}, {args.text(1)}) - 1)", INT64)


def _strjoin(args: Arguments) -> Value:
    items = args.items(1)
    if items.type.kind == "RECORD":
        raise args.wrong(1, "a list of texts or numbers")
    sql = items.sql
    if items.type.kind != "STRING":
        item = values.text(Value("e", Type(items.type.kind)))
        sql = f"ARRAY(SELECT {item} FROM UNNEST({sql}) AS e WITH OFFSET AS o ORDER BY o)"  # noqa: S608
    return Value(f"ARRAY_TO_STRING({sql}, {args.text(0)})", STRING)


def _string(args: Arguments) -> Value:
    if len(args) == 1:
        return Value(values.text(args.values[0]), STRING)
    form = args.parsed(1, strftime)
    return Value(f"FORMAT_TIMESTAMP({literal(form)}, {args.instant(0)})", STRING)


def _urldecode(args: Arguments) -> Value:
    text = args.text(0)
    pieces = f"REGEXP_EXTRACT_ALL(REPLACE({text}, '+', ' '), {literal(_ENCODED)})"
    # FROM_HEX gets nothing else than digits, even of an engine that evaluates both sides of IF
    is_hex = "REGEXP_CONTAINS(e, '^%[0-9A-Fa-f]')"
    data = f"FROM_HEX(IF({is_hex}, REPLACE(e, '%', ''), ''))"
    item = f"IF({is_hex}, SAFE_CONVERT_BYTES_TO_STRING({data}), e)"
    items = f"ARRAY(SELECT {item} FROM UNNEST({pieces}) AS e WITH OFFSET AS o ORDER BY o)"  # noqa: S608
    return Value(f"IF({text} IS NULL, NULL, ARRAY_TO_STRING({items}, ''))", STRING)


def _base64(args: Arguments) -> Value:
    return Value(f"TO_BASE64(CAST({args.text(0)} AS BYTES))", STRING)


def _hash(args: Arguments) -> Value:
    name = args.written_text(1).lower() if len(args) > 1 else "sha256"
    if name not in _HASHES:
        raise args.refused(1, f"expected one of {', '.join(_HASHES)}")
    return Value(f"TO_HEX({_HASHES[name]}({args.text(0)}))", STRING)


TEXTS = {
    "len": Function(_len),
    "lower": Function(_of_text("LOWER")),
    "upper": Function(_of_text("UPPER")),
    "trim": Function(_of_text("TRIM")),
    "substr": Function(_substr, 2, 3),
    "left": Function(_side("LEFT"), 2, 2),
    "right": Function(_side("RIGHT"), 2, 2),
    "concat": Function(_concat, 1, MANY),
    "replace": Function(_replace, 3, 3),
    "split": Function(_split, 2, 2),
    "indexof": Function(_indexof, 2, 2),
    "strjoin": Function(_strjoin, 2, 2),
    "string": Function(_string, 1, 2),
    "urldecode": Function(_urldecode),
    "base64": Function(_base64),
    "hash": Function(_hash, 1, 2),
}
