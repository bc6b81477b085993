"""The types of expressions: GoogleSQL's, and Spark's for the same values.

**Invariant:** two values of one type compare, order and show alike on both engines, except where a
rule of this package says so (FLOAT64 has NaN, see `comparisons`).

JSON is the text of the value in Spark.  Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostler.schema.fields import Field, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.schema.fields import Fields


@dataclass(frozen=True, slots=True)
class Type:
    """A type.

    Attributes:
        kind: `INT64`, `STRING` …; `ARRAY`, `STRUCT`; `NULL` for a NULL without a type.
        element: of an ARRAY.
        fields: of a STRUCT, with their names; "" for a field without one.
    """

    kind: str
    element: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        if self.element is not None:
            return f"ARRAY<{self.element}>"
        if self.kind == "STRUCT":
            inner = ", ".join(f"{name} {kind}".strip() for name, kind in self.fields)
            return f"STRUCT<{inner}>"
        return self.kind

    @property
    def spark(self) -> str:
        """The type in Spark's DDL."""
        if self.element is not None:
            return f"ARRAY<{self.element.spark}>"
        if self.kind == "STRUCT":
            inner = ", ".join(
                f"{quoted(name or f'_field_{place}')}: {kind.spark}"
                for place, (name, kind) in enumerate(self.fields, 1)
            )
            return f"STRUCT<{inner}>"
        return SPARK[self.kind]


SPARK = {
    "INT64": "BIGINT",
    "FLOAT64": "DOUBLE",
    "BOOL": "BOOLEAN",
    "STRING": "STRING",
    "BYTES": "BINARY",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "DATETIME": "TIMESTAMP_NTZ",
    "NUMERIC": "DECIMAL(38, 9)",
    "JSON": "STRING",
    "NULL": "VOID",
}
NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
LEGACY = {ours: legacy for legacy, ours in NAMES.items()}

INT64, FLOAT64, BOOL, STRING, BYTES, DATE, TIMESTAMP, DATETIME, NUMERIC, JSON, NULL = (
    Type(kind) for kind in SPARK
)


def array(element: Type) -> Type:
    """Return the type of an array."""
    return Type("ARRAY", element)


def struct(fields: Iterable[tuple[str, Type]]) -> Type:
    """Return the type of a struct."""
    return Type("STRUCT", None, tuple(fields))


def same_kind(one: Type, other: Type) -> bool:
    """Say whether two types are one, and a scalar's."""
    return one == other and one.element is None and one.kind != "STRUCT"


def quoted(name: str) -> str:
    """Return a name as Spark writes it."""
    return "`" + name.replace("`", "``") + "`"


def type_of(field: Field) -> Type:
    """Return the type of a column; a type that Spark does not have keeps its name."""
    if field.mode is Mode.REPEATED:
        return array(type_of(replace(field, mode=Mode.NULLABLE)))
    if field.type == "RECORD":
        return struct((sub.name, type_of(sub)) for sub in field.fields)
    return Type(NAMES.get(field.type, field.type))


def field_of(name: str, kind: Type) -> Field:
    """Return a column of this type."""
    if kind.element is not None:
        return replace(field_of(name, kind.element), mode=Mode.REPEATED)
    if kind.kind == "STRUCT":
        subs = tuple(
            field_of(sub or f"_field_{place}", inner)
            for place, (sub, inner) in enumerate(kind.fields, 1)
        )
        return Field(name=name, type="RECORD", fields=subs)
    return Field(name=name, type="INTEGER" if kind == NULL else LEGACY.get(kind.kind, kind.kind))


def pruned(columns: Fields, paths: Iterable[tuple[str, ...]]) -> Fields:
    """Return the columns, and of each its fields, that lie on one of the paths."""
    wanted: dict[str, list[tuple[str, ...]]] = {}
    for path in paths:
        wanted.setdefault(path[0].lower(), []).append(path[1:])
    return tuple(
        field if () in wanted[field.key] else replace(field, fields=pruned(field.fields, rest))
        for field in columns
        if (rest := wanted.get(field.key)) is not None
    )
