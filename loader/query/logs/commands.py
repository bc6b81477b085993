"""What each command does with the rows that come to it.

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loader.query.errors import Code, QueryError
from loader.query.logs import syntax
from loader.query.logs.charts import charted, counted
from loader.query.logs.combining import combined, joined, looked_up
from loader.query.logs.patterns import group_names, only_group
from loader.query.logs.scope import Column, Scope, check_name, output_name
from loader.query.logs.terms import compiled, condition
from loader.query.logs.values import STRING, Type, Value, literal, text, typed_null

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.logs.compiler import Query
    from loader.query.logs.rows import Rows

MAX_INLINE = 400
"""Characters of an expression of `eval` that are written again where its field is used."""


def _search(query: Query, rows: Rows, command: syntax.Search) -> Rows:
    rows = query.uncut(rows)
    holds = condition(command.condition, rows.scope, query.now)
    return replace(rows, where=(*rows.where, holds), limit=command.limit)


def _eval(query: Query, rows: Rows, command: syntax.Eval) -> Rows:
    value = compiled(command.value, rows.scope, query.now)
    if value.type.is_null:
        value = Value(typed_null(STRING), STRING)
    column = Column(check_name(command.name), value)
    rows = replace(rows, scope=rows.scope.with_column(column))
    return query.closed(rows) if len(value.sql) > MAX_INLINE else rows


def _stats(query: Query, rows: Rows, command: syntax.Stats) -> Rows:
    return counted(query, query.uncut(rows), command)


def _timechart(query: Query, rows: Rows, command: syntax.Timechart) -> Rows:
    return charted(query, query.uncut(rows), command)


def _sort(query: Query, rows: Rows, command: syntax.Sort) -> Rows:
    rows = query.uncut(rows)
    order = []
    for key in command.keys:
        value = rows.scope.value(key.name)
        if value.type.repeated or value.type.kind in {"RECORD", "JSON", "JSON_TEXT", "GEOGRAPHY"}:
            what = f"expected a number, a text or a time to sort by, found a {value.type.shown}"
            raise QueryError(Code.TYPE, what, key.name.start, key.name.end)
        order.append((value.sql, key.descending))
    return replace(rows, order=tuple(order), limit=command.limit)


def _fields(_query: Query, rows: Rows, command: syntax.Fields) -> Rows:
    scope = rows.scope
    if command.removed:
        gone = {_whole(scope, each).key for each in command.names}
        columns = tuple(
            column
            for column in scope.columns
            if column.key not in gone and not (column.hidden and column.path.split(".")[0] in gone)
        )
        kept = replace(scope, columns=columns)
    else:
        kept = _chosen(scope, command.names)
    if not kept.visible:
        what = "expected at least one field that is left"
        raise QueryError(Code.ARGUMENT, what, command.start, command.end)
    return replace(rows, scope=kept)


def _chosen(scope: Scope, names: tuple[syntax.Name, ...]) -> Scope:
    """Return the fields of a list; a field of a record gets a column of its own."""
    columns: list[Column] = []
    for each in names:
        column = scope.find(each.text)
        if column is not None and not column.hidden:
            columns += [column] if column not in columns else []
            continue
        free = output_name(each, [other.name for other in columns])
        columns.append(Column(free, scope.value(each), each.text.lower()))
    kept = {column.key for column in columns}
    hidden = [
        column
        for column in scope.columns
        if column.hidden and column.path.split(".")[0] in kept and column not in columns
    ]
    return Scope((*columns, *hidden))


def _whole(scope: Scope, written: syntax.Name) -> Column:
    """Return the column of a name.

    Raises:
        QueryError: there is none, or it is a field of a record.
    """
    column = scope.find(written.text)
    if column is not None and not column.hidden:
        return column
    scope.value(written)  # raises the error that there is no such field
    what = f"expected a column, found a field within one: {written.text}"
    raise QueryError(Code.NOT_SUPPORTED, what, written.start, written.end)


def _rename(_query: Query, rows: Rows, command: syntax.Rename) -> Rows:
    scope = rows.scope
    for before, after in command.pairs:
        text_ = check_name(after)
        old = scope.find(before.text)
        column = Column(text_, scope.value(before))
        if old is None or old.hidden:  # a field of a record: the record stays as it is
            scope = scope.with_column(column)
            continue
        columns = (
            column if each is old else each
            for each in scope.columns
            if each is old or each.hidden or each.key != column.key
        )
        scope = replace(scope, columns=tuple(columns))
    return replace(rows, scope=scope)


def _limit(query: Query, rows: Rows, command: syntax.Limit) -> Rows:
    return replace(query.uncut(rows), limit=command.count, offset=command.offset)


def _drop(query: Query, rows: Rows, _command: syntax.Drop) -> Rows:
    return replace(query.uncut(rows), where=("FALSE",))


def _rex(query: Query, rows: Rows, command: syntax.Rex) -> Rows:
    pattern = str(command.pattern.value)
    try:
        names = group_names(pattern)
    except ValueError as exc:
        start, end = command.pattern.start, command.pattern.end
        raise QueryError(Code.ARGUMENT, f"rex: {exc}", start, end) from exc
    if not names:
        what = "rex: expected at least one group (?<name>…)"
        raise QueryError(Code.ARGUMENT, what, command.pattern.start, command.pattern.end)
    value = compiled(command.field, rows.scope, query.now)
    if not value.type.is_one("STRING", "NULL"):
        what = f"rex: expected a text, found a {value.type.shown}"
        raise QueryError(Code.TYPE, what, command.field.start, command.field.end)
    scope = rows.scope
    for group in names:
        sql = f"REGEXP_EXTRACT({text(value)}, {literal(only_group(pattern, group))})"
        scope = scope.with_column(Column(group, Value(sql, STRING)))
    rows = replace(rows, scope=scope)
    return query.closed(rows) if len(value.sql) + len(pattern) > MAX_INLINE else rows


def _lookup(query: Query, rows: Rows, command: syntax.Lookup) -> Rows:
    return looked_up(query, query.uncut(rows), command)


def _join(query: Query, rows: Rows, command: syntax.Join) -> Rows:
    return joined(query, query.uncut(rows), command)


def _union(query: Query, rows: Rows, command: syntax.Union) -> Rows:
    other = query.subquery(command.query)
    return combined(query, [rows, other], command)


def _parsejson(query: Query, rows: Rows, command: syntax.ParseJson) -> Rows:
    written = command.field
    value = compiled(written, rows.scope, query.now)
    if not value.type.is_one("STRING", "JSON", "JSON_TEXT", "NULL"):
        what = f"parsejson: expected a text, found a {value.type.shown}"
        raise QueryError(Code.TYPE, what, written.start, written.end)
    kind = value.type if value.type.kind == "JSON" else Type("JSON_TEXT")
    column = rows.scope.find(written.text)
    if column is not None and not column.hidden:
        parsed = replace(
            column, value=Value(text(value) if kind.kind != "JSON" else value.sql, kind)
        )
        return replace(rows, scope=rows.scope.with_column(parsed))
    taken = [each.name for each in rows.scope.visible]
    sql = value.sql if kind.kind == "JSON" else text(value)
    parsed = Column(output_name(written, taken), Value(sql, kind), written.text.lower())
    return replace(rows, scope=rows.scope.with_column(parsed))


COMMANDS: dict[type[syntax.Part], Callable[[Query, Rows, Any], Rows]] = {
    syntax.Search: _search,
    syntax.Eval: _eval,
    syntax.Stats: _stats,
    syntax.Timechart: _timechart,
    syntax.Sort: _sort,
    syntax.Fields: _fields,
    syntax.Rename: _rename,
    syntax.Limit: _limit,
    syntax.Drop: _drop,
    syntax.Rex: _rex,
    syntax.Lookup: _lookup,
    syntax.Join: _join,
    syntax.Union: _union,
    syntax.ParseJson: _parsejson,
}
