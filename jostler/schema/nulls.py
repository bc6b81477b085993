"""Unknown members whose value is null: they carry no data, so they are accepted.

A load job refuses them unless `ignoreUnknownValues` is set, and producers write them all the same:
every NDT7 result of M-Lab has `"ClientMeasurements": null`, which its table has never had.  With
that option set a load job drops whatever is unknown, so everything unknown that is *not* null must
have been refused before, and is.

**Invariant:** what is learned here saves time and changes no answer.  Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jostler.schema.document import parse
from jostler.schema.fields import Field, Fields
from jostler.schema.flaw import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jostler.schema.document import Object, Value

NULL = "NULL"
"""The type of a column that stands for a member which is always null; no table has it."""

Path = tuple[str, ...]

_PLAIN_RE = re.compile(r"[A-Za-z0-9_.-]{1,300}", re.ASCII)


def unknown_nulls(fields: Fields, document: bytes, *, most: int) -> dict[Path, str]:
    """Return where a good document has members that are unknown and null.

    Args:
        fields: that the document was judged by.
        document: that was found good.
        most: places that are wanted; nothing is returned if the document has more.

    Returns:
        For each such member the names of the columns that lead to it, then its own key; and the
        key that stands before it, empty if it is the first.
    """
    value = parse(document)
    found: dict[Path, str] = {}
    if isinstance(value, Flaw):
        return found
    for path, before in _nulls(fields, value, (), {}):
        found[path] = before
        if len(found) > most:
            return {}
    return found


def spelled_apart(nulls: Mapping[Path, str], known: Iterable[Path]) -> dict[Path, str]:
    """Leave out what differs from another path, or a known one, by the case of letters only.

    Both would be columns of the fast judge, and it would not see that they are one name.
    """
    seen = {_folded(path) for path in known}
    found = {}
    for path, before in nulls.items():
        if _folded(path) not in seen:
            seen.add(_folded(path))
            found[path] = before
    return found


def _folded(path: Path) -> Path:
    return tuple(name.lower() for name in path)


def _nulls(
    fields: Fields, record: Object, path: Path, known: dict[int, dict[str, Field]]
) -> Iterator[tuple[Path, str]]:
    """Walk through a record; `known` has the columns of each RECORD that was met, by its id."""
    columns = known.get(id(fields))
    if columns is None:
        columns = known[id(fields)] = {field.key: field for field in fields}
    before = ""
    for key, value in record:
        before, last = key, before
        column = columns.get(key.lower())
        if column is None:
            if _PLAIN_RE.fullmatch(key):
                yield (*path, key), last
        elif column.type == "RECORD":
            for inner in _records(value):
                yield from _nulls(column.fields, inner, (*path, column.name), known)


def _records(value: Value) -> Iterator[Object]:
    if isinstance(value, tuple):
        yield value
    elif isinstance(value, list):
        yield from (element for element in value if isinstance(element, tuple))


def with_nulls(fields: Fields, nulls: Mapping[Path, str]) -> Fields:
    """Return the columns with one of type NULL at each path.

    The column stands where the documents have the member: then the fast judge writes a row with the
    same bytes as it read, and equal bytes are the fastest proof that no key came twice.
    """
    columns = [
        replace(field, fields=with_nulls(field.fields, _below(nulls, field.name)))
        for field in fields
    ]
    for path, before in nulls.items():
        if len(path) == 1:
            names = ["", *(column.name for column in columns)]
            at = names.index(before) if before in names else len(columns)
            columns.insert(at, Field(name=path[0], type=NULL))
    return tuple(columns)


def _below(nulls: Mapping[Path, str], name: str) -> dict[Path, str]:
    return {path[1:]: before for path, before in nulls.items() if len(path) > 1 and path[0] == name}
