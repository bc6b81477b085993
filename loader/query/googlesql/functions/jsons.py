"""Functions of JSON ("JSON functions"), on JSON and on STRING that holds JSON.

**Invariant:** JSON is its text in Spark, with BigQuery's spelling of what a function returns.
The functions run in Python: Spark's own take scalars, numbers and duplicate keys otherwise.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.conversions import FRACTION
from loader.query.googlesql.places import PythonInLambda, field_of
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    FLOAT64,
    INT64,
    JSON,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array,
)
from loader.query.googlesql.values import Value, filled, text

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function

INSTANT = f"date_format({{0}}, 'yyyy-MM-dd'), 'T', date_format({{0}}, 'HH:mm:ss'), {FRACTION}"
_PATH = re.compile(
    r"""\$(?:\.[A-Za-z_][A-Za-z0-9_-]*|\."(?:[^"\\]|\\.)*"|\[[0-9]+\]|\['(?:[^'\\]|\\.)*'\])*"""
)


def _path(call: Call) -> str:
    if len(call.nodes) == 1:
        return "$"
    path = call.text(1, "a JSON path")
    if not _PATH.fullmatch(path):
        raise call.unsupported(f"the JSON path {path}", 1)
    return path


def _at_path(function: str, kind: Type | None = None) -> Function:
    def rule(call: Call) -> Value:
        call.count(1, 2)
        value = call.value(0)
        if value.type not in {STRING, JSON, NULL}:
            raise refusal(
                Code.TYPE, f"{call.name} needs JSON or STRING, not {value.type}", call.node
            )
        if value.type == JSON and function not in {"json_value", "json_query"}:
            raise call.unsupported(f"{call.name} of JSON")
        called = call.place.python(function, call.node)
        result = kind or value.type
        return Value(f"{called}({value.sql}, {text(_path(call))})", result)

    return rule


# How a value is written in JSON, where it is not NULL.
_WRITTEN = {
    STRING: "regexp_extract(to_json(array({0})), '^(?s)\\\\[(.*)\\\\]$', 1)",
    INT64: (
        "CASE WHEN {0} BETWEEN -9007199254740992L AND 9007199254740992L THEN CAST({0} AS STRING) "
        "ELSE concat('\"', CAST({0} AS STRING), '\"') END"
    ),
    BOOL: "CAST({0} AS STRING)",
    JSON: "{0}",
    DATE: "concat('\"', CAST({0} AS STRING), '\"')",
    BYTES: "concat('\"', regexp_replace(base64({0}), '[\\\\r\\\\n]', ''), '\"')",
    TIMESTAMP: f"concat('\"', {INSTANT}, 'Z\"')",
    DATETIME: f"concat('\"', {INSTANT}, '\"')",
    NULL: "'null'",
}


def _to_json_string(call: Call) -> Value:
    call.count(1, 1)
    return Value(_written(call, call.value(0)), STRING)


def _written(call: Call, value: Value) -> str:
    """Return the JSON of a value; `null` for NULL.

    Raises:
        QueryError: the type is not supported.
    """
    kind = value.type
    if kind == FLOAT64:
        return f"{call.place.python('json_of_float', call.node)}({value.sql})"
    if kind.kind == "STRUCT":
        parts: list[str] = []
        for name, _ in kind.fields:
            inner = field_of(value, name)
            if inner is None:
                raise call.unsupported("TO_JSON_STRING of a STRUCT whose fields have no names")
            mark = "," if parts else ""
            parts += [text(f"{mark}{json.dumps(name, ensure_ascii=False)}:"), _written(call, inner)]
        whole = f"concat('{{', {', '.join(parts)}, '}}')"
        return f"CASE WHEN {value.sql} IS NULL THEN 'null' ELSE {whole} END"
    if kind.element is not None:
        held = f"_j{value.sql.count('_j')}"
        inside = replace(call, place=replace(call.place, lambdas=True))
        try:
            each = _written(inside, Value(held, kind.element))
        except PythonInLambda as exc:
            raise call.unsupported(f"TO_JSON_STRING of {kind}") from exc
        joined = f"array_join(transform({value.sql}, {held} -> {each}), ',')"
        return f"coalesce(concat('[', {joined}, ']'), 'null')"
    template = _WRITTEN.get(kind)
    if template is None:
        raise call.unsupported(f"TO_JSON_STRING of {kind}")
    return f"coalesce({filled(template, [value.sql])}, 'null')"


JSONS: dict[str, Function] = {
    **dict.fromkeys(("JSON_VALUE", "JSON_EXTRACT_SCALAR"), _at_path("json_value", STRING)),
    **dict.fromkeys(("JSON_QUERY", "JSON_EXTRACT"), _at_path("json_query")),
    **dict.fromkeys(
        ("JSON_VALUE_ARRAY", "JSON_EXTRACT_STRING_ARRAY"),
        _at_path("json_value_array", array(STRING)),
    ),
    **dict.fromkeys(
        ("JSON_QUERY_ARRAY", "JSON_EXTRACT_ARRAY"), _at_path("json_query_array", array(STRING))
    ),
    "TO_JSON_STRING": _to_json_string,
}
