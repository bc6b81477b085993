"""The items of SELECT: expressions, and the columns that a `*` stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.places import field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.scopes import Column

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place


@dataclass(slots=True)
class Item:
    """An item of SELECT: an expression that is not translated yet, or a column of `*`."""

    name: str
    node: exp.Expr
    column: Column | None = None


def items_of(place: Place, select: exp.Select) -> list[Item]:
    """List the items of SELECT, with each `*` as its columns.

    Raises:
        QueryError: `*` names what is not there.
    """
    items: list[Item] = []
    for node in select.expressions:
        star = node.this if isinstance(node, exp.Column | exp.Dot) else node
        star = node.expression if isinstance(node, exp.Dot) else star
        if isinstance(star, exp.Star):
            items += _star(place, node, star)
        else:
            name = node.alias if isinstance(node, exp.Alias) else _own_name(node)
            items.append(Item(name, node.this if isinstance(node, exp.Alias) else node))
    if not items:
        raise refusal(Code.SYNTAX, "SELECT has no columns", select)
    return items


def _star(place: Place, node: exp.Expr, star: exp.Star) -> list[Item]:
    for key, value in star.args.items():
        if value and key not in {"except_", "except", "replace"}:
            raise unsupported(f"* with {key.upper()}", node)
    columns = _star_columns(place, node)
    if any(column.hidden for source in place.scope.sources for column in source.columns):
        place.work.stars.append((node, columns))
    left_out = star.args.get("except_") or star.args.get("except") or []
    for name in left_out:
        kept = [column for column in columns if column.name.lower() != name.name.lower()]
        if len(kept) == len(columns):
            raise refusal(Code.UNKNOWN_FIELD, f"* has no column {name.name!r}", name)
        columns = kept
    replaced = {}
    for item in star.args.get("replace") or []:
        if not any(column.name.lower() == item.alias.lower() for column in columns):
            raise refusal(Code.UNKNOWN_FIELD, f"* has no column {item.alias!r}", item)
        replaced[item.alias.lower()] = item.this
    return [
        Item(column.name, replaced[column.name.lower()])
        if column.name.lower() in replaced
        else Item(column.name, node, column)
        for column in columns
    ]


def _star_columns(place: Place, node: exp.Expr) -> list[Column]:
    if isinstance(node, exp.Star):
        if not place.scope.sources:
            raise refusal(Code.ARGUMENT, "* needs FROM", node)
        return place.scope.all_columns()
    if isinstance(node, exp.Column) and len(node.parts) == 2:  # noqa: PLR2004 - t.*
        source = place.scope.source(node.parts[0].name)
        if source is not None:
            return [column for column in source.columns if not column.hidden]
    if isinstance(node, exp.Dot):
        inner = node.this
    else:
        assert isinstance(node, exp.Column)
        inner = _column_of([part.copy() for part in node.parts[:-1]])
    value = place.raw(inner)
    if value.type.kind != "STRUCT":
        raise refusal(Code.TYPE, f".* needs a STRUCT, not {value.type}", node)
    found = []
    for name, _ in value.type.fields:
        sub = field_of(value, name)
        assert sub is not None
        found.append(Column(name, sub))
    return found


def _column_of(parts: list[exp.Expr]) -> exp.Expr:
    """Return the column, or field of a column, that a name's parts name."""
    if len(parts) == 1:
        return exp.Column(this=parts[0])
    return exp.Dot(this=_column_of(parts[:-1]), expression=parts[-1])


def _own_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Column | exp.Dot):
        last = node.parts[-1] if isinstance(node, exp.Column) else node.expression
        return last.name if isinstance(last, exp.Identifier) else ""
    return ""
