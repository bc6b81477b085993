"""The destination of a job: create the table, change its schema, replace or append rows.

**Invariant:** it works in the caller's transaction on the table's current state, which may differ
from the state when the job began.

Errors are as "JobConfigurationLoad" documents them: schema updates with a disposition that does not
allow them, rows in a table with WRITE_EMPTY, partitioning or clustering unlike the table's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.model import fields as columns_of
from embedded.model.changes import Change
from embedded.model.columns import literal, quoted, staged_type, stored_type
from embedded.model.errors import already_exists, invalid, not_found, unsupported
from embedded.store.catalog import (
    create_table,
    drop_table,
    find_table,
    set_fields,
    table_or_none,
)

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from embedded.model.fields import Field
    from embedded.model.names import TableRef
    from embedded.model.wire import Json
    from embedded.store.catalog import Table

WRITE = frozenset({"WRITE_APPEND", "WRITE_EMPTY", "WRITE_TRUNCATE", "WRITE_TRUNCATE_DATA"})
CREATE = frozenset({"CREATE_IF_NEEDED", "CREATE_NEVER"})
MIN_OBJECT_BYTES = 1 << 20  # each thread of DuckDB has buffers of a multiple of this size


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A job's destination table, and what the job may change in it.

    Args:
        ref: the table.
        day: the day of the partition, YYYY-MM-DD; "" for the whole table.
        write: the writeDisposition.
        create: the createDisposition.
        schema: the job's schema; () if the job has none.
        layout: the job's timePartitioning and clustering.
        properties: description and labels for a new table.
        add: whether ALLOW_FIELD_ADDITION is set.
        relax: whether ALLOW_FIELD_RELAXATION is set.
    """

    ref: TableRef
    day: str
    write: str
    create: str
    schema: tuple[Field, ...]
    layout: Json
    properties: Json
    add: bool = False
    relax: bool = False

    def __post_init__(self) -> None:
        if self.write not in WRITE:
            raise invalid(f"Invalid value for writeDisposition: {self.write}")
        if self.create not in CREATE:
            raise invalid(f"Invalid value for createDisposition: {self.create}")
        partition = self.write == "WRITE_TRUNCATE" and self.day
        if (self.add or self.relax) and not (
            partition or self.write in {"WRITE_APPEND", "WRITE_TRUNCATE_DATA"}
        ):
            raise invalid(
                "Schema update options should only be specified with WRITE_APPEND disposition, "
                "or with WRITE_TRUNCATE disposition on a table partition."
            )

    @property
    def replaces_table(self) -> bool:
        """Whether the job's schema replaces the table's, as with WRITE_TRUNCATE."""
        return self.write == "WRITE_TRUNCATE" and not self.day and bool(self.schema)

    def expected(self, table: Table | None) -> tuple[tuple[Field, ...], str]:
        """Return the columns by which rows are judged, and the partition column or "".

        Raises:
            ApiError: the job does not fit the table, or may not create a missing one.
        """
        if table is None:
            return self._expected_of_new()
        if table.view_sql:
            raise invalid(f"Cannot load into {table.ref}: it is a view")
        self._check_layout(table)
        if self.day and not table.partition_column:
            raise invalid(f"Cannot load into a partition of {table.ref}: it is not partitioned")
        if self.replaces_table:
            return self.schema, table.partition_column
        return self._merged(table), table.partition_column

    def put_staged(
        self,
        cursor: duckdb.DuckDBPyConnection,
        fields: tuple[Field, ...],
        path: Path,
        longest: int,
    ) -> None:
        """Write the staged rows to the table.

        Args:
            cursor: the transaction.
            fields: the columns by which the rows were judged.
            path: the staging file.
            longest: the size of its longest line, in bytes.

        Raises:
            ApiError: the table has changed since the rows were judged.
        """
        if any(field.default for field in fields):
            raise unsupported(f"Loading rows into {self.ref}, whose columns have default values,")
        staged = ", ".join(
            f"{literal(field.name)}: {literal(staged_type(field))}" for field in fields
        )
        size = max(MIN_OBJECT_BYTES, longest + 1)
        source = (
            f"read_json({literal(str(path))}, columns = {{{staged}}}, "
            f"format = 'newline_delimited', compression = 'none', maximum_object_size = {size})"
        )
        self.put(cursor, [field.name for field in fields], source)

    def put(self, cursor: duckdb.DuckDBPyConnection, names: list[str], source: str) -> None:
        """Write rows to the table; `source` is a DuckDB FROM item with the columns `names`.

        Raises:
            ApiError: the job does not fit the table.
        """
        table = self._table(cursor)
        stored = {field.name.lower(): field for field in table.fields}
        targets = [stored[name.lower()] for name in names]
        values = ", ".join(
            f"CAST({quoted(name)} AS {stored_type(field)})"
            for name, field in zip(names, targets, strict=True)
        )
        into = ", ".join(quoted(field.name) for field in targets)
        cursor.execute(
            f"INSERT INTO {table.storage} ({into}) SELECT {values} FROM {source}"  # noqa: S608 - quoted
        )

    def _table(self, cursor: duckdb.DuckDBPyConnection) -> Table:
        """Create, empty or widen the table, as the dispositions require."""
        table = table_or_none(cursor, self.ref)
        fields, _ = self.expected(table)
        if table is None:
            made = {"schema": columns_of.to_api(fields), **self.layout, **self.properties}
            return create_table(cursor, self.ref, made)
        which = self._rows(table)
        if self.write == "WRITE_EMPTY" and _any(cursor, table, which):
            raise already_exists("Table", str(self.ref))
        if self.write.startswith("WRITE_TRUNCATE"):
            cursor.execute(f"DELETE FROM {table.storage} WHERE {which}")  # noqa: S608 - quoted
        if self.replaces_table and fields != table.fields:
            return _replaced(cursor, table, fields)
        if fields != table.fields:
            set_fields(cursor, table, fields)
        return find_table(cursor, self.ref)

    def _rows(self, table: Table) -> str:
        """Return the SQL condition that selects the rows which the job replaces."""
        if not self.day:
            return "true"
        return f"CAST({quoted(table.partition_column)} AS DATE) = DATE {literal(self.day)}"

    def _expected_of_new(self) -> tuple[tuple[Field, ...], str]:
        if self.create == "CREATE_NEVER":
            raise not_found("Table", str(self.ref))
        if not self.schema:
            raise invalid("No schema specified on job or table.")
        wanted = str((self.layout.get("timePartitioning") or {}).get("field") or "").lower()
        found = [field.name for field in self.schema if field.name.lower() == wanted]
        if self.day and not found:
            raise invalid(f"Cannot load into a partition of {self.ref}: it is not partitioned")
        return self.schema, found[0] if found else ""

    def _merged(self, table: Table) -> tuple[Field, ...]:
        if not self.schema:
            return table.fields
        change = Change(table=str(self.ref), add=self.add, relax=self.relax, in_order=False)
        return change.merged(table.fields, self.schema)

    def _check_layout(self, table: Table) -> None:
        given = (self.layout.get("timePartitioning") or {}).get("field")
        if given and str(given).lower() != table.partition_column.lower():
            was = f"interval(type:day,field:{table.partition_column})"
            raise invalid(
                "Incompatible table partitioning specification. Expects partitioning "
                f"specification {was if table.partition_column else 'none'}, but input "
                f"partitioning specification is interval(type:day,field:{given})"
            )
        for key, value in self.properties.items():
            if table.body.get(key) != value:
                raise invalid(f"The {key} of {self.ref} differs from the job's")


def _any(cursor: duckdb.DuckDBPyConnection, table: Table, which: str) -> bool:
    query = f"SELECT 1 FROM {table.storage} WHERE {which} LIMIT 1"  # noqa: S608 - quoted
    return cursor.execute(query).fetchone() is not None


def _replaced(cursor: duckdb.DuckDBPyConnection, table: Table, fields: tuple[Field, ...]) -> Table:
    """Create the table again, empty and with other columns; keep its name and description."""
    drop_table(cursor, table)
    return create_table(cursor, table.ref, table.body | {"schema": columns_of.to_api(fields)})
