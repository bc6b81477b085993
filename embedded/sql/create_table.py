"""CREATE TABLE: with columns, AS SELECT, LIKE, CLONE.

**Invariant:** the table is the one that the REST API would create for the same schema, partitioning
and options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model import fields as columns_of
from embedded.model.errors import already_exists, invalid, unsupported
from embedded.model.names import TableRef, new_table
from embedded.sql.column_definitions import OPTIONS, column_definition, option_of, properties_of
from embedded.sql.defaults import check_defaults
from embedded.sql.resolver import table_of
from embedded.sql.translate import translated
from embedded.store.catalog import Table, create_table, drop_table, find_table, table_or_none
from embedded.store.datasets import find_dataset
from embedded.store.landing import Landing
from embedded.store.results import columns

if TYPE_CHECKING:
    import duckdb

    from embedded.model.wire import Json
    from embedded.sql.resolver import Context
    from embedded.sql.translate import Statement

EXPIRATION = "expiration_timestamp"
PARTITION_EXPIRATION = "partition_expiration_days"
DAY_MS = 86_400_000
TRUNCATED = (exp.TimestampTrunc, exp.DatetimeTrunc, exp.DateTrunc)


def ddl_result(operation: str, ref: TableRef) -> Json:
    """Return a job's statistics of a statement of DDL: CREATE, REPLACE, SKIP, ALTER or DROP."""
    return {"ddlOperationPerformed": operation, "ddlTargetTable": ref.to_api()}


def create_table_as_defined(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context
) -> Json:
    """Create the table of a CREATE TABLE statement, with its rows if it is AS SELECT or CLONE.

    Raises:
        ApiError: the table exists, or a clause is not supported.
    """
    tree = statement.tree
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    ref = table_of(node, context)
    find_dataset(cursor, ref.parent)
    old = table_or_none(cursor, ref)
    if old is not None and tree.args.get("exists"):
        return ddl_result("SKIP", ref)
    if old is not None and (not tree.args.get("replace") or old.view_sql):
        raise already_exists("Table", str(ref))
    new_table(ref.parent, ref.table)
    made, like = _layout(cursor, tree, context)
    clone = tree.args.get("clone")
    if clone is not None:
        source = find_table(cursor, table_of(clone.this, context))
        made = {**_copied(source), **made}
    elif like is not None:
        made = {**_copied(like), **made}
    listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    if listed:
        defined = columns_of.from_api({"fields": [column_definition(item) for item in listed]})
        check_defaults(defined)
        made["schema"] = columns_of.to_api(defined)
    rows = statement.sql if clone is None else f"SELECT * FROM {source.storage}"  # noqa: S608
    if old is not None and not rows:
        drop_table(cursor, old)
    if rows:
        _fill(cursor, ref, old, made, rows)
    else:
        create_table(cursor, ref, made)
    return ddl_result("REPLACE" if old is not None else "CREATE", ref)


def _fill(
    cursor: duckdb.DuckDBPyConnection, ref: TableRef, old: Table | None, made: Json, rows: str
) -> None:
    """Create a table from a query, which may read the table that it replaces."""
    found = columns(cursor, rows)
    cursor.execute(f"CREATE OR REPLACE TEMP TABLE _made AS {rows}")
    if old is not None:
        drop_table(cursor, old)
    schema = columns_of.from_api(made["schema"]) if "schema" in made else found
    if len(schema) != len(found):
        raise invalid(
            "The number of columns in the column definition list does not match the query"
        )
    layout = {k: v for k, v in made.items() if k in {"timePartitioning", "clustering"}}
    rest = {k: v for k, v in made.items() if k not in {*layout, "schema"}}
    landing = Landing(
        ref=ref, day="", write="WRITE_EMPTY", create="CREATE_IF_NEEDED", schema=schema,
        layout=layout, properties=rest,
    )  # fmt: skip
    names = [field.name for field in schema]
    aliases = ", ".join(f'"{name}"' for name in names)
    landing.put(cursor, names, f"_made AS _({aliases})")
    cursor.execute("DROP TABLE _made")


def _copied(table: Table) -> Json:
    if table.view_sql:
        raise invalid(f"{table.ref} is a view and cannot be copied")
    keys = ("schema", "timePartitioning", "clustering", "requirePartitionFilter", "description")
    return {key: table.body[key] for key in keys if key in table.body}


def _layout(
    cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, context: Context
) -> tuple[Json, Table | None]:
    """Return partitioning, clustering and options, and the table of a LIKE clause."""
    made: Json = {}
    like = None
    for item in properties_of(tree):
        if isinstance(item, exp.PartitionedByProperty):
            made["timePartitioning"] = {"type": "DAY", "field": _partition_column(item.this)}
        elif isinstance(item, exp.ClusterProperty):
            made["clustering"] = {"fields": [column.name for column in item.expressions]}
        elif isinstance(item, exp.LikeProperty):
            like = find_table(cursor, table_of(item.this, context))
        elif isinstance(item, exp.Property):
            options = table_option(cursor, item, context)
            made |= {k: v for k, v in options.items() if v is not None}
        else:
            raise unsupported(f"CREATE TABLE with {item.key}")
    return with_expiration(made), like


def table_option(cursor: duckdb.DuckDBPyConnection, item: exp.Expr, context: Context) -> Json:
    """Read one of a table's OPTIONS; `expiration_timestamp` may be any expression of a TIMESTAMP.

    `partition_expiration_days` is returned under its own name, for `with_expiration`.

    Raises:
        ApiError: the option is not allowed here, or its value is none for it.
    """
    name = item.this.name.lower() if isinstance(item, exp.Property) else ""
    if name == PARTITION_EXPIRATION:
        return option_of(item, {PARTITION_EXPIRATION: PARTITION_EXPIRATION})
    if name != EXPIRATION:
        return option_of(item, OPTIONS)
    value = item.args["value"]
    if isinstance(value, exp.Null):
        return {"expirationTime": None}
    select = exp.Select(
        expressions=[exp.Alias(this=value.copy(), alias=exp.to_identifier("value"))]
    )
    rows = translated(cursor, select, context).sql
    kind, until_ms = cursor.execute(
        f"SELECT typeof(value), epoch_ms(TRY_CAST(value AS TIMESTAMPTZ)) FROM ({rows})"  # noqa: S608
    ).fetchall()[0]
    if kind != "TIMESTAMP WITH TIME ZONE" or until_ms is None:
        raise invalid(f"The option {EXPIRATION} must be a TIMESTAMP")
    return {"expirationTime": str(until_ms)}


def with_expiration(body: Json) -> Json:
    """Return a table's resource with the option `partition_expiration_days` in its partitioning.

    Raises:
        ApiError: the table has no partitions, or the option is no positive number.
    """
    if PARTITION_EXPIRATION not in body:
        return body
    rest = {key: value for key, value in body.items() if key != PARTITION_EXPIRATION}
    days, spec = body[PARTITION_EXPIRATION], body.get("timePartitioning")
    if spec is None:
        raise invalid(f"{PARTITION_EXPIRATION} can only be set on a partitioned table")
    spec = {key: value for key, value in spec.items() if key != "expirationMs"}
    if days is not None:
        try:
            lifetime_ms = round(float(days) * DAY_MS)
        except (TypeError, ValueError, OverflowError):
            lifetime_ms = 0
        if lifetime_ms <= 0:
            raise invalid(f"The option {PARTITION_EXPIRATION} must be a positive number of days")
        spec["expirationMs"] = str(lifetime_ms)
    return {**rest, "timePartitioning": spec}


def _partition_column(node: exp.Expr) -> str:
    if isinstance(node, exp.Schema):
        (node,) = node.expressions
    if isinstance(node, exp.Column | exp.Identifier) and not node.name.startswith("_PARTITION"):
        return str(node.name)
    if isinstance(node, exp.Date | exp.TsOrDsToDate) and isinstance(node.this, exp.Column):
        return str(node.this.name)
    unit = node.args.get("unit")
    if isinstance(node, TRUNCATED) and unit is not None and unit.name.upper() == "DAY":
        return str(node.this.name)
    raise unsupported(f"PARTITION BY {node.sql('bigquery')[:60]}")
