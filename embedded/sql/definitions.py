"""DDL: CREATE and DROP of datasets, tables and views, ALTER TABLE … ADD COLUMN and SET OPTIONS.

**Invariant:** a table made here is the one that the API would make of the same schema, partitioning
and options.

It refuses options, column constraints and partitionings that tables here do not have, by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.kinds import kind_of
from embedded.model import fields as columns_of
from embedded.model.changes import Change
from embedded.model.errors import already_exists, invalid, not_found, unsupported
from embedded.model.names import DatasetRef, TableRef, new_dataset, new_table
from embedded.store.catalog import (
    Table,
    create_table,
    drop_table,
    find_table,
    save_table,
    set_fields,
    table_or_none,
)
from embedded.store.database import Resources
from embedded.store.datasets import drop_dataset, find_dataset, make_dataset
from embedded.store.landing import Landing
from embedded.store.results import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from embedded.model.fields import Field
    from embedded.model.wire import Json
    from embedded.sql.translate import Context, Statement

OPTIONS = {
    "description": "description",
    "friendly_name": "friendlyName",
    "labels": "labels",
    "require_partition_filter": "requirePartitionFilter",
}
EXPIRATION = "expiration_timestamp"
DATASET_OPTIONS = {
    "description": "description",
    "friendly_name": "friendlyName",
    "labels": "labels",
    "location": "location",
}
TRUNCATED = (exp.TimestampTrunc, exp.DatetimeTrunc, exp.DateTrunc)


def define(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    """Carry a statement of DDL out; returns its part of the job's statistics.

    Raises:
        ApiError: it cannot be carried out.
    """
    tree = statement.tree
    if isinstance(tree, exp.Drop):
        return _drop(cursor, tree, context)
    if isinstance(tree, exp.Alter):
        return _alter(cursor, tree, context)
    kinds: dict[str, Callable[..., Json]] = {
        "SCHEMA": _create_dataset, "TABLE": _create_table, "VIEW": _create_view,
    }  # fmt: skip
    kind = str(tree.args.get("kind"))
    if kind not in kinds:
        raise unsupported(f"CREATE {kind}")
    return kinds[kind](cursor, statement, context)


def kind_of_statement(tree: exp.Expr) -> str:
    """Return the statementType of a statement of DDL."""
    verb = "CREATE" if isinstance(tree, exp.Create) else "DROP"
    verb = "ALTER" if isinstance(tree, exp.Alter) else verb
    kind = str(tree.args.get("kind"))
    if verb == "CREATE" and kind == "TABLE" and tree.args.get("expression"):
        return "CREATE_TABLE_AS_SELECT"
    return f"{verb}_{kind}"


def _done(operation: str, ref: TableRef) -> Json:
    return {"ddlOperationPerformed": operation, "ddlTargetTable": ref.to_api()}


def _create_dataset(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context
) -> Json:
    tree = statement.tree
    ref = dataset_of(tree.this, context)
    found = Resources(cursor, "dataset").find(ref)
    target = {"ddlTargetDataset": ref.to_api()}
    if found is not None:
        if tree.args.get("exists"):
            return {"ddlOperationPerformed": "SKIP", **target}
        raise already_exists("Dataset", str(ref))
    given: Json = {}
    for item in _properties(tree):
        if isinstance(item, exp.LocationProperty):
            given["location"] = item.this.name
        else:
            given |= _option(item, DATASET_OPTIONS)
    make_dataset(cursor, new_dataset(ref.project, ref.dataset), given)
    return {"ddlOperationPerformed": "CREATE", **target}


def dataset_of(node: exp.Table, context: Context) -> DatasetRef:
    """Return the dataset that a name of one or two parts means."""
    parts = [piece for part in node.parts for piece in part.name.split(".")]
    if len(parts) == 1:
        return DatasetRef(context.project, parts[0])
    if len(parts) == 2:  # noqa: PLR2004 - project.dataset
        return DatasetRef(*parts)
    raise invalid(f'Invalid dataset name "{".".join(parts)}"')


def _properties(tree: exp.Expr) -> list[exp.Expr]:
    found = tree.args.get("properties")
    return list(found.expressions) if found else []


def _option(item: exp.Expr, known: dict[str, str]) -> Json:
    """Read one of OPTIONS(…); NULL takes the option away."""
    name = item.this.name.lower() if isinstance(item, exp.Property) else ""
    if name not in known:
        raise unsupported(f"The option {name or item.sql('bigquery')[:60]}")
    return {known[name]: _constant(item.args["value"])}


def _table_option(cursor: duckdb.DuckDBPyConnection, item: exp.Expr, context: Context) -> Json:
    """Read one of a table's options; when it expires may be any expression of a TIMESTAMP."""
    if not isinstance(item, exp.Property) or item.this.name.lower() != EXPIRATION:
        return _option(item, OPTIONS)
    from embedded.sql.translate import translated  # noqa: PLC0415 - it imports this module

    value = item.args["value"]
    if isinstance(value, exp.Null):
        return {"expirationTime": None}
    select = exp.Select(expressions=[exp.alias_(value.copy(), "value")])
    rows = translated(cursor, select, context).sql
    kind, until_ms = cursor.execute(
        f"SELECT typeof(value), epoch_ms(TRY_CAST(value AS TIMESTAMPTZ)) FROM ({rows})"  # noqa: S608
    ).fetchall()[0]
    if kind != "TIMESTAMP WITH TIME ZONE" or until_ms is None:
        raise invalid(f"The option {EXPIRATION} must be a TIMESTAMP")
    return {"expirationTime": str(until_ms)}


def _constant(value: exp.Expr) -> object:
    if isinstance(value, exp.Null):
        return None
    if isinstance(value, exp.Boolean):
        return bool(value.this)
    if isinstance(value, exp.Array):
        pairs = [[part.name for part in item.expressions] for item in value.expressions]
        return {pair[0]: pair[1] for pair in pairs}
    if isinstance(value, exp.Literal):
        return value.name
    raise unsupported(f"An option that is no literal ({value.sql('bigquery')[:60]})")


def _create_table(
    cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context
) -> Json:
    tree = statement.tree
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    ref = table_of(node, context)
    find_dataset(cursor, ref.parent)
    old = table_or_none(cursor, ref)
    if old is not None and tree.args.get("exists"):
        return _done("SKIP", ref)
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
        made["schema"] = columns_of.to_api(
            columns_of.from_api({"fields": [_column(item) for item in listed]})
        )
    rows = statement.sql if clone is None else f"SELECT * FROM {source.storage}"  # noqa: S608
    if old is not None and not rows:
        drop_table(cursor, old)
    if rows:
        _fill(cursor, ref, old, made, rows)
    else:
        create_table(cursor, ref, made)
    return _done("REPLACE" if old is not None else "CREATE", ref)


def _fill(
    cursor: duckdb.DuckDBPyConnection, ref: TableRef, old: Table | None, made: Json, rows: str
) -> None:
    """Make a table of the rows of a query, which may read the table that it replaces."""
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
    """Read what stands around the columns: partitioning, clustering, options, LIKE."""
    made: Json = {}
    like = None
    for item in _properties(tree):
        if isinstance(item, exp.PartitionedByProperty):
            made["timePartitioning"] = {"type": "DAY", "field": _partition_column(item.this)}
        elif isinstance(item, exp.ClusterProperty):
            made["clustering"] = {"fields": [column.name for column in item.expressions]}
        elif isinstance(item, exp.LikeProperty):
            like = find_table(cursor, table_of(item.this, context))
        elif isinstance(item, exp.Property):
            options = _table_option(cursor, item, context)
            made |= {k: v for k, v in options.items() if v is not None}
        else:
            raise unsupported(f"CREATE TABLE with {item.key}")
    return made, like


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


def _column(item: exp.Expr) -> Json:
    """Read a column's definition as a TableFieldSchema."""
    if not isinstance(item, exp.ColumnDef) or not item.args.get("kind"):
        raise unsupported(f"The column definition {item.sql('bigquery')[:60]}")
    api: Json = {"name": item.name, **_typed(item.args["kind"])}
    for constraint in item.args.get("constraints") or []:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
            api["mode"] = "REQUIRED"
        elif isinstance(kind, exp.Properties):
            for option in kind.expressions:
                api |= _option(option, {"description": "description"})
        else:
            raise unsupported(f"The column constraint {kind.sql('bigquery')[:60]}")
    return api


def typed_column(name: str, data_type: exp.DataType) -> Field:
    """Return the column of a type that is written in SQL.

    Raises:
        ApiError: there is no such type here.
    """
    (found,) = columns_of.from_api({"fields": [{"name": name, **_typed(data_type)}]})
    return found


def _typed(data_type: exp.DataType) -> Json:
    kind = kind_of(data_type)
    if kind.startswith("ARRAY"):
        inner = _typed(data_type.expressions[0])
        if inner.get("mode") == "REPEATED":
            raise invalid("Arrays of arrays are not supported")
        return {**inner, "mode": "REPEATED"}
    if kind == "STRUCT":
        return {"type": "RECORD", "fields": [_column(item) for item in data_type.expressions]}
    if not kind or kind == "INTERVAL":
        raise unsupported(f"The type {data_type.sql('bigquery')}")
    numbers = [int(item.name) for item in data_type.expressions]
    if kind in {"STRING", "BYTES"}:
        return {"type": kind, **({"maxLength": str(numbers[0])} if numbers else {})}
    sizes = dict(zip(("precision", "scale"), map(str, numbers), strict=False))
    return {"type": kind, **sizes}


def _create_view(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    from embedded.sql.translate import describe  # noqa: PLC0415 - it imports this module

    tree = statement.tree
    if not isinstance(tree.this, exp.Table):
        raise unsupported("CREATE VIEW with a list of columns")
    given: Json = {}
    for item in _properties(tree):
        given |= _option(item, {k: OPTIONS[k] for k in ("description", "friendly_name", "labels")})
    query = tree.args["expression"].sql("bigquery")
    ref = table_of(tree.this, context)
    find_dataset(cursor, ref.parent)
    old = table_or_none(cursor, ref)
    if old is not None and tree.args.get("exists"):
        return _done("SKIP", ref)
    if old is not None and not (tree.args.get("replace") and old.view_sql):
        raise already_exists("Table", str(ref))
    if old is not None:
        drop_table(cursor, old)
    schema = columns_of.to_api(describe(cursor, query, ref.project))
    view = {"view": {"query": query, "useLegacySql": False}, "schema": schema}
    create_table(cursor, ref, {**given, **view})
    return _done("REPLACE" if old is not None else "CREATE", ref)


def _drop(cursor: duckdb.DuckDBPyConnection, tree: exp.Drop, context: Context) -> Json:
    kind = str(tree.args.get("kind"))
    (place,) = tree.args.get("tables") or [tree.this]
    if kind == "SCHEMA":
        return _drop_dataset(cursor, tree, dataset_of(place, context))
    if kind not in {"VIEW", "TABLE"}:
        raise unsupported(f"DROP {kind}")
    ref = table_of(place, context)
    table = table_or_none(cursor, ref)
    if table is None and tree.args.get("exists"):
        return _done("SKIP", ref)
    if table is None or bool(table.view_sql) != (kind == "VIEW"):
        raise not_found(kind.capitalize(), str(ref))
    drop_table(cursor, table)
    return _done("DROP", ref)


def _drop_dataset(cursor: duckdb.DuckDBPyConnection, tree: exp.Drop, ref: DatasetRef) -> Json:
    target = {"ddlTargetDataset": ref.to_api()}
    if Resources(cursor, "dataset").find(ref) is None and tree.args.get("exists"):
        return {"ddlOperationPerformed": "SKIP", **target}
    drop_dataset(cursor, ref, contents=bool(tree.args.get("cascade")))
    return {"ddlOperationPerformed": "DROP", **target}


def _alter(cursor: duckdb.DuckDBPyConnection, tree: exp.Alter, context: Context) -> Json:
    """ALTER TABLE … ADD COLUMN and SET OPTIONS; the rest is for the API."""
    ref = table_of(tree.this, context)
    if tree.args.get("kind") != "TABLE":
        raise unsupported(f"ALTER {tree.args.get('kind')}")
    table = find_table(cursor, ref)
    known = {field.name.lower() for field in table.fields}
    added: list[Field] = []
    for action in tree.args["actions"]:
        if isinstance(action, exp.AlterSet):
            table = _with_options(cursor, table, action, context)
            continue
        if not isinstance(action, exp.ColumnDef):
            raise unsupported(f"ALTER TABLE {action.sql('bigquery')[:60]}")
        if action.name.lower() in known:
            if action.args.get("exists"):
                continue
            raise invalid(f"Column already exists: {action.name}")
        added += columns_of.from_api({"fields": [_column(action)]})
    merged = Change(table=str(ref)).merged(table.fields, (*table.fields, *added))
    set_fields(cursor, table, merged)
    return _done("ALTER", ref)


def _with_options(
    cursor: duckdb.DuckDBPyConnection, table: Table, action: exp.AlterSet, context: Context
) -> Table:
    """SET OPTIONS: what is named changes, the rest stays."""
    body = dict(table.body)
    for properties in filter(None, action.expressions):  # OPTIONS() of nothing is parsed as None
        if not isinstance(properties, exp.Properties):
            raise unsupported(f"ALTER TABLE {action.sql('bigquery')[:60]}")
        for item in properties.expressions:
            body |= _table_option(cursor, item, context)
    body = {key: value for key, value in body.items() if value is not None}
    return save_table(cursor, Table(table.ref, body))


def table_of(node: exp.Table, context: Context) -> TableRef:
    """Return the table that a name means."""
    parts = [piece for part in node.parts for piece in part.name.split(".")]
    if len(parts) == 1 and context.dataset is not None:
        return TableRef(context.dataset.project, context.dataset.dataset, parts[0])
    if len(parts) == 2:  # noqa: PLR2004 - dataset.table
        return TableRef(context.project, *parts)
    if len(parts) != 3:  # noqa: PLR2004 - project.dataset.table
        raise invalid(f'Table "{".".join(parts)}" must be qualified with a dataset')
    return TableRef(*parts)
