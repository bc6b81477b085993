"""Statements that change something: DML, and the little DDL that there is.

**Invariant:** after a statement every REQUIRED column still has a value in every row.

It refuses DDL other than CREATE VIEW and DROP: tables are made through the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.embedded import fields as columns_of
from loader.embedded.catalog import create_table, drop_table, save_table, table_or_none
from loader.embedded.columns import quoted
from loader.embedded.datasets import find_dataset
from loader.embedded.errors import already_exists, invalid, not_found, unsupported
from loader.embedded.names import TableRef
from loader.embedded.translate import describe

if TYPE_CHECKING:
    import duckdb

    from loader.embedded.catalog import Table
    from loader.embedded.translate import Context, Statement
    from loader.embedded.wire import Json


def execute(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    """Carry a statement out; returns its part of the job's statistics.

    Raises:
        ApiError: it cannot be carried out.
    """
    if isinstance(statement.tree, exp.Create):
        _create_view(cursor, statement.tree, context)
        return {}
    if isinstance(statement.tree, exp.Drop):
        _drop(cursor, statement.tree, context)
        return {}
    target = statement.target
    assert target is not None
    if statement.kind == "TRUNCATE_TABLE":
        cursor.execute(f"DELETE FROM {target.storage}")  # noqa: S608 - quoted
        return {}
    found = cursor.execute(statement.sql).fetchone()
    _check_required(cursor, target)
    save_table(cursor, target)
    return {"numDmlAffectedRows": str(found[0] if found else 0)}


def _check_required(cursor: duckdb.DuckDBPyConnection, table: Table) -> None:
    for field in table.fields:
        if field.mode == "REQUIRED":
            query = f"SELECT 1 FROM {table.storage} WHERE {quoted(field.name)} IS NULL LIMIT 1"  # noqa: S608
            if cursor.execute(query).fetchone():
                raise invalid(f"Required field {field.name} cannot be null")


def _create_view(cursor: duckdb.DuckDBPyConnection, tree: exp.Create, context: Context) -> None:
    if tree.args.get("kind") != "VIEW" or not isinstance(tree.this, exp.Table):
        raise unsupported(f"CREATE {tree.args.get('kind')} (use the API)")
    query = tree.args["expression"].sql("bigquery")
    ref = _ref(tree.this, context)
    find_dataset(cursor, ref.parent)
    old = table_or_none(cursor, ref)
    if old is not None and tree.args.get("exists"):
        return
    if old is not None and not (tree.args.get("replace") and old.view_sql):
        raise already_exists("Table", str(ref))
    if old is not None:
        drop_table(cursor, old)
    schema = columns_of.to_api(describe(cursor, query, ref.project))
    create_table(cursor, ref, {"view": {"query": query, "useLegacySql": False}, "schema": schema})


def _drop(cursor: duckdb.DuckDBPyConnection, tree: exp.Drop, context: Context) -> None:
    kind = str(tree.args.get("kind"))
    if kind not in {"VIEW", "TABLE"}:
        raise unsupported(f"DROP {kind}")
    ref = _ref(tree.this, context)
    table = table_or_none(cursor, ref)
    if table is None and tree.args.get("exists"):
        return
    if table is None or bool(table.view_sql) != (kind == "VIEW"):
        raise not_found(kind.capitalize(), str(ref))
    drop_table(cursor, table)


def _ref(node: exp.Table, context: Context) -> TableRef:
    parts = [piece for part in node.parts for piece in part.name.split(".")]
    if len(parts) == 1 and context.dataset is not None:
        return TableRef(context.dataset.project, context.dataset.dataset, parts[0])
    if len(parts) == 2:  # noqa: PLR2004 - dataset.table
        return TableRef(context.project, *parts)
    if len(parts) != 3:  # noqa: PLR2004 - project.dataset.table
        raise invalid(f'Table "{".".join(parts)}" must be qualified with a dataset')
    return TableRef(*parts)
