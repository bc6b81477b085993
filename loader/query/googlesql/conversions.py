"""Types that become other types: by themselves, and by CAST ("Conversion rules").

**Invariant:** what BigQuery refuses to convert raises an error in Spark, or is NULL in SAFE_CAST;
Spark itself reads more texts as numbers, dates and truths than BigQuery does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql import instants
from loader.query.googlesql.places import null_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    FLOAT64,
    INT64,
    JSON,
    NULL,
    NUMERIC,
    STRING,
    TIMESTAMP,
    Type,
    array,
)
from loader.query.googlesql.values import Constant, Value, filled, literal, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import exp

    from loader.query.googlesql.places import Place

NUMBERS = (INT64, NUMERIC, FLOAT64)
_READ = {
    DATE: instants.parsed_date,
    TIMESTAMP: instants.parsed_timestamp,
    DATETIME: instants.parsed_datetime,
}


def coerced(value: Value, kind: Type) -> Value | None:  # noqa: PLR0911 - one for each rule
    """Return a value as one of another type, if BigQuery converts it by itself."""
    if same(value.type, kind):
        return value.retyped(kind)
    if value.type == NULL:
        return null_of(kind)
    if value.type == INT64 and kind == FLOAT64:
        if value.constant is not None and isinstance(value.constant.value, int):
            return literal(float(value.constant.value))
        return Value(f"CAST({value.sql} AS DOUBLE)", kind)
    if (value.type, kind) in {(INT64, NUMERIC), (NUMERIC, FLOAT64), (DATE, DATETIME)}:
        return Value(f"CAST({value.sql} AS {kind.spark})", kind)
    if value.type == STRING and value.constant is not None and kind in _READ:
        found = _READ[kind](str(value.constant.value))
        return None if found is None else literal(found)
    if value.type.element == NULL and kind.element is not None:
        return Value(f"CAST({value.sql} AS {kind.spark})", kind)
    return None


def same(one: Type, other: Type) -> bool:
    """Say whether two types are one; names of a STRUCT's fields do not count."""
    if one.element is not None and other.element is not None:
        return same(one.element, other.element)
    if one.kind == other.kind == "STRUCT":
        return len(one.fields) == len(other.fields) and all(
            same(a, b) for (_, a), (_, b) in zip(one.fields, other.fields, strict=True)
        )
    return one == other


def supertype(values: Sequence[Value]) -> Type | None:
    """Return the type that all values have, or are converted to; None if there is none."""
    kinds = [value.type for value in values if value.type != NULL]
    if not kinds:
        return NULL
    firm = [value.type for value in values if value.type != NULL and value.constant is None]
    candidates: Iterable[Type] = [*firm, *kinds]
    if set(kinds) <= set(NUMBERS):
        candidates = [max(kinds, key=NUMBERS.index)]
    for candidate in candidates:
        if all(coerced(value, candidate) is not None for value in values):
            return candidate
    return None


def unified(values: Sequence[Value], node: exp.Expr, what: str) -> list[Value]:
    """Convert values to their common type.

    Raises:
        QueryError: they have none.
    """
    kind = supertype(values)
    found = [coerced(value, kind) for value in values] if kind is not None else [None]
    if any(value is None for value in found):
        kinds = ", ".join(dict.fromkeys(str(value.type) for value in values))
        raise refusal(Code.TYPE, f"{what}: {kinds} have no common type", node)
    return [value for value in found if value is not None]


def wanted(value: Value, kind: Type, node: exp.Expr, what: str) -> Value:
    """Convert a value to the type that is needed.

    Raises:
        QueryError: BigQuery does not convert it by itself.
    """
    found = coerced(value, kind)
    if found is None:
        raise refusal(Code.TYPE, f"{what} must be {kind}, not {value.type}", node)
    return found


FRACTION = (
    "CASE WHEN unix_micros(CAST({0} AS TIMESTAMP)) % 1000000L = 0L THEN '' "
    "WHEN unix_micros(CAST({0} AS TIMESTAMP)) % 1000L = 0L THEN date_format({0}, '.SSS') "
    "ELSE date_format({0}, '.SSSSSS') END"
)
_INT64 = r"^\\s*[+-]?0[xX][0-9a-fA-F]+\\s*$"
_FLOAT64 = (
    r"^\\s*[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?"
    r"|[nN][aA][nN])\\s*$"
)
# No `{4}` in these: it would be the place of an operand.
_DAY = "[0-9][0-9][0-9][0-9]-[0-9][0-9]?-[0-9][0-9]?"
_CLOCK = "[ Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]{1,6})?"
_ZONE = "( ?[zZ]| ?[+-][0-9]{1,2}(:[0-9][0-9])?| UTC| [A-Za-z_]+(/[A-Za-z_]+)+)?"
# A text in Spark is of the type only if it has this form; the first group is what differs.
_FORMS = {
    FLOAT64: _FLOAT64,
    DATE: rf"^\\s*{_DAY}\\s*$",
    DATETIME: rf"^\\s*{_DAY}({_CLOCK})?\\s*$",
    TIMESTAMP: rf"^\\s*{_DAY}({_CLOCK}{_ZONE})?\\s*$",
    NUMERIC: r"^\\s*[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?\\s*$",
}
_HEX = (
    "concat(CASE WHEN trim({0}) LIKE '-%' THEN '-' ELSE '' END, "
    "conv(regexp_replace({0}, '[^0-9a-fA-F]*0[xX]|\\\\s', ''), 16, 10))"
)
# {T} is CAST or try_cast, {E} an error or NULL.
CASTS: dict[tuple[Type, Type], str] = {
    (INT64, FLOAT64): "CAST({0} AS DOUBLE)",
    (INT64, STRING): "CAST({0} AS STRING)",
    (INT64, BOOL): "({0} <> 0L)",
    (INT64, NUMERIC): "CAST({0} AS DECIMAL(38, 9))",
    (FLOAT64, INT64): (
        "CASE WHEN {0} >= 9223372036854775808D OR {0} < -9223372036854775808D OR isnan({0}) "
        "THEN {E} ELSE CAST(round({0}) AS BIGINT) END"
    ),
    (FLOAT64, STRING): "{python:float_text}({0})",
    (FLOAT64, NUMERIC): "{T}({0} AS DECIMAL(38, 9))",
    (BOOL, INT64): "CAST({0} AS BIGINT)",
    (BOOL, STRING): "CAST({0} AS STRING)",
    (NUMERIC, INT64): "{T}(round({0}) AS BIGINT)",
    (NUMERIC, FLOAT64): "CAST({0} AS DOUBLE)",
    (NUMERIC, STRING): "regexp_replace(CAST({0} AS STRING), '[.]?0+$', '')",
    (STRING, INT64): (
        f"CASE WHEN {{0}} RLIKE '{_INT64}' THEN {{T}}({_HEX} AS BIGINT) "
        "ELSE {T}({0} AS BIGINT) END"
    ),
    (STRING, BOOL): (
        "CASE lower({0}) WHEN 'true' THEN true WHEN 'false' THEN false "
        "ELSE CASE WHEN {0} IS NOT NULL THEN {E} END END"
    ),
    (STRING, BYTES): "CAST({0} AS BINARY)",
    (BYTES, STRING): "{V}(CAST({0} AS STRING))",
    **{
        (STRING, kind): (
            f"CASE WHEN {{0}} RLIKE '{form}' THEN {{T}}({{0}} AS {kind.spark}) "
            "WHEN {0} IS NOT NULL THEN {E} END"
        )
        for kind, form in _FORMS.items()
    },
    (DATE, STRING): "CAST({0} AS STRING)",
    (DATE, DATETIME): "CAST({0} AS TIMESTAMP_NTZ)",
    (DATE, TIMESTAMP): "CAST({0} AS TIMESTAMP)",
    (TIMESTAMP, STRING): (f"concat(date_format({{0}}, 'yyyy-MM-dd HH:mm:ss'), {FRACTION}, '+00')"),
    (TIMESTAMP, DATE): "CAST({0} AS DATE)",
    (TIMESTAMP, DATETIME): "CAST({0} AS TIMESTAMP_NTZ)",
    (DATETIME, STRING): ("concat(date_format({0}, 'yyyy-MM-dd HH:mm:ss'), " + FRACTION + ")"),
    (DATETIME, DATE): "CAST({0} AS DATE)",
    (DATETIME, TIMESTAMP): "CAST({0} AS TIMESTAMP)",
}


def cast(  # noqa: C901 - what is refused, in turn
    place: Place, value: Value, kind: Type, *, safe: bool, node: exp.Expr
) -> Value:
    """Convert a value as CAST or SAFE_CAST does.

    Raises:
        QueryError: BigQuery does not convert between these types, or this is not supported.
    """
    if same(value.type, kind) or value.type == NULL:
        found = coerced(value, kind)
        assert found is not None
        return found
    if value.type == STRING and value.constant is not None and kind in _READ:
        instant = _READ[kind](str(value.constant.value))
        if instant is not None:
            return literal(instant)
        if safe:
            return null_of(kind)
        raise refusal(Code.ARGUMENT, f"{value.constant.value!r} is no {kind}", node)
    if value.type.element is not None and kind.element is not None:
        empty = coerced(value, kind)
        if empty is not None:
            return empty
    template = CASTS.get((value.type, kind))
    if template is None:
        known = {pair[0] for pair in CASTS} | {JSON}
        if value.type in known and kind in known:
            raise refusal(Code.TYPE, f"a cast from {value.type} to {kind} is invalid", node)
        raise unsupported(f"a cast from {value.type} to {kind}", node)
    failure = (
        "NULL" if safe else f"raise_error(concat({text(f'no {kind}: ')}, CAST({{0}} AS STRING)))"
    )
    template = template.replace("{T}", "try_cast" if safe else "CAST").replace("{E}", failure)
    template = template.replace("{V}", "try_validate_utf8" if safe else "validate_utf8")
    if "{python:float_text}" in template:
        template = template.replace("{python:float_text}", place.python("float_text", node))
    constant = None
    if value.constant is not None and isinstance(value.constant.value, int) and kind == FLOAT64:
        constant = Constant(float(value.constant.value))
    return Value(filled(template, [value.sql]), kind, constant)


def array_of(values: Sequence[Value], node: exp.Expr) -> Value:
    """Return an array of values, which are converted to their common type.

    Raises:
        QueryError: they have none.
    """
    items = unified(values, node, "the elements of an array") if values else []
    kind = items[0].type if items else NULL
    if kind.element is not None:
        raise refusal(Code.TYPE, "an array cannot have arrays as elements", node)
    return Value(f"array({', '.join(item.sql for item in items)})", array(kind))
