"""Which fields there are at a place of a pipeline, and what a written name means.

**Invariant:** no two visible columns have names that differ in letter case alone or not at all, as
in BigQuery.

Pure.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.values import NOTHING, STRING, Type, Value, literal, name, type_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.schema.fields import Field
    from loader.query.logs.syntax import Name

RAW = "raw"
MAX_NAME = 128


@dataclass(frozen=True, slots=True)
class Column:
    """A field of the rows.

    Attributes:
        name: in the answer.
        value: its SQL over the rows as they come.
        path: how it may be written beside its name, in lower case: `archiver.node`.
        hidden: whether it can be asked for, and is not in the answer.
    """

    name: str
    value: Value
    path: str = ""
    hidden: bool = False

    @property
    def key(self) -> str:
        """The name as BigQuery compares it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Scope:
    """The fields in their order.

    Attributes:
        columns: the fields, hidden ones included.
        is_open: whether there is no table at all (`table missing?`), so that any field is null.
    """

    columns: tuple[Column, ...]
    is_open: bool = field(default=False)

    @property
    def visible(self) -> tuple[Column, ...]:
        """The fields of the answer."""
        return tuple(column for column in self.columns if not column.hidden)

    def find(self, written: str) -> Column | None:
        """Return the column of a name or path; a name goes before a path."""
        key = written.lower()
        named = (column for column in self.columns if column.key == key and not column.hidden)
        pathed = (column for column in self.columns if column.path == key)
        return next(named, None) or next(pathed, None)

    def with_column(self, column: Column) -> Scope:
        """Return the scope with a column in the place of one of its name, or behind all."""
        others = [each.key for each in self.columns if not each.hidden]
        if column.key not in others:
            return replace(self, columns=(*self.columns, column))
        columns = (
            column if each.key == column.key and not each.hidden else each for each in self.columns
        )
        return replace(self, columns=tuple(columns))

    def value(self, field_: Name) -> Value:
        """Return what a field is.

        Raises:
            QueryError: there is no such field.
        """
        for parts in range(len(field_.path), 0, -1):
            if column := self.find(".".join(field_.path[:parts])):
                return _inside(column.value, field_, parts)
        raw = self.find(RAW)
        if raw is not None and _has(raw.value.type, field_.path[0]):
            return _inside(raw.value, field_, 0)
        if self.is_open:
            return Value(NOTHING.sql, Type("NULL"))
        raise self._unknown(field_)

    def _unknown(self, field_: Name) -> QueryError:
        known = [column.name for column in self.visible]
        raw = self.find(RAW)
        known += [each.name for each in raw.value.type.fields] if raw is not None else []
        return _no_field(field_, field_.path[0], known)


def output_name(field_: Name, taken: Iterable[str]) -> str:
    """Return a name for the column of a field: its last part, if that is free, or all parts."""
    used = {each.lower() for each in taken}
    whole = "_".join(field_.path)
    for candidate in (field_.path[-1], whole, *(f"{whole}_{n}" for n in range(2, 1000))):
        if candidate.lower() not in used:
            return candidate
    raise AssertionError("a question has fewer than 1,000 columns of one name")


def check_name(field_: Name) -> str:
    """Return the name of a new field.

    Raises:
        QueryError: BigQuery has no columns of such a name.
    """
    text = field_.path[0]
    plain = all(char.isalnum() or char in "_- " for char in text) and text.isprintable()
    if len(text) > MAX_NAME or not plain or not (text[0].isalpha() or text[0] == "_"):
        what = f"expected letters, digits and `_` as the name of a field, at most {MAX_NAME}"
        raise QueryError(Code.ARGUMENT, what, field_.start, field_.end)
    return text


def _has(record: Type, part: str) -> bool:
    return any(each.key == part.lower() for each in record.fields)


def _inside(value: Value, field_: Name, at: int) -> Value:
    """Follow the parts of a path from its part `at` on."""
    sql, kind = value.sql, value.type
    for place in range(at, len(field_.path)):
        part = field_.path[place]
        if kind.kind in {"JSON", "JSON_TEXT"} and not kind.repeated:
            return _json(sql, field_.path[place:])
        if kind.kind != "RECORD":
            before = ".".join(field_.path[:place])
            what = f"`{before}` is a {kind.shown} and has no field `{part}`"
            raise QueryError(Code.UNKNOWN_FIELD, what, field_.start, field_.end)
        if kind.repeated:
            return _each(sql, kind, field_, place)
        found = _field(kind, part, field_)
        sql, kind = f"{sql}.{name(found.name)}", type_of(found)
    return Value(sql, kind)


def _field(record: Type, part: str, field_: Name) -> Field:
    found = next((each for each in record.fields if each.key == part.lower()), None)
    if found is None:
        raise _no_field(field_, part, [each.name for each in record.fields])
    return found


def _each(sql: str, kind: Type, field_: Name, at: int) -> Value:
    """Return a field of each element of a list of records, as a list without nulls."""
    item = "e"
    for part in field_.path[at:]:
        found = _field(Type("RECORD", fields=kind.fields), part, field_)
        kind = type_of(found)
        item += f".{name(found.name)}"
        if kind.repeated:
            what = "a list within a list (use SQL for it)"
            raise QueryError(Code.NOT_SUPPORTED, what, field_.start, field_.end)
    source = f"UNNEST({sql}) AS e WITH OFFSET AS o"
    items = f"SELECT {item} FROM {source} WHERE {item} IS NOT NULL ORDER BY o"  # noqa: S608
    return Value(f"ARRAY({items})", Type(kind.kind, repeated=True, fields=kind.fields))


def _json(sql: str, parts: tuple[str, ...]) -> Value:
    keys = "".join('."' + part.replace("\\", "\\\\").replace('"', '\\"') + '"' for part in parts)
    return Value(f"JSON_VALUE({sql}, {literal('$' + keys)})", STRING)


def _no_field(field_: Name, part: str, known: list[str]) -> QueryError:
    close = difflib.get_close_matches(part[:MAX_NAME], known[:1000], 3)
    some = ", ".join(close or known[:8])
    hint = f"; did you mean {some}?" if close else f"; there are {some} …" if some else ""
    what = f"no field `{part[:MAX_NAME]}` here{hint}"
    return QueryError(Code.UNKNOWN_FIELD, what, field_.start, field_.end)
