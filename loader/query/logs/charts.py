"""`stats` and `timechart`: groups of rows.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.aggregates import (
    UNORDERED,
    Group,
    aggregated,
    default_name,
    span_seconds,
    time_of,
)
from loader.query.logs.rows import Rows
from loader.query.logs.scope import Column, Scope, check_name, output_name
from loader.query.logs.spans import bucket
from loader.query.logs.syntax import Name
from loader.query.logs.values import STRING, Type, Value, bounded, name, text
from loader.query.question import TIME, Pivot

if TYPE_CHECKING:
    from loader.query.logs.compiler import Query
    from loader.query.logs.syntax import Aggregate, Stats, Timechart

NO_KEY = "null"
"""The column of the rows of a chart that have no key."""


def counted(query: Query, rows: Rows, command: Stats) -> Rows:
    """Compile `stats`: one row for each group."""
    keys: list[Column] = []
    for each in command.by:
        value = _key(rows.scope, each)
        free = output_name(each, [key.name for key in keys])
        keys.append(Column(free, value, each.text.lower()))
    seconds = ""
    if rows.begin is not None and rows.until is not None:
        seconds = repr((rows.until - rows.begin).total_seconds())
    group = Group(scope=rows.scope, now=query.now, time=time_of(rows.scope), seconds=seconds)
    return _grouped(query, rows, keys, _named(command.aggregates, group, keys))


def charted(query: Query, rows: Rows, command: Timechart) -> Rows:
    """Compile `timechart`: rows of (bucket, key, aggregates), in the order of time and key."""
    time = time_of(rows.scope)
    if not time:
        what = f"timechart: the rows have no {TIME} here"
        raise QueryError(Code.UNKNOWN_FIELD, what, command.start, command.end)
    start = bounded(Value(bucket(time, command.span), Type("TIMESTAMP")), command)
    keys = [Column(TIME, start)]
    if command.by is not None:
        key = text(_key(rows.scope, command.by))
        named = Value(f"IFNULL({key}, '{NO_KEY}')", STRING)
        keys.append(Column(output_name(command.by, [TIME]), named, command.by.text.lower()))
    seconds = span_seconds(command.span, start.sql)
    group = Group(scope=rows.scope, now=query.now, time=time, seconds=seconds)
    values = _named(command.aggregates, group, keys)
    timed = Rows(
        source=rows.source,
        scope=rows.scope,
        where=(*rows.where, f"{time} IS NOT NULL"),
        begin=rows.begin,
        until=rows.until,
    )
    made = _grouped(query, timed, keys, values)
    by = made.scope.visible[1].name if command.by is not None else ""
    pivot = Pivot(bucket=TIME, key=by, values=tuple(column.name for column in values))
    order = tuple((column.value.sql, False) for column in made.scope.visible[: len(keys)])
    return Rows(
        source=made.source,
        scope=made.scope,
        order=order,
        begin=rows.begin,
        until=rows.until,
        pivot=pivot,
    )


def _key(scope: Scope, written: Name) -> Value:
    value = bounded(scope.value(written), written)
    if value.type.repeated or value.type.kind in UNORDERED:
        what = f"expected a number, a text or a time to group by, found a {value.type.shown}"
        raise QueryError(Code.TYPE, what, written.start, written.end)
    if value.type.is_null:
        return Value(text(value), STRING)
    return value


def _named(aggregates: tuple[Aggregate, ...], group: Group, keys: list[Column]) -> list[Column]:
    """Compile aggregates, each under its own name."""
    taken = [key.name for key in keys]
    columns = []
    for each in aggregates:
        value = aggregated(each, group)
        wish = Name(each.start, each.end, (each.alias or default_name(each),))
        if each.alias:
            check_name(wish)
        if each.alias and each.alias.lower() in {other.lower() for other in taken}:
            what = f"expected another name than {each.alias}, which another column has"
            raise QueryError(Code.ARGUMENT, what, each.start, each.end)
        columns.append(Column(output_name(wish, taken), value))
        taken.append(columns[-1].name)
    return columns


def _grouped(query: Query, rows: Rows, keys: list[Column], values: list[Column]) -> Rows:
    columns = [*keys, *values]
    select = Rows(source=rows.source, scope=rows.scope, where=rows.where).select(
        [(column.value.sql, column.name) for column in columns], ordered=False
    )
    if keys:
        select += f"\nGROUP BY {', '.join(str(place) for place in range(1, len(keys) + 1))}"
    cte = query.named(select)
    scope = Scope(
        tuple(
            Column(column.name, Value(f"{cte}.{name(column.name)}", column.value.type), column.path)
            for column in columns
        )
    )
    return Rows(source=cte, scope=scope, begin=rows.begin, until=rows.until)
