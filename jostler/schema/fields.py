"""The columns of a table as frozen values, and their JSON form in BigQuery's REST interface.

**Invariant:** `fields_from_api(fields_to_api(x)) == x`.  Types have their legacy spelling, as the
service returns them, and a mode is always set, so equal columns are equal values.

Pure.  Does not check its input: `datatype` checks schemas that an operator wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Mode(StrEnum):
    """How many values a column holds in one row."""

    NULLABLE = "NULLABLE"
    REQUIRED = "REQUIRED"
    REPEATED = "REPEATED"


ALIASES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}

SCALAR_TYPES = frozenset(
    {"STRING", "BYTES", "INTEGER", "FLOAT", "BOOLEAN", "NUMERIC", "BIGNUMERIC", "JSON"}
    | {"TIMESTAMP", "DATE", "TIME", "DATETIME", "GEOGRAPHY", "RANGE"}
)
TYPES = SCALAR_TYPES | {"RECORD"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column, or one field of a RECORD.

    Attributes:
        name: BigQuery ignores letter case when it compares names, and keeps the spelling.
        type: the legacy spelling: INTEGER, FLOAT, BOOLEAN and RECORD, not INT64 and so on.
        mode: NULLABLE by default.
        description: empty by default.
        fields: the fields of a RECORD; empty for every other type.
        max_length: characters of a STRING or bytes of BYTES.
        precision: decimal digits of a NUMERIC or BIGNUMERIC.
        scale: how many of these digits follow the decimal point.
        rounding_mode: how BigQuery rounds to `scale` digits.
        collation: `und:ci` or empty.
        default_value_expression: SQL; used for an absent value, never for null.
        range_element: the element type of a RANGE.
        others: other keys (policyTags and the like) as JSON text, kept unchanged.
    """

    name: str
    type: str
    mode: Mode = Mode.NULLABLE
    description: str = ""
    fields: tuple[Field, ...] = ()
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    rounding_mode: str = ""
    collation: str = ""
    default_value_expression: str = ""
    range_element: str = ""
    others: str = ""

    @property
    def key(self) -> str:
        """The name in the form in which BigQuery compares names."""
        return self.name.lower()


Fields = tuple[Field, ...]

_NUMBERS = {"maxLength": "max_length", "precision": "precision", "scale": "scale"}
_TEXTS = {
    "roundingMode": "rounding_mode",
    "collation": "collation",
    "defaultValueExpression": "default_value_expression",
}
KNOWN_KEYS = frozenset(
    {"name", "type", "mode", "description", "fields", "rangeElementType", *_NUMBERS, *_TEXTS}
)


def canonical_type(text: str) -> str:
    """Spell a type as the service returns it: upper case, legacy names."""
    upper = text.upper()
    return ALIASES.get(upper, upper)


def spelled(field: Field) -> str:
    """Write a type with its parameters: `NUMERIC(10, 2)`, `STRING(20)`, `RANGE<DATE>`."""
    text = field.type
    if field.max_length is not None:
        text += f"({field.max_length})"
    if field.precision is not None:
        text += f"({field.precision}" + (f", {field.scale})" if field.scale else ")")
    if field.range_element:
        text += f"<{field.range_element}>"
    if field.collation:
        text += f" COLLATE {field.collation}"
    if field.rounding_mode not in {"", "ROUNDING_MODE_UNSPECIFIED", "ROUND_HALF_AWAY_FROM_ZERO"}:
        text += f" {field.rounding_mode}"
    return text


def fields_from_api(resources: Iterable[Mapping[str, Any]]) -> Fields:
    """Read a list of TableFieldSchema that is known to be valid, such as one from the service."""
    return tuple(_field_from_api(resource) for resource in resources)


def _field_from_api(resource: Mapping[str, Any]) -> Field:
    others = {key: resource[key] for key in sorted(resource.keys() - KNOWN_KEYS)}
    numbers = {ours: int(resource[key]) for key, ours in _NUMBERS.items() if key in resource}
    texts = {ours: str(resource[key]) for key, ours in _TEXTS.items() if key in resource}
    return Field(
        name=resource["name"],
        type=canonical_type(resource["type"]),
        mode=Mode((resource.get("mode") or "NULLABLE").upper()),
        description=resource.get("description") or "",
        fields=fields_from_api(resource.get("fields") or ()),
        max_length=numbers.get("max_length"),
        precision=numbers.get("precision"),
        scale=numbers.get("scale"),
        rounding_mode=texts.get("rounding_mode", ""),
        collation=texts.get("collation", ""),
        default_value_expression=texts.get("default_value_expression", ""),
        range_element=canonical_type(resource.get("rangeElementType", {}).get("type", "")),
        others=json.dumps(others, sort_keys=True) if others else "",
    )


def fields_to_api(fields: Fields) -> list[dict[str, Any]]:
    """Write columns as a list of TableFieldSchema; int64 values are strings, as in REST."""
    return [_field_to_api(field) for field in fields]


def _field_to_api(field: Field) -> dict[str, Any]:
    resource: dict[str, Any] = {"name": field.name, "type": field.type, "mode": str(field.mode)}
    if field.description:
        resource["description"] = field.description
    for key, ours in _NUMBERS.items():
        if (number := getattr(field, ours)) is not None:
            resource[key] = str(number)
    resource |= {key: text for key, ours in _TEXTS.items() if (text := getattr(field, ours))}
    if field.range_element:
        resource["rangeElementType"] = {"type": field.range_element}
    if field.others:
        resource |= json.loads(field.others)
    if field.fields:
        resource["fields"] = fields_to_api(field.fields)
    return resource


def to_json(fields: Fields) -> bytes:
    """Write a table schema as it is stored in the bucket; equal columns give equal bytes."""
    return json.dumps(fields_to_api(fields), indent=2, ensure_ascii=False).encode() + b"\n"
