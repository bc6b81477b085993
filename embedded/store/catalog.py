"""Tables and views in the database: find, create, change and drop them.

**Invariant:** a DuckDB table has the columns of its resource's schema, in the same order.  Array
columns have no NULL, as BigQuery stores a NULL array as an empty one ("Data types: array").

Partitioning is only by day on a column; other kinds, and unknown properties, are errors.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.model import fields as columns_of
from embedded.model.columns import definition, literal, quoted, stored_type
from embedded.model.errors import already_exists, invalid, not_found, unsupported
from embedded.model.labels import check_labels
from embedded.model.names import TableRef
from embedded.store.database import Resources
from embedded.store.datasets import etag_of, find_dataset, now_ms

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field
    from embedded.model.wire import Json

_SETTABLE = """
friendlyName description labels schema timePartitioning clustering requirePartitionFilter
view expirationTime
"""
SETTABLE = frozenset(_SETTABLE.split())
_GIVEN_BY_SERVER = """
kind etag id selfLink tableReference creationTime lastModifiedTime numRows numBytes location
type numLongTermBytes numTimeTravelPhysicalBytes numPhysicalBytes numActiveLogicalBytes
numTotalLogicalBytes numLongTermLogicalBytes numTotalPhysicalBytes numPartitions
"""
GIVEN_BY_SERVER = frozenset(_GIVEN_BY_SERVER.split())
PARTITION_TYPES = frozenset({"DATE", "TIMESTAMP", "DATETIME"})
MAX_CLUSTERING = 4


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as of one transaction."""

    ref: TableRef
    body: Json

    @property
    def fields(self) -> tuple[Field, ...]:
        """The columns."""
        return columns_of.from_api(self.body["schema"])

    @property
    def view_sql(self) -> str:
        """The GoogleSQL query of a view; "" for a table."""
        return str(self.body.get("view", {}).get("query", ""))

    @property
    def storage(self) -> str:
        """The DuckDB table with the rows, as a qualified and quoted name."""
        return f"data.{quoted(self.body['storage'])}"

    @property
    def partition_column(self) -> str:
        """The column by which the table is partitioned; "" for a table without partitions."""
        name = str(self.body.get("timePartitioning", {}).get("field", ""))
        found = [field.name for field in self.fields if field.name.lower() == name.lower()]
        return found[0] if found else ""

    @property
    def requires_filter(self) -> bool:
        """Whether queries must have a filter on the partition column."""
        old_place = self.body.get("timePartitioning", {}).get("requirePartitionFilter")
        return bool(self.body.get("requirePartitionFilter") or old_place)

    def count(self, cursor: duckdb.DuckDBPyConnection) -> int:
        """Count the rows of a table."""
        found = cursor.execute(f"SELECT count(*) FROM {self.storage}").fetchone()  # noqa: S608
        return int(found[0]) if found else 0


def find_table(cursor: duckdb.DuckDBPyConnection, ref: TableRef) -> Table:
    """Return a table or view.

    Raises:
        ApiError: the table or its dataset does not exist.
    """
    table = table_or_none(cursor, ref)
    if table is None:
        find_dataset(cursor, ref.parent)
        raise not_found("Table", str(ref))
    return table


def table_or_none(cursor: duckdb.DuckDBPyConnection, ref: TableRef) -> Table | None:
    """Return a table or view; None if it does not exist."""
    body = Resources(cursor, "table").find(ref)
    return None if body is None else Table(ref, body)


def create_table(cursor: duckdb.DuckDBPyConnection, ref: TableRef, given: Json) -> Table:
    """Create a table or view from a Table resource; a view's resource must have its schema.

    Raises:
        ApiError: it exists, its dataset does not, or it cannot be stored.
    """
    dataset = find_dataset(cursor, ref.parent)
    if table_or_none(cursor, ref) is not None:
        raise already_exists("Table", str(ref))
    for gone in Resources(cursor, "table").expired(ref.parent):
        drop_table(cursor, Table(TableRef(*gone["tableReference"].values()), gone))
    body = {key: given[key] for key in SETTABLE if given.get(key) is not None}
    fields = columns_of.from_api(body.get("schema") or {})
    body["schema"] = columns_of.to_api(fields)
    body["type"] = "VIEW" if "view" in body else "TABLE"
    body["creationTime"] = now_ms()
    body["location"] = dataset["location"]
    lifetime_ms = dataset.get("defaultTableExpirationMs")
    if lifetime_ms and body["type"] == "TABLE":
        body.setdefault("expirationTime", str(int(now_ms()) + int(lifetime_ms)))
    check_layout(fields, body)
    if body["type"] == "TABLE":
        if not fields:
            raise unsupported(f"A table without columns ({ref})")
        body["storage"] = f"t{uuid.uuid4().hex}"
        name = quoted(body["storage"])
        cursor.execute(f"CREATE TABLE data.{name} ({definition(fields)})")
    return save_table(cursor, Table(ref, body))


def save_table(cursor: duckdb.DuckDBPyConnection, table: Table) -> Table:
    """Complete a table's resource (id, link, times, etag) and store it."""
    ref, body = table.ref, dict(table.body)
    link = f"/bigquery/v2/projects/{ref.project}/datasets/{ref.dataset}/tables/{ref.table}"
    body |= {"kind": "bigquery#table", "id": str(ref), "tableReference": ref.to_api()}
    body |= {"selfLink": link, "lastModifiedTime": now_ms()}
    body["etag"] = etag_of(body)
    Resources(cursor, "table").put(ref, ref.parent, body)
    return Table(ref, body)


def drop_table(cursor: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Delete a table with its rows, or a view."""
    Resources(cursor, "table").drop(table.ref)
    if not table.view_sql:
        cursor.execute(f"DROP TABLE {table.storage}")


def set_fields(cursor: duckdb.DuckDBPyConnection, table: Table, fields: tuple[Field, ...]) -> Table:
    """Change a table's schema to one that `Change.merged` returned; its rows keep their values."""
    old = {field.name: field for field in table.fields}
    for field in fields:
        kind = stored_type(field)
        before = old.get(field.name)
        if before is None:
            value = " DEFAULT []" if field.repeated else ""
            cursor.execute(
                f"ALTER TABLE {table.storage} ADD COLUMN {quoted(field.name)} {kind}{value}"
            )
        elif stored_type(before) != kind:
            value = _widened(before, field, quoted(field.name), 0)
            cursor.execute(
                f"ALTER TABLE {table.storage} ALTER {quoted(field.name)} "
                f"SET DATA TYPE {kind} USING CAST({value} AS {kind})"
            )
    return save_table(cursor, Table(table.ref, table.body | {"schema": columns_of.to_api(fields)}))


def _widened(old: Field, new: Field, value: str, depth: int) -> str:
    """Return an expression that converts a value of column `old` to `new`; new arrays are empty."""
    if new.type != "RECORD":
        return value
    if new.repeated:
        item = f"item{depth}"
        return f"list_transform({value}, lambda {item}: {_record(old, new, item, depth)})"
    return _record(old, new, value, depth)


def _record(old: Field, new: Field, value: str, depth: int) -> str:
    known = {sub.name: sub for sub in old.fields}
    parts = []
    for sub in new.fields:
        inner = f"struct_extract({value}, {literal(sub.name)})"
        if sub.name in known:
            part = _widened(known[sub.name], sub, inner, depth + 1)
        else:
            part = f"CAST({'[]' if sub.repeated else 'NULL'} AS {stored_type(sub)})"
        parts.append(f"{quoted(sub.name)} := {part}")
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"


def check_layout(fields: tuple[Field, ...], body: Json) -> None:
    """Check labels and expiration; partitioning and clustering against the columns.

    Raises:
        ApiError: BigQuery does not allow them, or they are not supported here.
    """
    if not str(body.get("expirationTime", "0")).isdigit():
        raise invalid(f"Invalid value for expirationTime: {body['expirationTime']}")
    check_labels(body.get("labels", {}))
    top = {field.name.lower(): field for field in fields}
    spec = body.get("timePartitioning")
    if spec is not None:
        _check_partitioning(top, spec)
    elif body.get("requirePartitionFilter"):
        raise invalid("require_partition_filter can only be set on a partitioned table")
    clustering = (body.get("clustering") or {}).get("fields") or []
    if len(clustering) > MAX_CLUSTERING:
        raise invalid(f"Too many clustering fields: at most {MAX_CLUSTERING}")
    for name in clustering:
        field = top.get(str(name).lower())
        if field is None:
            raise invalid(f"The field specified for clustering cannot be found: {name}")
        if field.repeated or field.type in {"RECORD", "JSON", "FLOAT", "BYTES", "TIME"}:
            raise invalid(f"The field specified for clustering has a wrong type: {name}")


def _check_partitioning(top: dict[str, Field], spec: Json) -> None:
    """Check a TimePartitioning: by a top-level column, not repeated ("Partitioned tables")."""
    kind = str(spec.get("type") or "DAY")
    if kind != "DAY":
        raise unsupported(f"Partitioning by {kind}")
    if not str(spec.get("expirationMs") or 0).isdecimal():
        raise invalid(f"Invalid value for expirationMs: {spec['expirationMs']}")
    name = str(spec.get("field") or "")
    if not name:
        raise unsupported("Partitioning by ingestion time (no field)")
    field = top.get(name.lower())
    if field is None:
        raise invalid(f"The field specified for partitioning cannot be found: {name}")
    if field.type not in PARTITION_TYPES or field.repeated:
        raise invalid(
            f"The field specified for time partitioning ({name}) must be a top-level "
            "NULLABLE or REQUIRED field of type DATE, TIMESTAMP or DATETIME"
        )
