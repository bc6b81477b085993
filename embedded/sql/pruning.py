"""Check that a query has the partition filters that its tables require.

**Invariant:** a query reads a table with require_partition_filter only with a condition on the
partition column that could exclude partitions.

Otherwise the query is an error with BigQuery's message ("Managing partitioned tables").  A
condition counts if it compares the bare column, in a WHERE or an ON clause, also around a view or
subquery that returns the column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedded.store.catalog import Table

COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
# Functions of the column with which BigQuery can still exclude partitions.
THROUGH = (exp.Cast, exp.TimestampTrunc, exp.DateTrunc, exp.Date, exp.Paren, exp.TsOrDsToDate)


def require_filters(tree: exp.Expr, tables: dict[str, Table]) -> None:
    """Check that a statement has the partition filters that its tables require.

    Args:
        tree: the statement; `Resolver` has marked its tables.
        tables: the tables, by the marks.

    Raises:
        ApiError: a filter is missing.
    """
    wanting = {key for key, table in tables.items() if table.requires_filter}
    for node in list(tree.find_all(exp.Table)):
        key = node.meta.get("table")
        if key in wanting and not _is_target_of_insert(node):
            table = tables[key]
            column = table.partition_column.lower()
            if not _filtered(node, column):
                raise ApiError(
                    "invalidQuery",
                    f"Cannot query over table '{str(table.ref).replace(':', '.')}' without a "
                    f"filter over column(s) '{table.partition_column}' that can be used for "
                    "partition elimination",
                )


def _is_target_of_insert(node: exp.Table) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Schema):
        parent = parent.parent
    return isinstance(parent, exp.Insert | exp.TruncateTable)


def _filtered(source: exp.Expr, column: str) -> bool:
    """Say whether the SELECT around `source`, or an outer one, filters on its partition column."""
    select = source.find_ancestor(exp.Select, exp.Delete, exp.Update, exp.Merge)
    if select is None:
        return False
    name = source.alias_or_name.lower()
    if any(_eliminates(part, name, column) for part in _conditions(select)):
        return True
    if not isinstance(select, exp.Select):
        return False
    outer_name = _passed_on(select, name, column)
    return (
        bool(outer_name)
        and all(_filtered(use, outer_name) for use in _uses(select))
        and any(True for _ in _uses(select))
    )


def _conditions(node: exp.Expr) -> Iterator[exp.Expr]:
    where = node.args.get("where")
    if where is not None:
        yield where.this
    for join in node.args.get("joins") or []:
        if join.args.get("on") is not None:
            yield join.args["on"]
    if isinstance(node, exp.Merge) and node.args.get("on") is not None:
        yield node.args["on"]


def _eliminates(part: exp.Expr, name: str, column: str) -> bool:
    if isinstance(part, exp.Paren):
        return _eliminates(part.this, name, column)
    if isinstance(part, exp.And):
        return _eliminates(part.left, name, column) or _eliminates(part.right, name, column)
    if isinstance(part, exp.Or):
        return _eliminates(part.left, name, column) and _eliminates(part.right, name, column)
    if isinstance(part, COMPARISONS):
        left, right = part.left, part.right
        return (_is_column(left, name, column) and _is_fixed(right)) or (
            _is_column(right, name, column) and _is_fixed(left)
        )
    if isinstance(part, exp.Between | exp.In | exp.Is):
        others = [node for key, node in part.args.items() if key != "this"]
        return _is_column(part.this, name, column) and all(map(_is_fixed, others))
    return False


def _is_column(node: exp.Expr, name: str, column: str) -> bool:
    while isinstance(node, THROUGH):
        node = node.this
    if not isinstance(node, exp.Column) or node.name.lower() != column:
        return False
    return not node.table or (node.table.lower() == name and not node.db)


def _is_fixed(node: object) -> bool:
    """Say whether an operand is the same for all rows; a subquery counts as constant."""
    items = node if isinstance(node, list) else [node]
    return all(
        not isinstance(item, exp.Expr)
        or isinstance(item, exp.Subquery | exp.Query)
        or item.find(exp.Column) is None
        for item in items
    )


def _passed_on(select: exp.Select, name: str, column: str) -> str:
    """Return the name that the column has in a SELECT's result; "" if it is not there."""
    for item in select.expressions:
        bare = item.this if isinstance(item, exp.Alias) else item
        if isinstance(bare, exp.Star) or (isinstance(bare, exp.Column) and bare.is_star):
            star = bare if isinstance(bare, exp.Star) else bare.this
            left_out = star.args.get("except_") or star.args.get("except") or []
            if column not in {node.name.lower() for node in left_out}:
                return column
        elif _is_column(bare, name, column) and isinstance(bare, exp.Column):
            return str(item.alias_or_name).lower()
    return ""


def _uses(select: exp.Select) -> list[exp.Expr]:
    """Return the nodes that read the rows of a subquery or CTE."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.SetOperation):
        node = node.parent
    holder = node.parent
    if isinstance(holder, exp.Subquery):
        return [holder]
    if isinstance(holder, exp.CTE):
        body = holder.find_ancestor(exp.Query)
        alias = holder.alias.lower()
        return [
            table
            for table in (body.find_all(exp.Table) if body is not None else [])
            if not table.db and table.name.lower() == alias
        ]
    return []
