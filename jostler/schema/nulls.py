"""Unknown members whose value is null: they are accepted, because they carry no data.

A load job refuses them unless `ignoreUnknownValues` is set.  Services write them: every NDT7 result
of M-Lab has `"ClientMeasurements": null`, a field that its table does not have.  With that option a
load job drops every unknown member, so the judge must refuse unknown members that are *not* null.

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
"""The type of a column for a member that is always null; only the fast judge uses it."""

Path = tuple[str, ...]

_PLAIN_RE = re.compile(r"[A-Za-z0-9_.-]{1,300}", re.ASCII)


def unknown_nulls(fields: Fields, document: bytes, *, most: int) -> dict[Path, str]:
    """Return the paths of unknown null members in a good document.

    Args:
        fields: the columns by which the document was judged.
        document: a document that is good.
        most: the maximum number of paths; if the document has more, the result is empty.

    Returns:
        For each such member its path (the columns that lead to it, then its own key), and the key
        before it in the document, empty if it is the first.
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
    """Remove paths that differ from another path, or a known one, only in letter case.

    Both would become columns of the fast judge, which compares names exactly and would not notice a
    duplicate key.
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
    """Walk through a record; `known` caches the columns of each RECORD by its id."""
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
    """Return the columns with an added column of type NULL at each path.

    The column is added where documents have the member.  The fast judge then encodes a row to the
    same bytes as it read, which is its fastest proof that no key occurs twice.
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
