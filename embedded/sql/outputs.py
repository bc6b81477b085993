"""Give the columns of a query the names that BigQuery gives them, and resolve aliases.

**Invariant:** every column of the outermost SELECT has its name in BigQuery.  In GROUP BY and ORDER
BY an alias of the SELECT list means that alias, also if a column has the same name.

An alias in QUALIFY that hides a column of its own expression is an error.
"""

from __future__ import annotations

from sqlglot import exp

from embedded.model.errors import unsupported


def name_outputs(tree: exp.Expr) -> None:
    """Name columns without an alias: a path by its last part, others `f0_`, `f1_`, …."""
    for select in _outermost(tree):
        anonymous = 0
        named = []
        for item in select.expressions:
            if isinstance(item, exp.Alias | exp.Star) or item.is_star:
                named.append(item)
                continue
            name = _path_name(item)
            if not name:
                name = f"f{anonymous}_"
                anonymous += 1
            named.append(exp.alias_(item, name, quoted=True))
        if not select.args.get("kind"):
            select.set("expressions", named)


def _outermost(tree: exp.Expr) -> list[exp.Select]:
    if isinstance(tree, exp.Select):
        return [tree]
    if isinstance(tree, exp.SetOperation):
        return _outermost(tree.left) + _outermost(tree.right)
    if isinstance(tree, exp.Subquery):
        return _outermost(tree.this)
    return []


def _path_name(item: exp.Expr) -> str:
    if isinstance(item, exp.Column):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    return ""


def resolve_aliases(tree: exp.Expr) -> None:
    """Replace an alias by its expression where GoogleSQL means the alias and DuckDB a column.

    `SELECT DATE_TRUNC(date, MONTH) AS date … GROUP BY date` groups by month in BigQuery ("Query
    syntax: alias visibility") and by day in DuckDB.

    Raises:
        ApiError: it is not known which of the two BigQuery means.
    """
    for select in list(tree.find_all(exp.Select)):
        aliases = {
            item.alias.lower(): item.this
            for item in select.expressions
            if isinstance(item, exp.Alias) and not _is_itself(item)
        }
        for clause in ("group", "order"):
            if aliases and select.args.get(clause) is not None:
                _settle(select.args[clause], select, aliases, clause)
        if select.args.get("qualify") is not None:
            _check_qualify(select, aliases)


def _is_itself(item: exp.Alias) -> bool:
    return isinstance(item.this, exp.Column) and item.this.name.lower() == item.alias.lower()


def _settle(clause: exp.Expr, select: exp.Select, aliases: dict[str, exp.Expr], name: str) -> None:
    for column in list(clause.find_all(exp.Column)):
        value = aliases.get(column.name.lower())
        if value is None or column.table or column.find_ancestor(exp.Select) is not select:
            continue
        if name == "order" and isinstance(column.parent, exp.Ordered):
            continue  # only a name: DuckDB means the alias, too
        column.replace(exp.paren(value.copy()) if name != "group" else value.copy())


def _check_qualify(select: exp.Select, aliases: dict[str, exp.Expr]) -> None:
    hiding = {
        name
        for name, value in aliases.items()
        if any(column.name.lower() == name for column in value.find_all(exp.Column))
    }
    for column in select.args["qualify"].find_all(exp.Column):
        if not column.table and column.name.lower() in hiding:
            raise unsupported(f"QUALIFY on {column.name}, which is a column and an alias of it")
