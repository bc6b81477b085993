"""Names in expressions: the column, the field or the row that they mean.

**Invariant:** a name is looked for in the nearest query first; one that two of its sources have is
an error.  Where there are groups, a column of the query must be one of their keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.places import Place, field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import struct
from loader.query.googlesql.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loader.query.googlesql.scopes import Column, Scope, Source


def column(place: Place, node: exp.Expr) -> Value:
    """Translate a name.

    Raises:
        QueryError: it means nothing here, or several things, or is not grouped.
    """
    assert isinstance(node, exp.Column)
    parts = node.parts
    names = [part for part in parts if isinstance(part, exp.Identifier)]
    if len(names) != len(parts) or not names:
        raise unsupported("this name", node)
    value = _named(place, names)
    if place.keys is not None and place.keys and value.sql in place.keys:
        return value
    if any(one.name.lower() == names[0].name.lower() for one in place.scope.aliases):
        return value
    if place.keys is not None and not _is_outer(place, names):
        raise refusal(Code.ARGUMENT, f"{node.name} is neither grouped nor aggregated", node)
    return value


def _is_outer(place: Place, names: list[exp.Identifier]) -> bool:
    scope, name = place.scope, names[0].name
    return not scope.columns(name) and scope.source(name) is None


def _named(place: Place, names: list[exp.Identifier]) -> Value:
    """Find a column by the parts of a name, and the fields that the rest of them name."""
    first, rest = names[0], names[1:]
    for scope in place.scope.outwards():
        value = _here(scope, first, rest)
        if value is not None:
            if scope is not place.scope:
                _correlate(place.scope, scope)
            found, left = value
            return _fields(place, found, left)
    raise refusal(Code.UNKNOWN_FIELD, _unknown(place, first), first)


def _unknown(place: Place, name: exp.Identifier) -> str:
    """Say which columns there are instead; a field of one of them was probably meant."""
    sources = [source for scope in place.scope.outwards() for source in scope.sources]
    message = f"{name.name!r} is no column here"
    if inside := " or ".join(_inside(sources, name)):
        return f"{message}; {inside} is one"
    known = {column.name for source in sources for column in source.columns}
    listed = ", ".join(sorted(filter(None, known | {source.alias for source in sources})))
    return f"{message}; there are {listed[:200]}" if listed else message


def _inside(sources: Iterable[Source], name: exp.Identifier) -> list[str]:
    """Return the fields of this name that STRUCT columns have."""
    columns = {column.name: column for source in sources for column in source.columns}
    return sorted(f"{key}.{name.name}" for key, column in columns.items() if _has(column, name))


def _correlate(inner: Scope, outer: Scope) -> None:
    for scope in inner.outwards():
        if scope is outer:
            return
        scope.correlated = True


def _here(
    scope: Scope, first: exp.Identifier, rest: list[exp.Identifier]
) -> tuple[Value, list[exp.Identifier]] | None:
    """Find the value of a name's first part in one scope, and which parts are left."""
    aliased = [one for one in scope.aliases if one.name.lower() == first.name.lower()]
    found: list[Column] = aliased or scope.columns(first.name)
    source = scope.source(first.name)
    if source is not None and source.alias and rest and not (found and _has(found[0], rest[0])):
        return _of_source(source, first, rest)
    if len(found) > 1:
        raise refusal(Code.UNKNOWN_FIELD, f"{first.name!r} is in several tables", first)
    if found:
        return found[0].value, rest
    if source is None:
        return None
    if rest:
        return _of_source(source, first, rest)
    if source.element is not None:
        return source.element, rest
    return _row(source), rest


def _row(source: Source) -> Value:
    """Return a row as a STRUCT: what the name of a table is among expressions."""
    columns = [column for column in source.columns if not column.hidden]
    parts = [f"'{column.name}', {column.value.sql}" for column in columns]
    kind = struct((column.name, column.value.type) for column in columns)
    return Value(f"named_struct({', '.join(parts)})", kind)


def _has(column: Column, name: exp.Identifier) -> bool:
    return field_of(column.value, name.name) is not None


def _of_source(
    source: Source, first: exp.Identifier, rest: list[exp.Identifier]
) -> tuple[Value, list[exp.Identifier]]:
    columns = source.named(rest[0].name)
    if len(columns) > 1:
        raise refusal(Code.UNKNOWN_FIELD, f"{rest[0].name!r} is ambiguous", rest[0])
    if columns:
        return columns[0].value, rest[1:]
    if source.element is not None:
        return source.element, rest
    inside = " or ".join(f"{first.name}.{field}" for field in _inside([source], rest[0]))
    message = f"{first.name} has no column {rest[0].name!r}" + (
        f"; {inside} is one" if inside else ""
    )
    raise refusal(Code.UNKNOWN_FIELD, message, rest[0])


def _fields(place: Place, value: Value, names: list[exp.Identifier]) -> Value:
    keys = place.keys or frozenset()
    for name in names:
        if value.sql in keys:
            place = Place(work=place.work, scope=place.scope)
            keys = frozenset()
        found = field_of(value, name.name)
        if found is None:
            if value.type.element is not None:
                message = f"{name.name!r} is a field of an ARRAY's elements: UNNEST it"
            else:
                message = f"{name.name!r} is no field of {value.type.kind}"
            raise refusal(Code.UNKNOWN_FIELD, message, name)
        value = found
    return value
