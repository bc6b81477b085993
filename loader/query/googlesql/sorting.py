"""Keys of ORDER BY: the columns that they name by a number, and how Spark sorts by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import sorted_by
from loader.query.googlesql.positions import refusal

if TYPE_CHECKING:
    from loader.query.googlesql.scopes import Column
    from loader.query.googlesql.values import Value


def ordinal(node: exp.Expr, columns: list[Column]) -> Value | None:
    """Return the column of a place, of `ORDER BY 1`.

    Raises:
        QueryError: there is no such place.
    """
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    digits = str(node.this)
    if not digits.isdigit() or not 1 <= int(digits) <= len(columns):
        raise refusal(Code.ARGUMENT, f"there is no column {digits}", node)
    return columns[int(digits) - 1].value


def order_keys(value: Value, item: exp.Expr) -> list[str]:
    """Return Spark's keys for an item of ORDER BY."""
    return sorted_by(
        value,
        item,
        descending=bool(item.args.get("desc")),
        nulls_first=bool(item.args.get("nulls_first")),
    )


def split_key(key: str) -> tuple[str, str]:
    """Return the value of a key of ORDER BY and its way, such as `ASC NULLS FIRST`."""
    value, way, _, nulls = key.rsplit(" ", 3)
    return value, f"{way} NULLS {nulls}"
