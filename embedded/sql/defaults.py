"""Default values of columns: which expressions may be one, and where INSERT writes them.

**Invariant:** a default is evaluated anew for each row that is inserted without the column.

Source: "Specify default column values".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.errors import ApiError, invalid
from embedded.sql.parsing import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedded.model.fields import Field

FUNCTIONS = (
    exp.CurrentDate,
    exp.CurrentDatetime,
    exp.CurrentTime,
    exp.CurrentTimestamp,
    exp.Uuid,
    exp.Rand,
    exp.SessionUser,
)
PARTS = (
    *(exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Paren, exp.Cast, exp.DataType),
    *(exp.Array, exp.Struct, exp.Tuple, exp.PropertyEQ, exp.Identifier),
)
"""What literals of any type are made of: DATE '2026-01-02' is a Cast."""


def check_defaults(fields: Iterable[Field]) -> None:
    """Check the default value of each column.

    Raises:
        ApiError: a default is neither a literal nor one of the allowed functions, or belongs to a
            field of a RECORD, or is NULL for a REQUIRED column.
    """
    for field in fields:
        _check_inside(field.fields, field.name)
        if not field.default:
            continue
        tree = default_of(field)
        for node in tree.walk():
            if not isinstance(node, (*FUNCTIONS, *PARTS)):
                raise invalid(
                    f"Invalid default value expression for column {field.name}: "
                    f"{field.default[:60]} is neither a literal nor an allowed function"
                )
        if field.mode == "REQUIRED" and isinstance(tree, exp.Null):
            raise invalid(f"The default value of the required column {field.name} cannot be NULL")


def _check_inside(fields: Iterable[Field], path: str) -> None:
    for field in fields:
        if field.default:
            raise invalid(
                f"Default value cannot be set for field {path}.{field.name}: only for a column"
            )
        _check_inside(field.fields, f"{path}.{field.name}")


def default_of(field: Field) -> exp.Expr:
    """Return the expression of a column's default; NULL if it has none.

    Raises:
        ApiError: it cannot be parsed.
    """
    select = parsed(f"SELECT {field.default or 'NULL'}")
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise ApiError("invalid", f"Invalid default value expression for column {field.name}")
    value: exp.Expr = select.expressions[0]
    return value


def fill_in(tree: exp.Insert, fields: tuple[Field, ...]) -> None:
    """Write the defaults of an INSERT: for columns that it does not name, and for the word DEFAULT.

    Args:
        tree: the statement; it is changed.
        fields: the columns of its target.
    """
    named = isinstance(tree.this, exp.Schema)
    names = [column.name for column in tree.this.expressions] if named else []
    known = {field.name.lower(): field for field in fields}
    columns = [known.get(name.lower()) for name in names] if named else list(fields)
    if isinstance(tree.expression, exp.Values):
        for row in tree.expression.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            for item, field in zip(items, columns, strict=False):
                if isinstance(item, exp.Var) and item.name.upper() == "DEFAULT" and field:
                    item.replace(default_of(field))
    omitted = [f for f in fields if f.default and f.name.lower() not in {n.lower() for n in names}]
    if not named or not omitted:
        return
    tree.this.set("expressions", [*tree.this.expressions, *(_name(field) for field in omitted)])
    if isinstance(tree.expression, exp.Values):
        for row in list(tree.expression.expressions):
            items = row.expressions if isinstance(row, exp.Tuple) else [row.copy()]
            row.replace(exp.Tuple(expressions=[*items, *map(default_of, omitted)]))
        return
    given = exp.Subquery(this=tree.expression.copy(), alias=exp.to_identifier("_given"))
    values = [exp.Alias(this=default_of(field), alias=_name(field)) for field in omitted]
    tree.set("expression", exp.select(exp.Star(), *values).from_(given))


def fill_in_merge(then: exp.Insert, fields: tuple[Field, ...]) -> None:
    """Write the defaults of the columns that an INSERT of a MERGE does not name."""
    named = {column.name.lower() for column in then.this.expressions}
    for field in fields:
        if field.default and field.name.lower() not in named:
            then.this.append("expressions", exp.column(_name(field)))
            then.expression.append("expressions", default_of(field))


def _name(field: Field) -> exp.Identifier:
    return exp.to_identifier(field.name, quoted=True)
