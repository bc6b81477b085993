"""Write values, which DuckDB passes to Python as JSON with a type, for TO_JSON_STRING and FORMAT.

**Invariant:** a value is written as "TO_JSON_STRING" or "FORMAT" says for its GoogleSQL type.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

EXACT = 2**53  # larger integers are strings in JSON
KINDS = {
    "VARCHAR": "STRING", "BLOB": "BYTES", "BOOLEAN": "BOOL", "DOUBLE": "FLOAT64",
    "FLOAT": "FLOAT64", "TIMESTAMP WITH TIME ZONE": "TIMESTAMP", "TIMESTAMP": "DATETIME",
    "DATE": "DATE", "TIME": "TIME", "JSON": "JSON", '"NULL"': "NULL", "INTEGER": "INT64",
    "BIGINT": "INT64", "HUGEINT": "INT64", "TINYINT": "INT64", "SMALLINT": "INT64",
    "UINTEGER": "INT64", "UBIGINT": "INT64", "UTINYINT": "INT64", "USMALLINT": "INT64",
}  # fmt: skip
_NAME = re.compile(r'"((?:[^"]|"")*)"|([^ "(),]+)')
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Type:
    """A GoogleSQL type; `parts` are a STRUCT's fields, or the element type of an ARRAY."""

    kind: str
    parts: tuple[tuple[str, Type], ...] = ()


class Number(str):
    """A number in JSON, with its spelling."""

    __slots__ = ()


def parsed_type(text: str) -> Type:
    """Parse DuckDB's name of a type.

    Raises:
        ValueError: BigQuery has no such type.
    """
    if text.endswith("[]"):
        return Type("ARRAY", (("", parsed_type(text[:-2])),))
    if text.startswith("STRUCT(") and text.endswith(")"):
        return Type("STRUCT", tuple(_fields(text[7:-1])))
    if text.startswith("DECIMAL("):
        return Type("NUMERIC" if int(text[8:-1].split(",")[1]) <= 9 else "BIGNUMERIC")  # noqa: PLR2004
    if text not in KINDS:
        raise ValueError(f"A value of type {text} is not supported by the embedded BigQuery")
    return Type(KINDS[text])


def _fields(text: str) -> list[tuple[str, Type]]:
    fields = []
    while text:
        found = _NAME.match(text)
        assert found is not None
        name = found[2] if found[1] is None else found[1].replace('""', '"')
        depth, quoted, at = 0, False, found.end()
        while at < len(text) and not (text[at] == "," and depth == 0 and not quoted):
            quoted ^= text[at] == '"'
            depth += 0 if quoted else (text[at] == "(") - (text[at] == ")")
            at += 1
        fields.append((name, parsed_type(text[found.end() : at].strip())))
        text = text[at + 1 :].lstrip()
    return fields


def loaded(text: str | None) -> object:
    """Parse JSON; numbers keep their spelling (`Number`)."""
    if text is None:
        return None
    return json.loads(text, parse_int=Number, parse_float=Number)


def bytes_of(text: str) -> bytes:
    r"""Parse a BLOB in DuckDB's form in JSON: `\\xFF` for bytes that are not printable."""
    return _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]), text.encode())


def float_text(text: str) -> str:
    """Return a FLOAT64 as BigQuery writes it: 15 digits, or 17 if 15 are not exact."""
    value = float(text)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    short = f"{value:.15g}"
    return short if float(short) == value else f"{value:.17g}"


def plain_decimal(text: str) -> str:
    """Write a NUMERIC without trailing zeros."""
    text = f"{Decimal(text):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def iso(kind: str, text: str) -> str:
    """Write an instant, a date with time or a time as JSON does: with 0, 3 or 6 digits of a second.

    So does the reference implementation (`JsonFromTimestamp` in google/zetasql, json_format.cc).
    """
    text, dot, fraction = text.removesuffix("+00").partition(".")
    fraction = fraction.rstrip("0")
    if fraction:
        fraction = dot + fraction.ljust(3 if len(fraction) <= 3 else 6, "0")  # noqa: PLR2004
    text = text.replace(" ", "T") + fraction
    return f"{text}Z" if kind == "TIMESTAMP" else text


def as_json(kind: Type, value: object) -> object:
    """Convert a value for `dumped`, so that the JSON is as TO_JSON_STRING writes it."""
    if value is None:
        return None
    if kind.kind == "ARRAY":
        return [as_json(kind.parts[0][1], item) for item in cast("list[object]", value)]
    if kind.kind == "STRUCT":
        given = cast("dict[str, object]", value)
        return {name: as_json(inner, given.get(name)) for name, inner in kind.parts}
    if kind.kind == "JSON" or isinstance(value, bool):
        return value
    return _scalar(kind.kind, str(value))


def _scalar(kind: str, text: str) -> object:
    if kind == "INT64":
        return Number(text) if abs(int(text)) <= EXACT else text
    if kind == "FLOAT64":
        value = float(text)
        if math.isfinite(value):
            return Number(float_text(text))
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if kind in {"NUMERIC", "BIGNUMERIC"}:
        return _decimal(text)
    if kind == "BYTES":
        return base64.b64encode(bytes_of(text)).decode()
    return iso(kind, text) if kind in {"TIMESTAMP", "DATETIME", "TIME"} else text


def _decimal(text: str) -> object:
    """Convert a NUMERIC: to a number if FLOAT64 represents it exactly, else to a string."""
    plain = plain_decimal(text)
    return Number(plain) if Decimal(float(plain)) == Decimal(plain) or _short(plain) else plain


def _short(text: str) -> bool:
    return len(text.replace("-", "").replace(".", "")) <= 15  # noqa: PLR2004 - digits of a FLOAT64


def dumped(value: object, *, pretty: bool = False, level: int = 0) -> str:
    """Return a value as JSON; numbers keep their spelling."""
    if isinstance(value, Number):
        return str(value)
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        colon = ": " if pretty else ":"
        items = [
            json.dumps(key, ensure_ascii=False) + colon + dumped(v, pretty=pretty, level=level + 1)
            for key, v in value.items()
        ]
        opening, closing = "{", "}"
    else:
        items = [dumped(item, pretty=pretty, level=level + 1) for item in value]
        opening, closing = "[", "]"
    if not items or not pretty:
        return opening + ",".join(items) + closing
    indent = "\n" + "  " * (level + 1)
    return opening + indent + f",{indent}".join(items) + "\n" + "  " * level + closing


def to_json_string(kind: str, text: str | None, pretty: bool) -> str:
    """Return TO_JSON_STRING of a value that DuckDB passes as JSON with its type."""
    return dumped(as_json(parsed_type(kind), loaded(text)), pretty=bool(pretty))


def number_text(text: str | None, keys: str) -> str | None:
    """Return a number in a JSON text with its spelling; `keys` is its path, a JSON array."""
    value = loaded(text)
    for key in json.loads(keys):
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return str(value) if isinstance(value, Number) else None
