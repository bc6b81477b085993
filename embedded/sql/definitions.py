"""Run DDL: CREATE and DROP of datasets, tables and views, and ALTER TABLE.

**Invariant:** the resources are those that the REST API would create for the same schema,
partitioning and options.

CREATE TABLE is in `create_table`, columns and options in `column_definitions`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model import fields as columns_of
from embedded.model.changes import Change
from embedded.model.errors import already_exists, invalid, not_found, unsupported
from embedded.model.names import DatasetRef, new_dataset
from embedded.sql.column_definitions import OPTIONS, column_definition, option_of, properties_of
from embedded.sql.create_table import (
    create_table_as_defined,
    ddl_result,
    table_option,
    with_expiration,
)
from embedded.sql.defaults import check_defaults
from embedded.sql.resolver import dataset_of, table_of
from embedded.sql.translate import describe
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

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from embedded.model.fields import Field
    from embedded.model.wire import Json
    from embedded.sql.resolver import Context
    from embedded.sql.translate import Statement

DATASET_OPTIONS = {
    "description": "description",
    "friendly_name": "friendlyName",
    "labels": "labels",
    "location": "location",
}
VIEW_OPTIONS = {key: OPTIONS[key] for key in ("description", "friendly_name", "labels")}


def define(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    """Run a statement of DDL; return its part of the job's statistics.

    Raises:
        ApiError: it cannot be run.
    """
    tree = statement.tree
    if isinstance(tree, exp.Drop):
        return _drop(cursor, tree, context)
    if isinstance(tree, exp.Alter):
        return _alter(cursor, tree, context)
    kinds: dict[str, Callable[..., Json]] = {
        "SCHEMA": _create_dataset, "TABLE": create_table_as_defined, "VIEW": _create_view,
    }  # fmt: skip
    kind = str(tree.args.get("kind"))
    if kind not in kinds:
        raise unsupported(f"CREATE {kind}")
    return kinds[kind](cursor, statement, context)


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
    for item in properties_of(tree):
        if isinstance(item, exp.LocationProperty):
            given["location"] = item.this.name
        else:
            given |= option_of(item, DATASET_OPTIONS)
    make_dataset(cursor, new_dataset(ref.project, ref.dataset), given)
    return {"ddlOperationPerformed": "CREATE", **target}


def _create_view(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    tree = statement.tree
    if not isinstance(tree.this, exp.Table):
        raise unsupported("CREATE VIEW with a list of columns")
    given: Json = {}
    for item in properties_of(tree):
        given |= option_of(item, VIEW_OPTIONS)
    query = tree.args["expression"].sql("bigquery")
    ref = table_of(tree.this, context)
    find_dataset(cursor, ref.parent)
    old = table_or_none(cursor, ref)
    if old is not None and tree.args.get("exists"):
        return ddl_result("SKIP", ref)
    if old is not None and not (tree.args.get("replace") and old.view_sql):
        raise already_exists("Table", str(ref))
    if old is not None:
        drop_table(cursor, old)
    schema = columns_of.to_api(describe(cursor, query, ref.project))
    view = {"view": {"query": query, "useLegacySql": False}, "schema": schema}
    create_table(cursor, ref, {**given, **view})
    return ddl_result("REPLACE" if old is not None else "CREATE", ref)


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
        return ddl_result("SKIP", ref)
    if table is None or bool(table.view_sql) != (kind == "VIEW"):
        raise not_found(kind.capitalize(), str(ref))
    drop_table(cursor, table)
    return ddl_result("DROP", ref)


def _drop_dataset(cursor: duckdb.DuckDBPyConnection, tree: exp.Drop, ref: DatasetRef) -> Json:
    target = {"ddlTargetDataset": ref.to_api()}
    if Resources(cursor, "dataset").find(ref) is None and tree.args.get("exists"):
        return {"ddlOperationPerformed": "SKIP", **target}
    drop_dataset(cursor, ref, contents=bool(tree.args.get("cascade")))
    return {"ddlOperationPerformed": "DROP", **target}


def _alter(cursor: duckdb.DuckDBPyConnection, tree: exp.Alter, context: Context) -> Json:
    """Run ALTER TABLE … ADD COLUMN, ALTER COLUMN … DEFAULT or SET OPTIONS; for more use REST."""
    ref = table_of(tree.this, context)
    if tree.args.get("kind") != "TABLE":
        raise unsupported(f"ALTER {tree.args.get('kind')}")
    table = find_table(cursor, ref)
    known = {field.name.lower() for field in table.fields}
    added: list[Field] = []
    fields = table.fields
    for action in tree.args["actions"]:
        if isinstance(action, exp.AlterSet):
            table = _with_options(cursor, table, action, context)
            continue
        if isinstance(action, exp.AlterColumn):
            fields = _with_default(fields, action)
            continue
        if not isinstance(action, exp.ColumnDef):
            raise unsupported(f"ALTER TABLE {action.sql('bigquery')[:60]}")
        if action.name.lower() in known:
            if action.args.get("exists"):
                continue
            raise invalid(f"Column already exists: {action.name}")
        added += columns_of.from_api({"fields": [column_definition(action)]})
    merged = Change(table=str(ref)).merged(table.fields, (*fields, *added))
    set_fields(cursor, table, merged)
    return ddl_result("ALTER", ref)


def _with_default(fields: tuple[Field, ...], action: exp.AlterColumn) -> tuple[Field, ...]:
    """Run ALTER COLUMN … SET DEFAULT, or DROP DEFAULT; rows that are there keep their values."""
    value = action.args.get("default")
    if value is None and not action.args.get("drop"):
        raise unsupported(f"ALTER TABLE {action.sql('bigquery')[:60]}")
    if action.name.lower() not in {field.name.lower() for field in fields}:
        raise invalid(f"Column not found: {action.name}")
    text = value.sql("bigquery") if value is not None else ""
    after = tuple(
        replace(field, default=text) if field.name.lower() == action.name.lower() else field
        for field in fields
    )
    check_defaults(after)
    return after


def _with_options(
    cursor: duckdb.DuckDBPyConnection, table: Table, action: exp.AlterSet, context: Context
) -> Table:
    """Run SET OPTIONS: change the given options, keep the others."""
    body = dict(table.body)
    for properties in filter(None, action.expressions):  # OPTIONS() of nothing is parsed as None
        if not isinstance(properties, exp.Properties):
            raise unsupported(f"ALTER TABLE {action.sql('bigquery')[:60]}")
        for item in properties.expressions:
            body |= table_option(cursor, item, context)
    body = with_expiration(body)
    body = {key: value for key, value in body.items() if value is not None}
    return save_table(cursor, Table(table.ref, body))
