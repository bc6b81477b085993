"""INFORMATION_SCHEMA and `__TABLES__`: datasets, tables and columns as rows of tables.

**Invariant:** a row has the same values as the REST API's resource.  Columns for sizes in bytes do
not exist, because the database does not know these sizes; that of `__TABLES__` is NULL.

Other views of INFORMATION_SCHEMA are errors.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from embedded.model.columns import definition, quoted
from embedded.model.errors import unsupported
from embedded.model.fields import SPELLINGS, Field
from embedded.model.names import DatasetRef, TableRef
from embedded.store.catalog import Table
from embedded.store.database import Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from embedded.model.wire import Json

    Row = tuple[Any, ...]

TABLE = "table_catalog table_schema table_name"
VIEWS = {
    "SCHEMATA": "catalog_name schema_name creation_time:TIMESTAMP last_modified_time:TIMESTAMP "
    "location",
    "TABLES": f"{TABLE} table_type is_insertable_into is_typed creation_time:TIMESTAMP",
    "VIEWS": f"{TABLE} view_definition check_option use_standard_sql",
    "COLUMNS": f"{TABLE} column_name ordinal_position:INTEGER is_nullable data_type is_generated "
    "is_hidden is_system_defined is_partitioning_column clustering_ordinal_position:INTEGER",
    "PARTITIONS": f"{TABLE} partition_id total_rows:INTEGER last_modified_time:TIMESTAMP",
    "TABLE_OPTIONS": f"{TABLE} option_name option_type option_value",
    "COLUMN_FIELD_PATHS": f"{TABLE} column_name field_path data_type description",
    "MATERIALIZED_VIEWS": f"{TABLE} last_refresh_time:TIMESTAMP",
    "__TABLES__": "project_id dataset_id table_id creation_time:INTEGER "
    "last_modified_time:INTEGER row_count:INTEGER size_bytes:INTEGER type:INTEGER",
    "JOBS": "creation_time:TIMESTAMP project_id user_email job_id job_type statement_type "
    "start_time:TIMESTAMP end_time:TIMESTAMP query state",
}
OPTIONS = {
    "description": ("description", "STRING"),
    "friendlyName": ("friendly_name", "STRING"),
    "labels": ("labels", "ARRAY<STRUCT<STRING, STRING>>"),
    "requirePartitionFilter": ("require_partition_filter", "BOOL"),
}
DAY_MS = 86_400_000
SAME_AS = {"JOBS_BY_PROJECT": "JOBS", "JOBS_BY_USER": "JOBS"}
_NAMES = {old: new for new, old in SPELLINGS.items() if new not in {"DECIMAL", "BIGDECIMAL"}}


def materialize(
    cursor: duckdb.DuckDBPyConnection, view: str, project: str, dataset: str, location: str
) -> tuple[str, tuple[Field, ...]]:
    """Write the rows of a view of INFORMATION_SCHEMA to a temporary DuckDB table.

    Args:
        cursor: the connection that will read the table.
        view: the view's name without INFORMATION_SCHEMA, or `__TABLES__`.
        project: the project to describe.
        dataset: the dataset to describe; "" for all in the location.
        location: the location of the datasets; "" for all.

    Returns:
        The temporary table's name and columns.

    Raises:
        ApiError: the view is not supported.
    """
    name = SAME_AS.get(view.upper(), view.upper())
    if name not in VIEWS:
        raise unsupported(f"INFORMATION_SCHEMA.{view.upper()}")
    fields = tuple(
        Field(name=column.partition(":")[0], type=column.partition(":")[2] or "STRING")
        for column in VIEWS[name].split()
    )
    table = f"_schema_{uuid.uuid4().hex}"
    cursor.execute(f"CREATE TEMP TABLE {table} ({definition(fields)})")
    rows = list(_ROWS[name](cursor, _datasets(cursor, project, dataset, location)))
    if name == "JOBS":
        rows = list(_jobs(cursor, project))
    if rows:
        marks = ", ".join("?" for _ in fields)
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - ours
    return table, fields


def _datasets(
    cursor: duckdb.DuckDBPyConnection, project: str, dataset: str, location: str
) -> list[Json]:
    found = Resources(cursor, "dataset").children(project)
    if dataset:
        found = [body for body in found if body["datasetReference"]["datasetId"] == dataset]
    return [body for body in found if not location or body["location"].lower() == location.lower()]


def _instant(millis: object) -> datetime | None:
    return None if not millis else datetime.fromtimestamp(int(str(millis)) / 1000, UTC)


def _schemata(_cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for body in datasets:
        ref = body["datasetReference"]
        made, changed = _instant(body["creationTime"]), _instant(body["lastModifiedTime"])
        yield ref["projectId"], ref["datasetId"], made, changed, body["location"]


def _each(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[tuple[Row, Table]]:
    for body in datasets:
        ref = body["datasetReference"]
        parent = DatasetRef(ref["projectId"], ref["datasetId"])
        for item in Resources(cursor, "table").children(parent):
            place = item["tableReference"]
            names = (place["projectId"], place["datasetId"], place["tableId"])
            yield names, Table(TableRef(*names), item)


def _tables(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for names, table in _each(cursor, datasets):
        kind, into = ("VIEW", "NO") if table.view_sql else ("BASE TABLE", "YES")
        yield (*names, kind, into, "NO", _instant(table.body["creationTime"]))


def _views(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for names, table in _each(cursor, datasets):
        if table.view_sql:
            yield (*names, table.view_sql, None, "YES")


def _columns(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for names, table in _each(cursor, datasets):
        clustered = [
            str(name).lower() for name in (table.body.get("clustering") or {}).get("fields", [])
        ]
        for place, field in enumerate(table.fields, 1):
            yield (
                *names,
                field.name,
                place,
                "NO" if field.mode == "REQUIRED" else "YES",
                data_type(field),
                "NEVER",
                "NO",
                "NO",
                "YES" if field.name == table.partition_column else "NO",
                clustered.index(field.name.lower()) + 1
                if field.name.lower() in clustered
                else None,
            )


def _table_options(_cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    """Yield what was set of each table, with values as literals of GoogleSQL."""
    for names, table in _each(_cursor, datasets):
        for key, (option, kind) in OPTIONS.items():
            if (value := table.body.get(key)) not in (None, "", {}):
                yield (*names, option, kind, _literal(value))
        if lifetime_ms := int((table.body.get("timePartitioning") or {}).get("expirationMs") or 0):
            days = lifetime_ms / DAY_MS
            yield (*names, "partition_expiration_days", "FLOAT64", repr(days))


def _literal(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"STRUCT({_literal(k)}, {_literal(v)})" for k, v in value.items())
        return f"[{pairs}]"
    return orjson.dumps(value).decode()


def _field_paths(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for names, table in _each(cursor, datasets):
        for column in table.fields:
            for path, field in _paths(column.name, column):
                yield (*names, column.name, path, data_type(field), field.description or None)


def _paths(path: str, field: Field) -> Iterator[tuple[str, Field]]:
    yield path, field
    for sub in field.fields:
        yield from _paths(f"{path}.{sub.name}", sub)


def _legacy_tables(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    """Yield `__TABLES__`: instants in milliseconds since 1970, type 1 a table, 2 a view."""
    for names, table in _each(cursor, datasets):
        times = (int(table.body[key]) for key in ("creationTime", "lastModifiedTime"))
        rows = 0 if table.view_sql else table.count(cursor)
        yield (*names, *times, rows, None, 2 if table.view_sql else 1)


def data_type(field: Field) -> str:
    """Return a column's type in GoogleSQL, such as `ARRAY<STRUCT<a INT64>>`."""
    kind = _NAMES.get(field.type, field.type)
    if field.type == "RECORD":
        kind = f"STRUCT<{', '.join(f'{sub.name} {data_type(sub)}' for sub in field.fields)}>"
    elif field.max_length:
        kind = f"{kind}({field.max_length})"
    elif field.precision:
        kind = f"{kind}({field.precision}, {field.scale})"
    return f"ARRAY<{kind}>" if field.repeated else kind


def _partitions(cursor: duckdb.DuckDBPyConnection, datasets: list[Json]) -> Iterator[Row]:
    for names, table in _each(cursor, datasets):
        if table.view_sql:
            continue
        changed = _instant(table.body["lastModifiedTime"])
        if not table.partition_column:
            yield (*names, None, table.count(cursor), changed)
            continue
        day = f"strftime(CAST({quoted(table.partition_column)} AS DATE), '%Y%m%d')"
        cursor.execute(
            f"SELECT coalesce({day}, '__NULL__'), count(*) FROM {table.storage} "  # noqa: S608
            "GROUP BY 1 ORDER BY 1"
        )
        for partition, rows in cursor.fetchall():
            yield (*names, partition, rows, changed)


def _jobs(cursor: duckdb.DuckDBPyConnection, project: str) -> Iterator[Row]:
    found = cursor.execute(
        "SELECT id, body FROM meta.jobs WHERE project = ? ORDER BY rowid", [project]
    ).fetchall()
    for name, text in found:
        body = orjson.loads(text)
        times = body["statistics"]
        query = body["configuration"].get("query") or {}
        yield (
            _instant(times.get("creationTime")),
            project,
            "nobody@embedded.invalid",
            name,
            body["configuration"].get("jobType"),
            (times.get("query") or {}).get("statementType"),
            _instant(times.get("startTime")),
            _instant(times.get("endTime")),
            query.get("query"),
            body["status"]["state"],
        )


_ROWS: dict[str, Callable[[duckdb.DuckDBPyConnection, list[Json]], Iterator[Row]]] = {
    "SCHEMATA": _schemata,
    "TABLES": _tables,
    "VIEWS": _views,
    "COLUMNS": _columns,
    "PARTITIONS": _partitions,
    "TABLE_OPTIONS": _table_options,
    "COLUMN_FIELD_PATHS": _field_paths,
    "MATERIALIZED_VIEWS": lambda _cursor, _datasets: iter(()),  # CREATE refuses them
    "__TABLES__": _legacy_tables,
    "JOBS": lambda _cursor, _datasets: iter(()),
}
