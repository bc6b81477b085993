"""Read Parquet files with DuckDB, as rows for the judge.

**Invariant:** each value has the type that BigQuery documents for its Parquet type.

INT96, maps, and lists without `parquetOptions.enableListInference` are errors, because DuckDB does
not show what BigQuery would read.  Source: "Loading Parquet data from Cloud Storage".
"""

from __future__ import annotations

import base64
import math
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self

import duckdb
import orjson

from embedded.model.columns import literal, quoted
from embedded.model.errors import invalid, unsupported
from embedded.model.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BATCH = 1000
KINDS = {
    "boolean": "BOOLEAN",
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), "INTEGER"),
    **dict.fromkeys(("utinyint", "usmallint", "uinteger", "ubigint"), "INTEGER"),
    "float": "FLOAT",
    "double": "FLOAT",
    "varchar": "STRING",
    "blob": "BYTES",
    "date": "DATE",
    "time": "TIME",
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"), "DATETIME"),
    "timestamp with time zone": "TIMESTAMP",
    "timestamp_tz_ns": "TIMESTAMP",
}
# With an explicit schema, a load may convert the first type to the second.
EXCHANGED = (
    {"DATETIME", "TIMESTAMP"}, {"NUMERIC", "BIGNUMERIC"}, {"INTEGER", "NUMERIC", "BIGNUMERIC"},
)  # fmt: skip
NUMERIC_WHOLE, NUMERIC_SCALE = 29, 9


class Parquet:
    """A local Parquet file; use it as a context.

    Args:
        path: the file.
        uri: its URI, for messages.
        lists: parquetOptions.enableListInference.

    Raises:
        ApiError: it is not a Parquet file, or has a type that is not supported.
    """

    def __init__(self, path: Path, uri: str, *, lists: bool) -> None:
        self._lists = lists
        self._duck = duckdb.connect()
        self._duck.execute("SET TimeZone = 'UTC'")
        self._name = literal(str(path))
        try:
            physical = self._duck.execute(
                f"SELECT name FROM parquet_schema({self._name}) WHERE type = 'INT96'"  # noqa: S608
            ).fetchall()
            found = self._duck.execute(f"SELECT * FROM read_parquet({self._name}) LIMIT 0")  # noqa: S608
        except duckdb.Error as exc:
            self._duck.close()
            raise invalid(f"Error while reading data, error message: {exc} File: {uri}") from exc
        if physical:
            raise unsupported(f"Parquet type INT96 (column {physical[0][0]})")
        self._columns: list[tuple[str, Any]] = [
            (str(name), kind) for name, kind, *_ in found.description or ()
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._duck.close()

    def fields(self) -> tuple[Field, ...]:
        """Return the columns that BigQuery detects in the file.

        Raises:
            ApiError: it has a type that is not supported.
        """
        return tuple(self._field(name, kind, name) for name, kind in self._columns)

    def lines(self) -> Iterator[bytes]:
        """Yield each row as a JSON object on one line."""
        wanted = ", ".join(
            f"CAST({quoted(name)} AS {_read_as(kind)})" for name, kind in self._columns
        )
        names = [name for name, _ in self._columns]
        rows = self._duck.execute(f"SELECT {wanted} FROM read_parquet({self._name})")  # noqa: S608
        while batch := rows.fetchmany(BATCH):
            for row in batch:
                yield orjson.dumps({n: _plain(v) for n, v in zip(names, row, strict=True)})

    def _field(self, name: str, kind: Any, path: str) -> Field:  # noqa: ANN401 - DuckDB types its members loosely
        if kind.id == "list":
            if not self._lists:
                raise unsupported(f"Parquet list {path} without parquetOptions.enableListInference")
            element = self._field(name, kind.children[0][1], path)
            if element.repeated:
                raise unsupported(f"Parquet list of lists {path}")
            return Field(name=name, type=element.type, mode="REPEATED", fields=element.fields)
        if kind.id == "struct":
            inside = tuple(self._field(key, sub, f"{path}.{key}") for key, sub in kind.children)
            return Field(name=name, type="RECORD", fields=inside)
        if kind.id == "decimal":
            (_, precision), (_, scale) = kind.children
            fits = scale <= NUMERIC_SCALE and precision - scale <= NUMERIC_WHOLE
            return Field(name=name, type="NUMERIC" if fits else "BIGNUMERIC")
        if kind.id not in KINDS:
            raise unsupported(f"Parquet type {kind} (column {path})")
        return Field(name=name, type=KINDS[kind.id])


def check_types(found: Sequence[Field], wanted: Sequence[Field], path: str = "") -> None:
    """Check the types of a file's columns against the table's.

    Raises:
        ApiError: a column has another type.
    """
    known = {column.name.lower(): column for column in wanted}
    for column in found:
        other = known.get(column.name.lower())
        if other is None:
            continue  # the judge decides about columns that the table lacks
        pair = {column.type, other.type}
        if len(pair) > 1 and not any(pair <= both for both in EXCHANGED):
            raise invalid(
                f"Provided Schema does not match. Field {path}{column.name} has changed type "
                f"from {other.type} to {column.type}"
            )
        if column.repeated != other.repeated:
            raise invalid(
                f"Provided Schema does not match. Field {path}{column.name} has changed mode "
                f"from {other.mode} to {column.mode}"
            )
        check_types(column.fields, other.fields, f"{path}{column.name}.")


def _read_as(kind: Any) -> str:  # noqa: ANN401 - as above
    """Return the DuckDB type to read a column as: in UTC without time zone, in microseconds."""
    if kind.id == "list":
        return f"{_read_as(kind.children[0][1])}[]"
    if kind.id == "struct":
        return f"STRUCT({', '.join(f'{quoted(n)} {_read_as(k)}' for n, k in kind.children)})"
    return "TIMESTAMP" if str(kind.id).startswith("timestamp") else str(kind)


def _plain(value: object) -> object:
    """Convert a value to one that, written as JSON, the judge reads as the same value."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, date | time | Decimal) else value
