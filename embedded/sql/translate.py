"""GoogleSQL into DuckDB's SQL: names resolved, views opened, rules kept, functions rewritten.

**Invariant:** a statement that comes out reads only tables that it names, and gives what BigQuery
would give as far as we know; every node of it is one that `grammar` knows.

It refuses everything else by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.errors import SqlglotError

from embedded.functions.kinds import annotate
from embedded.model.columns import stored_type
from embedded.model.errors import ApiError, invalid, unsupported
from embedded.model.names import DatasetRef, TableRef
from embedded.sql.assignments import settle
from embedded.sql.coercions import coerce_texts
from embedded.sql.definitions import kind_of_statement
from embedded.sql.grammar import check, check_names, check_source
from embedded.sql.outputs import name_outputs, settle_aliases
from embedded.sql.parameters import PLACE
from embedded.sql.pipes import without_pipes
from embedded.sql.pivots import without_pivots
from embedded.sql.pruning import require_filters
from embedded.sql.rewrites import rewritten
from embedded.sql.signatures import hold
from embedded.store.catalog import Table, find_table
from embedded.store.database import Resources
from embedded.store.datasets import find_dataset
from embedded.store.information import materialised
from embedded.store.results import columns

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field

MAX_VIEW_DEPTH = 16  # "Views", limits
KINDS: dict[type[exp.Expr], str] = {
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
    exp.TruncateTable: "TRUNCATE_TABLE",
}
DEFINITIONS = (exp.Create, exp.Drop, exp.Alter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a query's names and parameters mean.

    Args:
        project: the project of names without one.
        dataset: the dataset of names without one, if the query has a default.
        parameters: DuckDB expressions by name or place; a variable's after `_variable_`.
        variables: the variables of the script, in lower case.
    """

    project: str
    dataset: DatasetRef | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, understood: its kind, its DuckDB SQL, and the table that it changes."""

    kind: str
    sql: str
    tree: exp.Expr
    target: Table | None = None


def translate(cursor: duckdb.DuckDBPyConnection, sql: str, context: Context) -> Statement:
    """Understand one GoogleSQL statement.

    Raises:
        ApiError: it is none, names what is not there, or cannot be done here.
    """
    return translated(cursor, parsed(sql), context)


def translated(cursor: duckdb.DuckDBPyConnection, tree: exp.Expr, context: Context) -> Statement:
    """Understand one parsed statement.

    Raises:
        ApiError: it names what is not there, or cannot be done here.
    """
    if isinstance(tree, DEFINITIONS):
        rows = tree.args.get("expression")
        is_table = isinstance(tree, exp.Create) and tree.args.get("kind") == "TABLE"
        sql = translated(cursor, rows.copy(), context).sql if is_table and rows else ""
        return Statement(kind_of_statement(tree), sql, tree)
    kind = "SELECT" if isinstance(tree, exp.Query) else KINDS.get(type(tree), "")
    if not kind:
        raise unsupported(f"The statement {tree.key.upper()}")
    if isinstance(tree, exp.Delete) and tree.args.get("tables"):  # DELETE without FROM
        tree.set("this", tree.args["tables"][0])
        tree.set("tables", None)
    resolver = _Resolver(cursor, context)
    tree = resolver.resolved(tree, 0)
    if context.variables:
        _substitute(tree, context.variables, resolver.columns())
    without_pivots(tree, resolver.tables)
    require_filters(tree, resolver.tables)
    settle_aliases(tree)
    if kind == "SELECT":
        name_outputs(tree)
    target = resolver.target(tree)
    if target is not None:
        settle(tree, target.fields, resolver.fields_of(tree.args.get("using")))
    for table in tree.find_all(exp.Table):
        resolver.place(table)
    text = _duckdb(tree, context.parameters, resolver.columns())
    return Statement(kind, text, tree, target)


def _substitute(tree: exp.Expr, variables: frozenset[str], known: list[Field]) -> None:
    """Put variables where a name is no column: columns come first ("Variables")."""
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
    """Write a resolved statement for DuckDB.

    Args:
        tree: the statement.
        parameters: DuckDB expressions by name or place.
        known: the columns of the tables that it names.

    Raises:
        ApiError: it has a part that cannot be written so that it means the same.
    """
    check(tree)
    coerce_texts(tree)
    annotate(tree, known)
    hold(tree)
    try:
        return rewritten(tree, parameters).sql(
            "duckdb", unsupported_level=ErrorLevel.RAISE, identify=True
        )
    except (SqlglotError, ValueError, TypeError, KeyError, AttributeError) as exc:
        # SQLGlot fails in many ways on what it does not expect; none of them is an answer.
        raise unsupported(str(exc)) from exc


def parsed(sql: str) -> exp.Expr:
    """Parse one GoogleSQL statement.

    Raises:
        ApiError: it is none, or SQLGlot does not understand it.
    """
    trees = parsed_all(sql)
    if len(trees) != 1:
        raise unsupported("Several statements in this place" if trees else "An empty query")
    return trees[0]


def parsed_all(sql: str) -> list[exp.Expr]:
    """Parse the statements of a script, which may be a single one.

    Raises:
        ApiError: SQLGlot does not understand it.
    """
    try:
        return [
            tree
            for tree in sqlglot.parse(without_pipes(_numbered(sql)), read="bigquery")
            if tree is not None
        ]
    except SqlglotError as exc:
        said = str(exc).splitlines()[0] if str(exc) else "cannot be parsed"
        raise ApiError("invalidQuery", f"Syntax error: {said}") from exc


def _numbered(sql: str) -> str:
    """Name positional parameters by their place, which the parsed tree no longer tells."""
    tokens = sqlglot.tokenize(sql, read="bigquery")
    check_names(tokens)
    places = [token for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    for number, token in reversed(list(enumerate(places, 1))):
        sql = f"{sql[: token.start]}@{PLACE}{number}{sql[token.end + 1 :]}"
    return sql


def describe(cursor: duckdb.DuckDBPyConnection, sql: str, project: str) -> tuple[Field, ...]:
    """Return the columns of a view's SQL, without holding it to partition filters.

    Raises:
        ApiError: it is no query.
    """
    tree = parsed(sql)
    if not isinstance(tree, exp.Query):
        raise invalid("A view must be a query")
    resolver = _Resolver(cursor, Context(project=project))
    tree = resolver.resolved(tree, 0)
    without_pivots(tree, resolver.tables)
    settle_aliases(tree)
    name_outputs(tree)
    for table in tree.find_all(exp.Table):
        resolver.place(table)
    return columns(cursor, _duckdb(tree, {}, resolver.columns()))


class _Resolver:
    """Finds the tables of one statement; `tables` maps the marked nodes to what they are."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, context: Context) -> None:
        self._cursor = cursor
        self._context = context
        self.tables: dict[str, Table] = {}
        self.extra: tuple[Field, ...] = ()

    def resolved(self, tree: exp.Expr, depth: int) -> exp.Expr:
        """Mark every table with the one it is, and open every view."""
        if depth > MAX_VIEW_DEPTH:
            raise invalid(f"Views are nested too deep: at most {MAX_VIEW_DEPTH} levels")
        for node in list(tree.find_all(exp.Table)):
            if node.meta.get("table") or node.meta.get("placed") or _is_cte(node):
                continue
            check_source(node)
            if self._special(node):
                continue
            table = find_table(self._cursor, self._ref(node))
            if table.view_sql:
                self._open(node, table, depth)
            else:
                key = str(len(self.tables))
                self.tables[key] = table
                node.meta["table"] = key
        return tree

    def _ref(self, node: exp.Table) -> TableRef:
        if not isinstance(node.this, exp.Identifier):
            raise unsupported(f"{node.sql('bigquery')[:80]} as a table")
        parts = [part.name for part in node.parts]
        parts = [piece for part in parts for piece in part.split(".")]
        default = self._context.dataset
        if len(parts) == 1 and default is not None:
            return TableRef(default.project, default.dataset, parts[0])
        if len(parts) == 2:  # noqa: PLR2004 - dataset.table
            project = default.project if default else self._context.project
            return TableRef(project, *parts)
        if len(parts) == 3:  # noqa: PLR2004 - project.dataset.table
            return TableRef(*parts)
        raise invalid(
            f'Table "{".".join(parts)}" must be qualified with a dataset (e.g. dataset.table).'
        )

    def _special(self, node: exp.Table) -> bool:
        """Put tables in the place of a wildcard or of INFORMATION_SCHEMA."""
        parts = [piece for part in node.parts for piece in part.name.split(".")]
        upper = [part.upper() for part in parts]
        if "INFORMATION_SCHEMA" in upper:
            at = upper.index("INFORMATION_SCHEMA")
            self._inform(node, parts[:at], ".".join(parts[at + 1 :]))
            return True
        if parts[-1].endswith("*"):
            self._spread(node)
            return True
        return False

    def _inform(self, node: exp.Table, before: list[str], view: str) -> None:
        place = before[-1] if before else ""
        location = place.lower().removeprefix("region-") if "region-" in place.lower() else ""
        project = before[0] if len(before) > 1 else self._context.project
        default = self._context.dataset.dataset if self._context.dataset and not before else ""
        if view.upper() == "SCHEMATA":
            default = ""
        dataset = default if location else place or default
        if dataset:
            find_dataset(self._cursor, DatasetRef(project, dataset))
        name, fields = materialised(self._cursor, view, project, dataset, location)
        self.extra += fields
        node.meta["placed"] = "yes"
        alias = node.args.get("alias")
        if alias is None or "INFORMATION_SCHEMA" in alias.name.upper():
            shown = exp.to_identifier(view.rpartition(".")[2], quoted=True)
            node.set("alias", exp.TableAlias(this=shown))
        node.set("catalog", None)
        node.set("db", None)
        node.set("this", exp.to_identifier(name, quoted=True))

    def _spread(self, node: exp.Table) -> None:
        """Put the tables that a wildcard matches in its place, with the schema of the newest."""
        ref = self._ref(node)
        prefix = ref.table.removesuffix("*")
        bodies = [
            body
            for body in Resources(self._cursor, "table").children(ref.parent)
            if body["tableReference"]["tableId"].startswith(prefix) and "view" not in body
        ]
        if not bodies:
            raise invalid(f"{ref} does not match any table.")
        tables = [Table(TableRef(*body["tableReference"].values()), body) for body in bodies]
        newest = max(tables, key=lambda table: int(table.body["creationTime"]))
        selects = [self._one_of(table, newest.fields, prefix) for table in tables]
        union: exp.Query = selects[0]
        for select in selects[1:]:
            union = exp.Union(this=union, expression=select, distinct=False)
        around = node.find_ancestor(exp.Select)
        for item in around.expressions if around is not None else []:
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                left_out = star.args.get("except_") or []
                star.set("except_", [*left_out, exp.to_identifier("_TABLE_SUFFIX")])
        alias = node.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier(ref.table, quoted=True)
        )
        if node.args.get("pivots"):
            raise unsupported("PIVOT of a wildcard table (put it into a subquery)")
        node.replace(exp.Subquery(this=union, alias=alias, joins=node.args.get("joins")))

    def _one_of(self, table: Table, fields: tuple[Field, ...], prefix: str) -> exp.Select:
        known = {field.name.lower(): field for field in table.fields}
        items: list[exp.Expr] = []
        for column in fields:
            own = known.get(column.name.lower())
            if own is not None and (own.type, own.repeated) != (column.type, column.repeated):
                raise invalid(f"Cannot read field {column.name} of {table.ref} as {column.type}")
            value: exp.Expr = exp.column(column.name, quoted=True)
            if own is None:
                value = exp.cast(exp.null(), stored_type(column), dialect="duckdb")
            items.append(exp.alias_(value, column.name, quoted=True))
        suffix = exp.Literal.string(table.ref.table.removeprefix(prefix))
        items.append(exp.alias_(suffix, "_TABLE_SUFFIX"))
        source = exp.Table(this=exp.to_identifier(table.ref.table, quoted=True))
        key = str(len(self.tables))
        self.tables[key] = table
        source.meta["table"] = key
        return exp.Select(expressions=items).from_(source)

    def _open(self, node: exp.Table, view: Table, depth: int) -> None:
        inner = _Resolver(
            self._cursor, Context(project=view.ref.project)
        )  # a view's names do not depend on who reads it
        inner.tables = self.tables
        query = inner.resolved(parsed(view.view_sql), depth + 1)
        without_pivots(query, self.tables)
        name_outputs(query)
        alias = node.args.get("alias") or exp.TableAlias(
            this=exp.to_identifier(view.ref.table, quoted=True)
        )
        around = {key: node.args.get(key) for key in ("joins", "pivots")}
        subquery = exp.Subquery(this=query, alias=alias, **around)
        node.replace(subquery)

    def place(self, node: exp.Table) -> None:
        """Name the DuckDB table that holds the rows; the BigQuery name becomes the alias."""
        key = node.meta.get("table")
        if key is None:
            return
        table = self.tables[key]
        alias = node.args.get("alias")
        if not alias and not isinstance(node.parent, exp.Insert | exp.Schema):
            name = exp.to_identifier(table.ref.table, quoted=True)
            node.set("alias", exp.TableAlias(this=name))
        node.set("catalog", None)
        node.set("db", exp.to_identifier("data", quoted=True))
        node.set("this", exp.to_identifier(table.body["storage"], quoted=True))

    def columns(self) -> list[Field]:
        """Return the columns of all tables found so far."""
        own = [field for table in self.tables.values() for field in table.fields]
        return [*own, *self.extra]

    def fields_of(self, node: exp.Expr | None) -> tuple[Field, ...]:
        """Return the columns of a source that is a table, else none."""
        key = node.meta.get("table") if isinstance(node, exp.Table) else None
        return self.tables[key].fields if key is not None else ()

    def target(self, tree: exp.Expr) -> Table | None:
        """Return the table that a statement changes."""
        if isinstance(tree, exp.Query):
            return None
        place = tree.this
        if isinstance(tree, exp.TruncateTable):
            place = tree.expressions[0]
        node = place if isinstance(place, exp.Table) else place.find(exp.Table)
        assert node is not None
        return self.tables[node.meta["table"]]


def _is_cte(node: exp.Table) -> bool:
    if len(node.parts) != 1:
        return False
    parent: exp.Expr | None = node
    while parent is not None:
        found = parent.args.get("with_") or parent.args.get("with")
        if found and node.name.lower() in {cte.alias.lower() for cte in found.expressions}:
            return True
        parent = parent.parent
    return False
