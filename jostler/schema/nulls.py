"""Members that no column knows and whose value is null: they say nothing, so they are let pass.

A load job refuses them unless `ignoreUnknownValues` is set, and producers write them all the same:
every NDT7 result of M-Lab has `"ClientMeasurements": null`, which its table has never had.  With
that option set a load job drops whatever is unknown, so everything unknown that is *not* null must
have been refused before, and is.

**Invariant:** what is learned here only saves time; the answer stays the exact judge's.  Pure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jostler.schema.document import parse
from jostler.schema.fields import Field, Fields
from jostler.schema.flaw import Flaw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.schema.document import Object, Value

NULL = "NULL"
"""The type of a column that stands for a member which is always null; no table has it."""

Path = tuple[str, ...]

_PLAIN_RE = re.compile(r"[A-Za-z0-9_.-]{1,300}", re.ASCII)


def unknown_nulls(fields: Fields, document: bytes) -> set[Path]:
    """Return where a good document has members that are unknown and null.

    Args:
        fields: that the document was judged by.
        document: that was found good.

    Returns:
        For each such member the names of the columns that lead to it, then its own key.
    """
    value = parse(document)
    return set() if isinstance(value, Flaw) else set(_nulls(fields, value, ()))


def _nulls(fields: Fields, record: Object, path: Path) -> Iterator[Path]:
    columns = {field.key: field for field in fields}
    for key, value in record:
        column = columns.get(key.lower())
        if column is None:
            if _PLAIN_RE.fullmatch(key):
                yield (*path, key)
        elif column.type == "RECORD":
            for inner in _records(value):
                yield from _nulls(column.fields, inner, (*path, column.name))


def _records(value: Value) -> Iterator[Object]:
    if isinstance(value, tuple):
        yield value
    elif isinstance(value, list):
        yield from (element for element in value if isinstance(element, tuple))


def with_nulls(fields: Fields, paths: set[Path]) -> Fields:
    """Return the columns with one of type NULL at each path."""
    heads = {path[0] for path in paths if len(path) == 1}
    added = tuple(Field(name=head, type=NULL) for head in sorted(heads))
    return (
        *(
            replace(field, fields=with_nulls(field.fields, _below(paths, field.name)))
            for field in fields
        ),
        *added,
    )


def _below(paths: set[Path], name: str) -> set[Path]:
    return {path[1:] for path in paths if len(path) > 1 and path[0] == name}
