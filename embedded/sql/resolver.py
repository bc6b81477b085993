"""Find the tables and views that a statement names.

**Invariant:** after `Resolver.resolved`, each table of the tree is marked with the stored table
that it names, or was replaced by the query of a view, a wildcard or INFORMATION_SCHEMA.

Names without a project or dataset are completed from the query's `Context`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.columns import stored_type
from embedded.model.errors import invalid, unsupported
from embedded.model.names import DatasetRef, TableRef
from embedded.sql.grammar import check_source
from embedded.sql.outputs import name_outputs
from embedded.sql.parsing import parsed
from embedded.sql.pivots import without_pivots
from embedded.store.catalog import Table, find_table
from embedded.store.database import Resources
from embedded.store.datasets import find_dataset
from embedded.store.information import materialize

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field

MAX_VIEW_DEPTH = 16  # "Views", limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The values by which the names and parameters of a query are resolved.

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


def table_of(node: exp.Table, context: Context) -> TableRef:
    """Return the table of a name in DDL.

    Raises:
        ApiError: the name has no dataset, and the query no default one.
    """
    parts = [piece for part in node.parts for piece in part.name.split(".")]
    if len(parts) == 1 and context.dataset is not None:
        return TableRef(context.dataset.project, context.dataset.dataset, parts[0])
    if len(parts) == 2:  # noqa: PLR2004 - dataset.table
        return TableRef(context.project, *parts)
    if len(parts) != 3:  # noqa: PLR2004 - project.dataset.table
        raise invalid(f'Table "{".".join(parts)}" must be qualified with a dataset')
    return TableRef(*parts)


def dataset_of(node: exp.Table, context: Context) -> DatasetRef:
    """Return the dataset of a name with one or two parts.

    Raises:
        ApiError: the name has more parts.
    """
    parts = [piece for part in node.parts for piece in part.name.split(".")]
    if len(parts) == 1:
        return DatasetRef(context.project, parts[0])
    if len(parts) == 2:  # noqa: PLR2004 - project.dataset
        return DatasetRef(*parts)
    raise invalid(f'Invalid dataset name "{".".join(parts)}"')


class Resolver:
    """The tables of one statement.

    Attributes:
        tables: the tables found so far, by the key in the metadata of their nodes.
        extra: the columns of the INFORMATION_SCHEMA views found so far.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, context: Context) -> None:
        self._cursor = cursor
        self._context = context
        self.tables: dict[str, Table] = {}
        self.extra: tuple[Field, ...] = ()

    def resolved(self, tree: exp.Expr, depth: int) -> exp.Expr:
        """Replace views by their queries, and mark every other table with its key in `tables`.

        Raises:
            ApiError: a table does not exist, or views are nested too deep.
        """
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
        """Replace a wildcard table or a view of the catalogue; say whether it was one."""
        parts = [piece for part in node.parts for piece in part.name.split(".")]
        upper = [part.upper() for part in parts]
        if "INFORMATION_SCHEMA" in upper:
            at = upper.index("INFORMATION_SCHEMA")
            self._inform(node, parts[:at], ".".join(parts[at + 1 :]))
            return True
        if upper[-1] == "__TABLES__":
            self._inform(node, parts[:-1], upper[-1])
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
        name, fields = materialize(self._cursor, view, project, dataset, location)
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
        """Replace a wildcard table by a union of its tables, with the newest one's schema."""
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
        inner = Resolver(
            self._cursor, Context(project=view.ref.project)
        )  # a view's names do not depend on the reader's default dataset
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
        """Replace a BigQuery table by the DuckDB table of its rows; its old name is the alias."""
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
        """Return the columns of a source if it is a table; else ()."""
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
