"""Statements that change something: DML, and the little DDL that there is.

**Invariant:** after a statement every REQUIRED column still has a value in every row.

It refuses DDL other than CREATE VIEW and DROP: tables are made through the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded import fields as columns_of
from embedded.catalog import create_table, drop_table, save_table, table_or_none
from embedded.columns import quoted, result_field
from embedded.datasets import find_dataset
from embedded.errors import already_exists, invalid, not_found, unsupported
from embedded.names import TableRef
from embedded.results import shape
from embedded.translate import describe

# What a column takes besides its own type ("Conversion rules": coercion, and of literals).
COERCED = {
    "FLOAT": ("INTEGER", "NUMERIC", "BIGNUMERIC"),
    "NUMERIC": ("INTEGER",),
    "BIGNUMERIC": ("INTEGER", "NUMERIC"),
    **dict.fromkeys(("DATE", "TIME", "DATETIME", "TIMESTAMP"), ("STRING",)),
}

if TYPE_CHECKING:
    import duckdb

    from embedded.catalog import Table
    from embedded.translate import Context, Statement
    from embedded.wire import Json


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
    if isinstance(statement.tree, exp.Delete | exp.Update) and not statement.tree.args.get("where"):
        raise invalid(f"{statement.kind} must have a WHERE clause")
    _check_types(cursor, statement.tree, target)
    found = cursor.execute(statement.sql).fetchone()
    _complete(cursor, target)
    save_table(cursor, target)
    return {"numDmlAffectedRows": str(found[0] if found else 0)}


def _complete(cursor: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Hold REQUIRED columns to having a value; a NULL array is an empty one."""
    for field in table.fields:
        null = f"{quoted(field.name)} IS NULL"
        if field.repeated:
            cursor.execute(f"UPDATE {table.storage} SET {quoted(field.name)} = [] WHERE {null}")  # noqa: S608
        elif field.mode == "REQUIRED":
            query = f"SELECT 1 FROM {table.storage} WHERE {null} LIMIT 1"  # noqa: S608 - quoted
            if cursor.execute(query).fetchone():
                raise invalid(f"Required field {field.name} cannot be null")


def _check_types(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, target: Table) -> None:
    """Refuse what BigQuery does not coerce; DuckDB would round 1.5 into an integer."""
    columns = {field.name.lower(): field for field in target.fields}
    for names, query in _written(tree, target):
        for name, (_, kind) in zip(names, shape(cursor, query), strict=False):
            field = columns.get(name.lower())
            if field is None:
                raise invalid(f"Column {name} is not present in table {target.ref}")
            given = result_field(name, kind)
            fits = given.type == field.type or given.type in COERCED.get(field.type, ())
            untyped = str(kind).strip('"') == "NULL"
            if not untyped and not (fits and given.repeated == field.repeated):
                raise invalid(
                    f"Value has type {given.type} which cannot be inserted into column {name}, "
                    f"which has type {field.type}"
                )


def _written(tree: exp.Expr, target: Table) -> list[tuple[list[str], str]]:
    """Return, for each part of a statement that writes, its columns and a query of its values."""
    if isinstance(tree, exp.Insert):
        if isinstance(tree.this, exp.Schema):
            names = [column.name for column in tree.this.expressions]
        else:
            names = [field.name for field in target.fields]
        return [(names, tree.expression.sql("duckdb"))]
    place = tree.this.sql("duckdb")
    if isinstance(tree, exp.Update):
        more = tree.args.get("from_") or tree.args.get("from")
        others = f", {more.this.sql('duckdb')}" if more else ""
        return [_assigned(tree.expressions, place + others)]
    if isinstance(tree, exp.Merge):
        source = tree.args["using"].sql("duckdb")
        return [
            _assigned(
                _pairs(when.args["then"]),
                source if isinstance(when.args["then"], exp.Insert) else f"{place}, {source}",
            )
            for when in tree.args["whens"].expressions
            if isinstance(when.args["then"], exp.Insert | exp.Update)
        ]
    return []


def _pairs(then: exp.Expr) -> list[exp.Expr]:
    if isinstance(then, exp.Update):
        return list(then.expressions)
    if not isinstance(then.this, exp.Tuple) or not isinstance(then.expression, exp.Tuple):
        raise unsupported("MERGE with INSERT ROW or without column names")
    pairs = zip(then.this.expressions, then.expression.expressions, strict=True)
    return [exp.EQ(this=column.copy(), expression=value.copy()) for column, value in pairs]


def _assigned(pairs: list[exp.Expr], sources: str) -> tuple[list[str], str]:
    values = ", ".join(pair.expression.sql("duckdb") for pair in pairs)
    return [pair.this.name for pair in pairs], f"SELECT {values} FROM {sources}"  # noqa: S608


def _create_view(cursor: duckdb.DuckDBPyConnection, tree: exp.Create, context: Context) -> None:
    if tree.args.get("kind") != "VIEW" or not isinstance(tree.this, exp.Table):
        raise unsupported(f"CREATE {tree.args.get('kind')} (use the API)")
    if tree.args.get("properties"):
        raise unsupported("OPTIONS of a view (use the API)")
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
    (place,) = tree.args.get("tables") or [tree.this]
    ref = _ref(place, context)
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
