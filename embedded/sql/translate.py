"""Translate GoogleSQL to DuckDB's SQL: resolve names, check, rewrite.

**Invariant:** a translated statement reads only the tables that it names, and has only nodes that
`grammar` allows, which give the same results as in BigQuery.

The order of the steps matters: the checks of types need resolved names, and they come before the
rewriting, because their messages have GoogleSQL's names of functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import ErrorLevel, exp
from sqlglot.errors import SqlglotError

from embedded.functions.kinds import annotate
from embedded.model.errors import invalid, unsupported
from embedded.sql.assignments import convert_assignments
from embedded.sql.coercions import coerce_texts
from embedded.sql.grammar import check
from embedded.sql.outputs import name_outputs, resolve_aliases
from embedded.sql.parsing import parsed
from embedded.sql.pivots import without_pivots
from embedded.sql.pruning import require_filters
from embedded.sql.resolver import Context, Resolver
from embedded.sql.rewrites import rewritten
from embedded.sql.signatures import check_types
from embedded.store.results import columns

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field
    from embedded.store.catalog import Table

KINDS: dict[type[exp.Expr], str] = {
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
    exp.TruncateTable: "TRUNCATE_TABLE",
}
DEFINITIONS = (exp.Create, exp.Drop, exp.Alter)


@dataclass(frozen=True, slots=True)
class Statement:
    """A translated statement: its statementType, its DuckDB SQL, and the table that it changes."""

    kind: str
    sql: str
    tree: exp.Expr
    target: Table | None = None


def translate(cursor: duckdb.DuckDBPyConnection, sql: str, context: Context) -> Statement:
    """Translate the text of one GoogleSQL statement.

    Raises:
        ApiError: it cannot be parsed, names a missing table, or is not supported.
    """
    return translated(cursor, parsed(sql), context)


def translated(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, context: Context) -> Statement:
    """Translate one parsed statement.

    Raises:
        ApiError: it names a missing table, or is not supported.
    """
    if isinstance(tree, DEFINITIONS):
        rows = tree.args.get("expression")
        is_table = isinstance(tree, exp.Create) and tree.args.get("kind") == "TABLE"
        sql = translated(cursor, rows.copy(), context).sql if is_table and rows else ""
        return Statement(_definition_kind(tree), sql, tree)
    kind = "SELECT" if isinstance(tree, exp.Query) else KINDS.get(type(tree), "")
    if not kind:
        raise unsupported(f"The statement {tree.key.upper()}")
    if isinstance(tree, exp.Delete) and tree.args.get("tables"):  # DELETE without FROM
        tree.set("this", tree.args["tables"][0])
        tree.set("tables", None)
    resolver = Resolver(cursor, context)
    tree = resolver.resolved(tree, 0)
    if context.variables:
        _substitute(tree, context.variables, resolver.columns())
    without_pivots(tree, resolver.tables)
    require_filters(tree, resolver.tables)
    resolve_aliases(tree)
    if kind == "SELECT":
        name_outputs(tree)
    target = resolver.target(tree)
    if target is not None:
        convert_assignments(tree, target.fields, resolver.fields_of(tree.args.get("using")))
    for table in tree.find_all(exp.Table):
        resolver.place(table)
    text = _duckdb(tree, context.parameters, resolver.columns())
    return Statement(kind, text, tree, target)


def _definition_kind(tree: exp.Expr) -> str:
    """Return the statementType of a statement of DDL."""
    verb = "CREATE" if isinstance(tree, exp.Create) else "DROP"
    verb = "ALTER" if isinstance(tree, exp.Alter) else verb
    kind = str(tree.args.get("kind"))
    if verb == "CREATE" and kind == "TABLE" and tree.args.get("expression"):
        return "CREATE_TABLE_AS_SELECT"
    return f"{verb}_{kind}"


def _substitute(tree: exp.Expr, variables: frozenset[str], known: list[Field]) -> None:
    """Replace names by variables; a column of the same name has precedence ("Variables")."""
    taken = {column.name.lower() for column in known}
    taken |= {node.alias.lower() for node in tree.find_all(exp.Alias)}
    taken |= {name.name.lower() for node in tree.find_all(exp.TableAlias) for name in node.columns}
    taken |= {node.name.lower() for node in tree.find_all(exp.TableAlias) if node.this}
    taken |= {node.this.name.lower() for node in tree.find_all(exp.PropertyEQ)}
    taken |= {sub.name.lower() for column in known for sub in column.fields}
    for column in list(tree.find_all(exp.Column)):
        name = column.parts[0].name.lower()
        if name not in variables or name in taken:
            continue
        if len(column.parts) > 1:
            raise unsupported(f"A field of the variable {name}")
        column.replace(exp.Parameter(this=exp.var(f"_variable_{name}")))


def _duckdb(tree: exp.Expr, parameters: dict[str, str], known: list[Field]) -> str:
    """Return the DuckDB SQL of a statement whose names are resolved.

    Args:
        tree: the statement.
        parameters: DuckDB expressions by name or place.
        known: the columns of its tables.

    Raises:
        ApiError: it has a part without an equivalent in DuckDB.
    """
    check(tree)
    coerce_texts(tree)
    annotate(tree, known)
    check_types(tree)
    try:
        return rewritten(tree, parameters).sql(
            "duckdb", unsupported_level=ErrorLevel.RAISE, identify=True
        )
    except (SqlglotError, ValueError, TypeError, KeyError, AttributeError) as exc:
        # SQLGlot raises various exceptions for syntax that it does not expect.
        raise unsupported(str(exc)) from exc


def describe(cursor: duckdb.DuckDBPyConnection, sql: str, project: str) -> tuple[Field, ...]:
    """Return the columns of a view's SQL, which need not have partition filters.

    Raises:
        ApiError: it is not a query.
    """
    tree = parsed(sql)
    if not isinstance(tree, exp.Query):
        raise invalid("A view must be a query")
    resolver = Resolver(cursor, Context(project=project))
    tree = resolver.resolved(tree, 0)
    without_pivots(tree, resolver.tables)
    resolve_aliases(tree)
    name_outputs(tree)
    for table in tree.find_all(exp.Table):
        resolver.place(table)
    return columns(cursor, _duckdb(tree, {}, resolver.columns()))
