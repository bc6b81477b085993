"""Scripts: several statements, with variables and temporary functions.

**Invariant:** each statement sees the changes of those before it, and the result of the last
SELECT is the script's.  Unlike in BigQuery, a script is one transaction: if it fails, nothing has
changed.

Control structures, procedures, EXECUTE IMMEDIATE and JavaScript functions are not supported.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.columns import quoted, stored_type
from embedded.model.errors import ApiError, invalid, unsupported
from embedded.sql.column_definitions import typed_column
from embedded.sql.translate import Statement, translated

if TYPE_CHECKING:
    import duckdb

    from embedded.sql.resolver import Context

VARIABLE = "_variable_"
MAX_CALLS = 64  # the maximum depth of functions that call functions


@dataclass(slots=True)
class Script:
    """The variables and functions that a script has defined so far.

    Args:
        cursor: the connection of the whole script.
        context: the values by which names and parameters are resolved.
    """

    cursor: duckdb.DuckDBPyConnection
    context: Context
    _functions: dict[str, exp.Create] = field(default_factory=dict)
    _types: dict[str, str] = field(default_factory=dict)

    def take(self, tree: exp.Expr) -> Statement | None:
        """Handle the next statement; return its translation if the caller must run it.

        Raises:
            ApiError: it cannot be run.
        """
        if isinstance(tree, exp.Declare):
            self._declare(tree)
            return None
        if isinstance(tree, exp.Set):
            self._set(tree)
            return None
        if isinstance(tree, exp.Create) and str(tree.args.get("kind")) == "FUNCTION":
            self._define(tree)
            return None
        if isinstance(tree, exp.Command):
            raise unsupported(f"The statement {str(tree.this).upper()} in a script")
        return self.translated(tree)

    def translated(self, tree: exp.Expr) -> Statement:
        """Translate a statement with the functions and variables defined so far."""
        return translated(self.cursor, self._inlined(tree), self.context)

    def _define(self, tree: exp.Create) -> None:
        properties = tree.args.get("properties")
        items = properties.expressions if properties else []
        if not any(isinstance(item, exp.TemporaryProperty) for item in items):
            raise unsupported("CREATE FUNCTION other than TEMP")
        if any(isinstance(item, exp.LanguageProperty) for item in items):
            raise unsupported("A function in another language than SQL")
        name = tree.this.this.name.lower()
        if name in self._functions and not tree.args.get("replace"):
            raise invalid(f"Function {name} is already defined")
        self._functions[name] = tree

    def _inlined(self, tree: exp.Expr) -> exp.Expr:
        """Replace the calls of the script's functions by their bodies."""
        for _ in range(MAX_CALLS):
            called = [
                node
                for node in tree.find_all(exp.Anonymous)
                if str(node.this).lower() in self._functions
                and not isinstance(node.parent, exp.NetFunc)
                and not (isinstance(node.parent, exp.Dot) and node.parent.expression is node)
            ]
            if not called:
                return tree
            for node in called:
                node.replace(self._body(node))
        raise invalid("Recursive function calls are not allowed")

    def _body(self, node: exp.Anonymous) -> exp.Expr:
        function = self._functions[str(node.this).lower()]
        takes = function.this.expressions
        if len(takes) != len(node.expressions):
            raise ApiError(
                "invalidQuery",
                f"Number of arguments does not match for function {node.this}: it takes "
                f"{len(takes)}",
            )
        values: dict[str, exp.Expr] = {}
        for given, taken in zip(node.expressions, takes, strict=True):
            kind = taken.args["kind"]
            is_any = str(getattr(kind.this, "value", kind.this)) == "VARIANT"
            bare = given.copy()
            values[taken.name.lower()] = bare if is_any else exp.cast(bare, kind.copy())
        holder = exp.Paren(this=function.args["expression"].copy())
        for column in list(holder.find_all(exp.Column)):
            if not column.table and column.name.lower() in values:
                column.replace(exp.paren(values[column.name.lower()].copy()))
        returns = function.args["properties"].find(exp.ReturnsProperty)
        return holder if returns is None else exp.cast(holder, returns.this.copy())

    def _declare(self, tree: exp.Declare) -> None:
        for item in tree.expressions:
            names = item.this if isinstance(item.this, list) else [item.this]
            kind = item.args.get("kind")
            default = item.args.get("default")
            if kind is None and default is None:
                raise invalid("DECLARE needs a type or a DEFAULT")
            stored = stored_type(typed_column("variable", kind)) if kind else ""
            for name in names:
                if name.name.lower() in self._types:
                    raise invalid(f"Variable '{name.name}' redeclared")
                self._assign(name.name, default or exp.null(), stored)

    def _set(self, tree: exp.Set) -> None:
        for item in tree.expressions:
            pair = item.this
            left, right = pair.this, pair.expression
            names, values = [left], [right]
            if isinstance(left, exp.Tuple | exp.Paren):
                names = left.expressions if isinstance(left, exp.Tuple) else [left.this]
                values = _struct_fields(right)
            if len(names) != len(values):
                raise unsupported("SET of several variables to other than a list of as many values")
            for name, value in zip(names, values, strict=True):
                if name.name.lower() not in self._types:
                    raise ApiError("invalidQuery", f"Undeclared variable: {name.name}")
                self._assign(name.name, value, self._types[name.name.lower()])

    def _assign(self, name: str, value: exp.Expr, stored: str) -> None:
        """Store a variable's value in a table with one row, which preserves its type."""
        # Not alias_(): it names a subquery as a table, which is no name of a column.
        item = exp.Alias(this=value.copy(), alias=exp.to_identifier("v"))
        select = exp.Select(expressions=[item])
        sql = self.translated(select).sql
        wanted = f"CAST(v AS {stored})" if stored else "v"
        table = f"_var_{uuid.uuid4().hex}"
        self.cursor.execute(
            f"CREATE TEMP TABLE {table} AS SELECT {wanted} AS v FROM ({sql})"  # noqa: S608
        )
        self.cursor.execute(f"DESCRIBE {table}")
        found = self.cursor.fetchone()
        self._types[name.lower()] = stored or (str(found[1]) if found else "")
        mark = f"{VARIABLE}{name.lower()}"
        value_of = f"(SELECT v FROM {quoted(table)})"  # noqa: S608 - ours
        parameters = {**self.context.parameters, mark: value_of}
        variables = self.context.variables | {name.lower()}
        self.context = replace(self.context, parameters=parameters, variables=variables)


def _struct_fields(value: exp.Expr) -> list[exp.Expr]:
    """Return an expression for each field of a STRUCT: a list of values, or SELECT AS STRUCT."""
    if isinstance(value, exp.Tuple | exp.Struct):
        return list(value.expressions)
    select = value.unnest() if isinstance(value, exp.Subquery | exp.Paren) else value
    if not isinstance(select, exp.Select) or select.args.get("kind") != "STRUCT":
        return [value]
    if any(item.is_star for item in select.expressions):
        raise unsupported("SET of several variables to SELECT AS STRUCT *")
    fields: list[exp.Expr] = []
    for item in select.expressions:
        one = select.copy()
        one.set("kind", None)
        one.set("expressions", [item.copy()])
        fields.append(exp.Subquery(this=one))
    return fields
