"""Run statements that change data: DML here, DDL in `definitions`.

**Invariant:** after a statement every REQUIRED column has a value in every row.

If several source rows of an UPDATE or MERGE match one target row, that is an error ("UPDATE/MERGE
must match at most one source row for each target row").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.columns import quoted, result_field
from embedded.model.errors import invalid, unsupported
from embedded.sql.definitions import define
from embedded.store.catalog import save_table
from embedded.store.results import shape

# The types that are coerced to a column's type ("Conversion rules": coercion, literal coercion).
COERCED = {
    "FLOAT": ("INTEGER", "NUMERIC", "BIGNUMERIC"),
    "NUMERIC": ("INTEGER",),
    "BIGNUMERIC": ("INTEGER", "NUMERIC"),
    **dict.fromkeys(("DATE", "TIME", "DATETIME", "TIMESTAMP"), ("STRING",)),
}

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field
    from embedded.model.wire import Json
    from embedded.sql.resolver import Context
    from embedded.sql.translate import Statement
    from embedded.store.catalog import Table


def execute(cursor: duckdb.DuckDBPyConnection, statement: Statement, context: Context) -> Json:
    """Run a statement; return its part of the job's statistics.

    Raises:
        ApiError: it cannot be run.
    """
    if isinstance(statement.tree, exp.Create | exp.Drop | exp.Alter):
        return define(cursor, statement, context)
    target = statement.target
    assert target is not None
    if statement.kind == "TRUNCATE_TABLE":
        cursor.execute(f"DELETE FROM {target.storage}")  # noqa: S608 - quoted
        return {}
    if isinstance(statement.tree, exp.Delete | exp.Update) and not statement.tree.args.get("where"):
        raise invalid(f"{statement.kind} must have a WHERE clause")
    _check_types(cursor, statement.tree, target)
    _check_single(cursor, statement.tree)
    found = cursor.execute(statement.sql).fetchone()
    _complete(cursor, target)
    save_table(cursor, target)
    return {"numDmlAffectedRows": str(found[0] if found else 0)}


def _complete(cursor: duckdb.DuckDBPyConnection, table: Table) -> None:
    """Check that REQUIRED columns have values; replace NULL arrays by empty ones."""
    for field in table.fields:
        null = f"{quoted(field.name)} IS NULL"
        if field.repeated:
            cursor.execute(f"UPDATE {table.storage} SET {quoted(field.name)} = [] WHERE {null}")  # noqa: S608
        elif field.mode == "REQUIRED":
            query = f"SELECT 1 FROM {table.storage} WHERE {null} LIMIT 1"  # noqa: S608 - quoted
            if cursor.execute(query).fetchone():
                raise invalid(f"Required field {field.name} cannot be null")


def _check_types(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, target: Table) -> None:
    """Refuse types that BigQuery does not coerce; DuckDB would round 1.5 to an integer."""
    columns = {field.name.lower(): field for field in target.fields}
    for names, query in _written(tree, target):
        for name, (_, kind) in zip(names, shape(cursor, query), strict=False):
            field = columns.get(name.lower())
            if field is None:
                raise invalid(f"Column {name} is not present in table {target.ref}")
            untyped = str(kind).strip('"') == "NULL"
            if not untyped:
                _check_fit(result_field(name, kind), field, name)


def _check_fit(given: Field, field: Field, name: str, *, inside: bool = False) -> None:
    """Check a value's type, and the types of its fields, against a column's."""
    fits = given.type == field.type or given.type in COERCED.get(field.type, ())
    if inside and given.type == "INTEGER":
        fits = True  # the type that DuckDB gives to an untyped NULL in a STRUCT
    if not fits or (given.repeated != field.repeated and not inside):
        raise invalid(
            f"Value has type {given.type} which cannot be inserted into column {name}, "
            f"which has type {field.type}"
        )
    if given.type != "RECORD":
        return
    if [sub.name.lower() for sub in given.fields] != [sub.name.lower() for sub in field.fields]:
        raise unsupported(f"A STRUCT whose fields are named otherwise than those of {name}")
    for sub, wanted in zip(given.fields, field.fields, strict=True):
        _check_fit(sub, wanted, f"{name}.{wanted.name}", inside=True)


def _check_single(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr) -> None:
    """Refuse an UPDATE or MERGE in which several source rows match one target row."""
    if isinstance(tree, exp.Merge):
        matched = [w for w in tree.args["whens"].expressions if w.args.get("matched")]
        source, condition = tree.args["using"], tree.args["on"]
        extra = [when.args.get("condition") or exp.true() for when in matched]
        if not matched:
            return
        condition = exp.and_(condition.copy(), exp.or_(*(one.copy() for one in extra)))
    else:
        more = tree.args.get("from_") or tree.args.get("from")
        if not isinstance(tree, exp.Update) or not more:
            return
        source, condition = more.this, tree.args["where"].this
    alias = quoted(tree.this.alias_or_name)
    several = (
        f"SELECT 1 FROM {tree.this.sql('duckdb')}, {source.sql('duckdb')} "  # noqa: S608
        f"WHERE {condition.sql('duckdb')} GROUP BY {alias}.rowid HAVING count(*) > 1 LIMIT 1"
    )
    if cursor.execute(several).fetchone():
        raise invalid("UPDATE/MERGE must match at most one source row for each target row")


def _written(tree: exp.Expr, target: Table) -> list[tuple[list[str], str]]:
    """Return, for each clause of a statement that writes, its columns and a query of its values."""
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
