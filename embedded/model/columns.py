"""Translate column types from BigQuery to DuckDB, and types of query results back.

**Invariant:** each supported BigQuery type has a DuckDB type of its own, so the BigQuery type of a
result's column follows from its DuckDB type.

A DuckDB type without a BigQuery type is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedded.model.errors import unsupported
from embedded.model.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

STORED = {
    "STRING": "VARCHAR",
    "BYTES": "BLOB",
    "INTEGER": "BIGINT",
    "FLOAT": "DOUBLE",
    "NUMERIC": "DECIMAL(38,9)",
    "BIGNUMERIC": "DECIMAL(38,18)",
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMP": "TIMESTAMPTZ",
    "DATE": "DATE",
    "TIME": "TIME",
    "DATETIME": "TIMESTAMP",
    "JSON": "JSON",
}
# DuckDB's JSON reader would change these, or cannot read them: they are staged as text, then cast.
STAGED = {**STORED, "BYTES": "VARCHAR", "JSON": "VARCHAR"}
FROM_DUCKDB = {
    "varchar": "STRING",
    "blob": "BYTES",
    "boolean": "BOOLEAN",
    "double": "FLOAT",
    "float": "FLOAT",
    "timestamp with time zone": "TIMESTAMP",
    "timestamp": "DATETIME",
    "date": "DATE",
    "time": "TIME",
    "null": "INTEGER",  # BigQuery gives an untyped NULL the type INT64
    **dict.fromkeys(
        ("tinyint", "smallint", "integer", "bigint", "hugeint"), "INTEGER"
    ),  # values beyond INT64 are refused when the result is kept (`results`)
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"), "INTEGER"),
}
NUMERIC_SCALE = 9


def quoted(name: str) -> str:
    """Return a name as a quoted identifier of DuckDB."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def literal(text: str) -> str:
    """Return a text as a string literal of DuckDB."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def stored_type(field: Field) -> str:
    """Return the DuckDB type in which a table stores a field."""
    return _type(field, STORED)


def staged_type(field: Field) -> str:
    """Return the DuckDB type with which a field is read from a staging file."""
    return _type(field, STAGED)


def definition(fields: Iterable[Field]) -> str:
    """Return the column list for DuckDB's CREATE TABLE; the default of an array is empty."""
    return ", ".join(
        f"{quoted(field.name)} {stored_type(field)}{' DEFAULT []' if field.repeated else ''}"
        for field in fields
    )


def _type(field: Field, names: dict[str, str]) -> str:
    if field.type == "RECORD":
        inner = ", ".join(f"{quoted(sub.name)} {_type(sub, names)}" for sub in field.fields)
        one = f"STRUCT({inner})"
    else:
        one = names[field.type]
    return f"{one}[]" if field.repeated else one


def result_field(name: str, kind: Any) -> Field:  # noqa: ANN401 - DuckDBPyType has no public stub
    """Return the BigQuery column for a column of a DuckDB result.

    Args:
        name: the column's name.
        kind: its type (DuckDBPyType).

    Raises:
        ApiError: BigQuery has no type for it.
    """
    if kind.id == "list":
        inner = result_field(name, kind.children[0][1])
        if inner.repeated:
            raise unsupported(f"An array of arrays ({name}), in BigQuery as here,")
        return Field(name=name, type=inner.type, mode="REPEATED", fields=inner.fields)
    if kind.id == "struct":
        fields = tuple(result_field(sub, child) for sub, child in kind.children)
        return Field(name=name, type="RECORD", fields=fields)
    return Field(name=name, type=_scalar(name, kind))


def _scalar(name: str, kind: Any) -> str:  # noqa: ANN401 - as above
    if str(kind) == "JSON":
        return "JSON"
    if kind.id == "decimal":
        scale = dict(kind.children)["scale"]
        return "NUMERIC" if scale <= NUMERIC_SCALE else "BIGNUMERIC"
    try:
        return FROM_DUCKDB[kind.id.strip('"').lower()]
    except KeyError:
        raise unsupported(f"Type {kind} of result column {name}") from None


def readable(select: Callable[[str], str], field: Field) -> str:
    """Return a DuckDB expression for a field without time zones, which need the package `pytz`."""
    zoneless = {**STORED, "TIMESTAMP": "TIMESTAMP"}
    column = select(quoted(field.name))
    return f"CAST({column} AS {_type(field, zoneless)})" if _has_instant(field) else column


def _has_instant(field: Field) -> bool:
    return field.type == "TIMESTAMP" or any(_has_instant(sub) for sub in field.fields)
