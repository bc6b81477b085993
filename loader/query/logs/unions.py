"""Bring rows of different shapes together: what a column is in both, and how each side gets there.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.schema.fields import Field, Mode
from loader.query.logs.values import Type, Value, common, converted, name, type_of, typed_null

if TYPE_CHECKING:
    from collections.abc import Iterable

_LEGACY = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN"}


def together(left: Type, right: Type) -> Type | None:
    """Return the type of a column that has one type here and another there; None if none fits.

    Records get the fields of both; the ones that a side lacks are null there.
    """
    if _same(left, right):
        return left
    if left.is_null or right.is_null:
        return right if left.is_null else left
    if left.repeated or right.repeated:
        return None
    if left.kind == right.kind == "RECORD":
        return _record(left.fields, right.fields)
    return common([left, right])


def _same(left: Type, right: Type) -> bool:
    """Compare types without descriptions."""
    if (left.kind, left.repeated, len(left.fields)) != (
        right.kind,
        right.repeated,
        len(right.fields),
    ):
        return False
    return all(
        one.key == other.key and _same(type_of(one), type_of(other))
        for one, other in zip(left.fields, right.fields, strict=True)
    )


def _record(left: Iterable[Field], right: Iterable[Field]) -> Type | None:
    others = {field.key: field for field in right}
    fields: list[Field] = []
    for field in left:
        other = others.pop(field.key, None)
        if other is None:
            fields.append(field)
            continue
        kind = together(type_of(field), type_of(other))
        if kind is None:
            return None
        fields.append(_field(field.name, kind))
    return Type("RECORD", fields=(*fields, *others.values()))


def _field(name_: str, kind: Type) -> Field:
    mode = Mode.REPEATED if kind.repeated else Mode.NULLABLE
    return Field(name=name_, type=_LEGACY.get(kind.kind, kind.kind), mode=mode, fields=kind.fields)


def conformed(value: Value | None, wanted: Type) -> str:
    """Return the SQL of a value, None if there is none, as a type that `together` found."""
    if value is None or value.type.is_null:
        return typed_null(wanted)
    if _same(value.type, wanted):
        return value.sql
    if wanted.kind != "RECORD":
        return converted(value, wanted)
    own = {field.key: field for field in value.type.fields}
    parts = []
    for field in wanted.fields:
        found = own.get(field.key)
        inner = Value(f"{value.sql}.{name(found.name)}", type_of(found)) if found else None
        parts.append(f"{conformed(inner, type_of(field))} AS {name(field.name)}")
    return f"IF({value.sql} IS NULL, NULL, STRUCT({', '.join(parts)}))"
