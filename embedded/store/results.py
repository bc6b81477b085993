"""Results of queries, kept for paging until the server stops.

**Invariant:** a kept result has the columns and rows of the query when it ran, in its order, and
only types of BigQuery.

As in BigQuery, these are errors: two columns with one name, a NULL in an array of the result ("Data
types: array"), an integer beyond INT64.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from embedded.model.columns import literal, quoted, result_field, stored_type
from embedded.model.errors import invalid, not_found
from embedded.model.fields import to_api

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from embedded.model.fields import Field
    from embedded.model.names import JobRef
    from embedded.model.wire import Json
    from embedded.store.database import Store

KEPT = 200
DATASET = "_embedded_results"


def is_result(dataset: str, table: str) -> bool:
    """Say whether a reference means a kept result: its table name is that of a job.

    Clients such as ibis write tables of their own into the same hidden dataset (`find_dataset`).
    """
    return dataset == DATASET and ":" in table


class Results:
    """The kept results; when there are too many, the oldest is removed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[str, tuple[Field, ...], int]] = OrderedDict()
        self._number = 0
        self._lock = threading.Lock()

    def keep(
        self, cursor: duckdb.DuckDBPyConnection, ref: JobRef, sql: str
    ) -> tuple[tuple[Field, ...], int]:
        """Run a DuckDB SELECT and keep its result; return the columns and the number of rows.

        Raises:
            ApiError: BigQuery has no such results.
        """
        fields = columns(cursor, sql)
        with self._lock:
            self._number += 1
            name = f"results.main.r{self._number}"
        cursor.execute(f"CREATE TABLE {name} AS {sql}")
        _normalise(cursor, name, fields)
        _check_years(cursor, name, fields)
        found = cursor.execute(f"SELECT count(*) FROM {name}").fetchone()  # noqa: S608 - ours
        total = int(found[0]) if found else 0
        with self._lock:
            self._kept[str(ref)] = (name, fields, total)
            old = self._kept.popitem(last=False)[1][0] if len(self._kept) > KEPT else ""
        if old:
            cursor.execute(f"DROP TABLE {old}")
        return fields, total

    def table(self, ref: str) -> Json:
        """Return a kept result as a Table resource, from which clients read the columns.

        Raises:
            ApiError: the result has been removed.
        """
        _, fields, total = self.find(ref)
        place = {"projectId": ref.partition(":")[0], "datasetId": DATASET, "tableId": ref}
        body: Json = {"kind": "bigquery#table", "id": ref, "tableReference": place}
        return {**body, "type": "TABLE", "schema": to_api(fields), "numRows": str(total)}

    def find(self, ref: str) -> tuple[str, tuple[Field, ...], int]:
        """Return the DuckDB table, the columns and the number of rows of a job's result.

        Raises:
            ApiError: the result has been removed.
        """
        with self._lock:
            kept = self._kept.get(ref)
        if kept is None:
            raise not_found(
                "Table", f"{ref} (results are kept until the server stops, the last {KEPT} of them)"
            )
        return kept


def columns(cursor: duckdb.DuckDBPyConnection, sql: str) -> tuple[Field, ...]:
    """Return the columns of a DuckDB SELECT without running it.

    Raises:
        ApiError: BigQuery would refuse the columns.
    """
    named = shape(cursor, sql)
    folded = [name.lower() for name, _ in named]
    twice = sorted({name for name, _ in named if folded.count(name.lower()) > 1})
    if twice:
        raise invalid(
            "Duplicate column names in the result are not supported. "
            f"Found duplicate(s): {', '.join(twice)}"
        )
    return tuple(result_field(name, kind) for name, kind in named)


def write_rows(cursor: duckdb.DuckDBPyConnection, sql: str, path: Path) -> str:
    """Write the rows of a SELECT to a file, so that another connection can read them.

    Args:
        cursor: the connection that runs the SELECT.  In one transaction DuckDB writes to one
            database only, so the rows cannot go into the database of the results directly.
        sql: the SELECT.
        path: the file to write or replace.

    Returns:
        A SELECT that reads the same columns and rows from the file.
    """
    fields = columns(cursor, sql)
    names = [f"c{place}" for place, _ in enumerate(fields)]
    typed = ", ".join(
        f"CAST({name} AS {stored_type(field)}) AS {name}"
        for name, field in zip(names, fields, strict=True)
    )
    rows = f"SELECT {typed} FROM ({sql}) AS _({', '.join(names)})"  # noqa: S608 - ours
    cursor.execute(f"COPY ({rows}) TO {literal(str(path))} (FORMAT parquet)")
    read = ", ".join(
        f"CAST({name} AS {stored_type(field)}) AS {quoted(field.name)}"
        for name, field in zip(names, fields, strict=True)
    )
    return f"SELECT {read} FROM read_parquet({literal(str(path))})"  # noqa: S608 - ours


def shape(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[tuple[str, Any]]:
    """Return the names and DuckDB types of a query's columns without running it."""
    # Of `SELECT Status AS status FROM t`, DuckDB 2.0's DESCRIBE tells the table's spelling.
    cursor.execute(f"({sql}) LIMIT 0")
    names = [str(name) for name, *_ in cursor.description or ()]
    places = ", ".join(f"c{place}" for place, _ in enumerate(names))
    cursor.execute(f"SELECT * FROM ({sql}) AS _({places}) LIMIT 0")  # noqa: S608 - ours
    return list(zip(names, (kind for _, kind, *_ in cursor.description or ()), strict=True))


def _check_years(cursor: duckdb.DuckDBPyConnection, name: str, fields: tuple[Field, ...]) -> None:
    """Refuse dates after the year 9999, which DuckDB has and BigQuery does not."""
    for field in fields:
        if field.type in {"DATE", "DATETIME", "TIMESTAMP"} and not field.repeated:
            column = f"CAST({quoted(field.name)} AS TIMESTAMP)"
            outside = (
                f"SELECT CAST({quoted(field.name)} AS VARCHAR) FROM {name} WHERE "  # noqa: S608
                f"{column} >= TIMESTAMP '10000-01-01' OR {column} < TIMESTAMP '0001-01-01' LIMIT 1"
            )
            found = cursor.execute(outside).fetchone()
            if found:
                raise invalid(f"{field.type.capitalize()} value out of range: {found[0]}")


def _normalise(cursor: duckdb.DuckDBPyConnection, name: str, fields: tuple[Field, ...]) -> None:
    """Convert every column to the DuckDB type of its BigQuery type; an overflow is an error."""
    cursor.execute(f"DESCRIBE {name}")
    kinds = [str(row[1]) for row in cursor.fetchall()]
    for field, kind in zip(fields, kinds, strict=True):
        if kind != stored_type(field):
            cursor.execute(
                f"ALTER TABLE {name} ALTER {quoted(field.name)} SET DATA TYPE {stored_type(field)}"
            )
        if field.repeated:
            column = quoted(field.name)
            nulls = f"SELECT 1 FROM {name} WHERE list_count({column}) <> len({column}) LIMIT 1"  # noqa: S608
            if cursor.execute(nulls).fetchone():
                raise invalid(
                    f"Array cannot have a null element; error in writing field {field.name}"
                )
