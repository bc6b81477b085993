"""`lookup`, `join` and `union`: rows with those of other tables.

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.rows import Rows
from loader.query.logs.scope import Column, Scope, check_name
from loader.query.logs.sources import quoted, range_of, unknown_table
from loader.query.logs.unions import conformed, together
from loader.query.logs.values import Type, Value, common, converted, name, text, type_of

if TYPE_CHECKING:
    from jostler.schema.fields import Fields
    from loader.query.logs.compiler import Query
    from loader.query.logs.syntax import Join, Lookup, Name, Part

LOOKUPS = "lookups"


def combined(query: Query, several: list[Rows], part: Part) -> Rows:
    """Return the rows of several sources behind one another, with the columns of all.

    Raises:
        QueryError: a column has types that do not go together.
    """
    if len(several) == 1:
        return several[0]
    columns = _together([rows.scope for rows in several], part)
    selects = []
    for rows in several:
        own = {_column_key(column): column for column in rows.scope.columns}
        listed = []
        for number, column in enumerate(columns):
            found = own.get(_column_key(column))
            value = found.value if found is not None else None
            listed.append((conformed(value, column.value.type), _place(column, number)))
        select = rows.select(listed, ordered=False)
        selects.append(f"({select})" if rows.is_cut else select)
    cte = query.named("\nUNION ALL\n".join(selects))
    scope = Scope(
        tuple(
            replace(column, value=Value(f"{cte}.{name(_place(column, n))}", column.value.type))
            for n, column in enumerate(columns)
        ),
        is_open=any(rows.scope.is_open for rows in several),
    )
    begin, until = range_of(several)
    return Rows(source=cte, scope=scope, begin=begin, until=until)


def _column_key(column: Column) -> tuple[str, bool]:
    return (column.path if column.hidden else column.key, column.hidden)


def _place(column: Column, number: int) -> str:
    return f"_hidden{number}" if column.hidden else column.name


def _together(scopes: list[Scope], part: Part) -> list[Column]:
    found: dict[tuple[str, bool], Column] = {}
    for scope in scopes:
        for column in scope.columns:
            before = found.setdefault(_column_key(column), column)
            kind = together(before.value.type, column.value.type)
            if kind is None:
                types = f"{before.value.type.shown} and {column.value.type.shown}"
                what = f"the field {column.name} has types that do not go together: {types}"
                raise QueryError(Code.TYPE, what, part.start, part.end)
            path = before.path if before.path == column.path else ""
            made = replace(before, value=Value(before.value.sql, kind), path=path)
            found[_column_key(column)] = made
    return list(found.values())


def looked_up(query: Query, rows: Rows, command: Lookup) -> Rows:
    """Compile `lookup`: columns of a table, null where it has no such key."""
    table = f"{LOOKUPS}.{command.table.text}"
    columns = query.shapes.columns(table)
    if columns is None:
        part = command.table
        raise unknown_table(table, part.start, part.end, query.shapes)
    alias = f"l{len(rows.source)}"
    key = _lookup_column(columns, command.key)
    field, wanted = _comparable(rows.scope.value(command.field), key, command.field)
    selected = [f"{wanted} AS `key`"]
    scope = rows.scope
    for number, (column, after) in enumerate(command.outputs):
        value = _lookup_column(columns, column)
        # One row for each key, or a repeated key in the file would repeat rows.
        selected.append(f"MIN({value.sql}) AS `out{number}`")
        out = Column(check_name(after), Value(f"{alias}.`out{number}`", value.type))
        scope = scope.with_column(out)
    inner = f"SELECT {', '.join(selected)} FROM {quoted(table)} AS t GROUP BY 1"  # noqa: S608
    source = f"{rows.source}\nLEFT JOIN ({inner}) AS {alias} ON {field} = {alias}.`key`"
    return replace(rows, source=source, scope=scope)


def _lookup_column(columns: Fields, written: Name) -> Value:
    key = written.text.lower()
    found = next((field for field in columns if field.key == key), None)
    if found is None:
        known = ", ".join(field.name for field in columns)
        what = f"the lookup table has no column {written.text}; there are: {known}"
        raise QueryError(Code.UNKNOWN_FIELD, what, written.start, written.end)
    return Value(f"t.{name(found.name)}", type_of(found))


def _comparable(left: Value, right: Value, written: Name) -> tuple[str, str]:
    """Return two values as the type that they have together, or else as texts.

    Raises:
        QueryError: one of them cannot be compared.
    """
    for value in (left, right):
        if value.type.repeated or value.type.kind in {"RECORD", "JSON", "JSON_TEXT", "GEOGRAPHY"}:
            what = f"expected a number, a text or a time to compare, found a {value.type.shown}"
            raise QueryError(Code.TYPE, what, written.start, written.end)
    kind = common([left.type, right.type])
    if kind is None or kind.is_null:
        return text(left), text(right)
    return converted(left, kind), converted(right, kind)


def joined(query: Query, rows: Rows, command: Join) -> Rows:
    """Compile `join`: rows with those of a subquery that have the same keys.

    Raises:
        QueryError: both sides have a column that is no key.
    """
    other = query.subquery(command.query)
    pairs = [
        _comparable(rows.scope.value(key), other.scope.value(key), key) for key in command.keys
    ]
    keyed = [
        Column(f"_key{number}", Value(right, Type("STRING")), f"join key {number}", hidden=True)
        for number, (_, right) in enumerate(pairs)
    ]
    names = {found.key for key in command.keys if (found := other.scope.find(key.text))}
    others = tuple(column for column in other.scope.visible if column.key not in names)
    _check_apart(rows.scope, others, command)
    made = query.closed(replace(other, scope=Scope((*others, *keyed))))
    conditions = [
        f"{left} = {right.value.sql}"
        for (left, _), right in zip(pairs, made.scope.columns[len(others) :], strict=True)
    ]
    side = "LEFT JOIN" if command.left else "JOIN"
    source = f"{rows.source}\n{side} {made.source} ON {' AND '.join(conditions)}"
    scope = replace(rows.scope, columns=(*rows.scope.columns, *made.scope.visible))
    return replace(rows, source=source, scope=scope)


def _check_apart(scope: Scope, others: tuple[Column, ...], command: Join) -> None:
    own = {column.key for column in scope.visible}
    both = [column.name for column in others if column.key in own]
    if both:
        what = (
            f"both sides of the join have {', '.join(both)}: use fields or rename in the subquery"
        )
        raise QueryError(Code.ARGUMENT, what, command.query.start, command.query.end)
