"""Convert query parameters to DuckDB expressions.

**Invariant:** a parameter's expression has the declared type, whatever its value is.

A type that is not supported is an error.  Source: "QueryParameter" of the REST reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.model.columns import STORED, literal, quoted
from embedded.model.errors import invalid, unsupported
from embedded.model.fields import SPELLINGS

PLACE = "_place_"

if TYPE_CHECKING:
    from embedded.model.wire import Json


def parameters_of(query: Json) -> dict[str, str]:
    """Return DuckDB expressions by parameter name; a positional one's name is its place, from 1."""
    items = query.get("queryParameters") or []
    return {
        str(item.get("name") or f"{PLACE}{place}"): _value(
            item.get("parameterType") or {}, item.get("parameterValue") or {}
        )
        for place, item in enumerate(items, 1)
    }


def in_text(given: Json) -> Json:
    """Return a parameter with all values as text, as documented; some clients send numbers."""
    return {key: _in_text(key, item) for key, item in given.items()}


def _in_text(key: str, item: object) -> object:
    if isinstance(item, dict):
        return in_text(item)
    if isinstance(item, list):
        return [_in_text("", part) for part in item]
    if key != "value" or item is None or isinstance(item, str):
        return item
    return str(item).lower() if isinstance(item, bool) else str(item)


def _type(api: Json) -> str:
    kind = str(api.get("type") or "")
    if kind == "ARRAY":
        return f"{_type(api.get('arrayType') or {})}[]"
    if kind in {"STRUCT", "RECORD"}:
        subs = api.get("structTypes") or []
        inner = ", ".join(f"{quoted(sub.get('name') or '')} {_type(sub['type'])}" for sub in subs)
        return f"STRUCT({inner})"
    try:
        return STORED[SPELLINGS.get(kind, kind)]
    except KeyError:
        raise unsupported(f"A query parameter of type {kind}") from None


def _value(api: Json, value: Json) -> str:
    kind = str(api.get("type") or "")
    if kind == "ARRAY":
        one = api.get("arrayType") or {}
        items = ", ".join(_value(one, item) for item in value.get("arrayValues") or [])
        return f"CAST([{items}] AS {_type(api)})"
    if kind in {"STRUCT", "RECORD"}:
        values = value.get("structValues") or {}
        parts = ", ".join(
            f"{quoted(sub['name'])} := {_value(sub['type'], values[sub['name']])}"
            for sub in api.get("structTypes") or []
        )
        return f"CAST(struct_pack({parts}) AS {_type(api)})"
    return _scalar(_type(api), kind, value.get("value"))


def _scalar(stored: str, kind: str, text: object) -> str:
    if text is None:
        return f"CAST(NULL AS {stored})"
    if isinstance(text, bool):
        text = str(text).lower()
    if not isinstance(text, str | int | float):
        raise invalid(f"Invalid value for a parameter of type {kind}")
    if kind == "BYTES":
        return f"from_base64({literal(str(text))})"
    return f"CAST({literal(str(text))} AS {stored})"
