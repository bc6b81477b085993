"""The types that clauses allow: WHERE, GROUP BY, ORDER BY, DISTINCT, set operations, UNNEST.

**Invariant:** an expression is refused only if none of its possible types (`kinds`) is allowed; the
message is BigQuery's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.kinds import may_be
from embedded.model.errors import ApiError
from embedded.sql.type_checks import BOOL, check_ordered, types_text

if TYPE_CHECKING:
    from collections.abc import Callable


def _select(node: exp.Expr) -> None:
    if node.args.get("distinct"):
        for item in node.expressions:
            _grouped(item, "cannot be used in SELECT DISTINCT")


def _group(node: exp.Expr) -> None:
    for item in node.expressions:
        _grouped(_output(item), "cannot be used in GROUP BY")


def _distinct(node: exp.Expr) -> None:
    if not isinstance(node.parent, exp.Select):
        for item in node.expressions:
            _grouped(item, "cannot be used with DISTINCT")


def _set_operation(node: exp.Expr) -> None:
    if not node.args.get("distinct"):
        return
    for side in (node.this, node.expression):
        for item in side.selects if isinstance(side, exp.Query) else []:
            _grouped(item, "cannot be used in a set operation with DISTINCT")


def _order(node: exp.Expr) -> None:
    check_ordered(_output(node.this), "ORDER BY an expression of type")


def _condition(node: exp.Expr) -> None:
    kinds = may_be(node.this)
    if kinds and not kinds & BOOL:
        raise ApiError(
            "invalidQuery",
            f"{node.key.upper()} clause should return type BOOL, "
            f"but returns {types_text(node.this)}",
        )


def _unnest(node: exp.Expr) -> None:
    if not isinstance(node.parent, exp.From | exp.Join | exp.In | exp.Table):
        raise ApiError("invalidQuery", "Unexpected keyword UNNEST")


def _output(item: exp.Expr) -> exp.Expr:
    """Return the SELECT item that a number in GROUP BY or ORDER BY refers to."""
    select = item.find_ancestor(exp.Select)
    if isinstance(item, exp.Literal) and item.is_int and select is not None:
        place = int(item.name) - 1
        if 0 <= place < len(select.expressions):
            found: exp.Expr = select.expressions[place]
            return found
    return item


def _grouped(item: exp.Expr, problem: str) -> None:
    kinds = may_be(item)
    if kinds and all(kind.startswith(("ARRAY", "JSON")) for kind in kinds):
        raise ApiError("invalidQuery", f"A column of type {types_text(item)} {problem}")


CLAUSES: dict[type[exp.Expr], Callable[[exp.Expr], None]] = {
    exp.Select: _select,
    exp.Group: _group,
    exp.Distinct: _distinct,
    **dict.fromkeys((exp.Union, exp.Except, exp.Intersect), _set_operation),
    exp.Ordered: _order,
    **dict.fromkeys((exp.Where, exp.Having, exp.Qualify), _condition),
    exp.Unnest: _unnest,
}
