"""Convert the values that DML writes to their columns' form: STRUCTs, SET of a path, INSERT ROW.

**Invariant:** a STRUCT constructor gets the field names of its column, by position ("Conversion
rules: STRUCT").  SET of a path does not change the other fields.

Paths through arrays, and STRUCTs with another number of fields, are errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.columns import stored_type
from embedded.model.errors import ApiError, unsupported
from embedded.sql.defaults import fill_in, fill_in_merge

if TYPE_CHECKING:
    from embedded.model.fields import Field

Fields = tuple["Field", ...]


def convert_assignments(tree: exp.Expr, fields: Fields, source: Fields) -> None:
    """Convert every value that a statement writes to the form of its column.

    Args:
        tree: an INSERT, UPDATE or MERGE, before `rewritten`.
        fields: the columns of its target.
        source: the columns of a MERGE's source if that is a table; else ().

    Raises:
        ApiError: a value does not have the form of its column, or there is no such column.
    """
    if isinstance(tree, exp.Insert):
        _insert(tree, fields)
    elif isinstance(tree, exp.Update):
        tree.set("expressions", _assigned(tree.expressions, fields, tree.this.alias_or_name))
    elif isinstance(tree, exp.Merge):
        for when in tree.args["whens"].expressions:
            then = when.args["then"]
            if isinstance(then, exp.Update):
                alias = tree.this.alias_or_name
                then.set("expressions", _assigned(then.expressions, fields, alias))
            elif isinstance(then, exp.Insert):
                _insert_of_merge(tree, then, fields, source)


def _insert(tree: exp.Insert, fields: Fields) -> None:
    fill_in(tree, fields)
    columns = fields
    if isinstance(tree.this, exp.Schema):
        columns = tuple(_field(column.name, fields) for column in tree.this.expressions)
    body = tree.expression
    if isinstance(body, exp.Values):
        for row in body.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            if len(items) != len(columns):
                raise ApiError(
                    "invalidQuery",
                    f"Inserted row has wrong column count; Has {len(items)}, expected "
                    f"{len(columns)}",
                )
            if isinstance(row, exp.Tuple):
                row.set("expressions", _named(items, columns))
    elif isinstance(body, exp.Select) and not any(item.is_star for item in body.expressions):
        body.set("expressions", _named(body.expressions, columns))


def _named(items: list[exp.Expr], columns: Fields) -> list[exp.Expr]:
    named = [_like(item, field) for item, field in zip(items, columns, strict=False)]
    return [*named, *items[len(named) :]]


def _field(name: str, fields: Fields) -> Field:
    for field in fields:
        if field.name.lower() == name.lower():
            return field
    raise ApiError("invalidQuery", f"Column {name} is not present in the table")


def _like(node: exp.Expr, field: Field, *, item: bool = False) -> exp.Expr:
    """Give the fields of a STRUCT constructor the names of the column's fields."""
    if isinstance(node, exp.Alias):
        node.set("this", _like(node.this, field))
        return node
    if field.repeated and isinstance(node, exp.Array) and not node.expressions and not item:
        return exp.cast(node, stored_type(field), dialect="duckdb")
    if field.repeated and not item:
        if isinstance(node, exp.Array) and not any(
            isinstance(part, exp.Query) for part in node.expressions
        ):
            node.set("expressions", [_like(part, field, item=True) for part in node.expressions])
        return node
    if field.type != "RECORD" or not isinstance(node, exp.Struct | exp.Tuple):
        return node
    values = [
        part.expression if isinstance(part, exp.PropertyEQ) else part for part in node.expressions
    ]
    if len(values) != len(field.fields):
        raise ApiError(
            "invalidQuery",
            f"Value has type STRUCT with {len(values)} fields which cannot be inserted into column "
            f"{field.name}, which has {len(field.fields)}",
        )
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(
                this=exp.to_identifier(sub.name, quoted=True), expression=_like(value, sub)
            )
            for value, sub in zip(values, field.fields, strict=True)
        ]
    )


def _assigned(pairs: list[exp.Expr], fields: Fields, alias: str) -> list[exp.Expr]:
    """Convert assignments to paths into one assignment per column."""
    found: dict[str, list[tuple[list[str], exp.Expr]]] = {}
    for pair in pairs:
        path = _path(pair.this, fields, alias)
        found.setdefault(path[0].lower(), []).append((path[1:], pair.expression))
    after: list[exp.Expr] = []
    for name, changes in found.items():
        field = _field(name, fields)
        base = exp.column(field.name, table=alias, quoted=True)
        value = _changed(field, base, changes)
        after.append(exp.EQ(this=exp.column(field.name, quoted=True), expression=value))
    return after


def _path(node: exp.Expr, fields: Fields, alias: str) -> list[str]:
    if not isinstance(node, exp.Column | exp.Dot):
        raise unsupported(f"SET {node.sql('bigquery')[:60]}")
    names = [part.name for part in node.parts]
    known = {field.name.lower() for field in fields}
    if names[0].lower() not in known and len(names) > 1 and names[0].lower() == alias.lower():
        return names[1:]
    return names


def _changed(field: Field, base: exp.Expr, changes: list[tuple[list[str], exp.Expr]]) -> exp.Expr:
    """Return the expression of a column's value with some of its fields changed."""
    whole = [value for path, value in changes if not path]
    if whole:
        if len(changes) > 1:
            raise ApiError("invalidQuery", f"Update item {field.name} assigned more than once")
        return _like(whole[0], field)
    if field.type != "RECORD" or field.repeated:
        raise ApiError("invalidQuery", f"Cannot access field {changes[0][0][0]} of {field.name}")
    for path, _ in changes:
        _field(path[0], field.fields)
    parts = []
    for sub in field.fields:
        inner: exp.Expr = exp.Dot(
            this=base.copy(), expression=exp.to_identifier(sub.name, quoted=True)
        )
        mine = [(path[1:], value) for path, value in changes if path[0].lower() == sub.name.lower()]
        value = _changed(sub, inner, mine) if mine else inner
        name = exp.to_identifier(sub.name, quoted=True)
        parts.append(exp.PropertyEQ(this=name, expression=value))
    return exp.Struct(expressions=parts)


def _insert_of_merge(tree: exp.Merge, then: exp.Insert, fields: Fields, source: Fields) -> None:
    if isinstance(then.this, exp.Var) and then.this.name.upper() == "ROW":
        if not source:
            raise unsupported("MERGE with INSERT ROW from a source that is no table")
        names = [field.name for field in fields]
        alias = tree.args["using"].alias_or_name
        columns = [exp.column(name, quoted=True) for name in names]
        values = [exp.column(_field(name, source).name, table=alias, quoted=True) for name in names]
        then.set("this", exp.Tuple(expressions=columns))
        then.set("expression", exp.Tuple(expressions=values))
        return
    if isinstance(then.this, exp.Tuple) and isinstance(then.expression, exp.Tuple):
        fill_in_merge(then, fields)
        into = tuple(_field(column.name, fields) for column in then.this.expressions)
        then.expression.set("expressions", _named(then.expression.expressions, into))
