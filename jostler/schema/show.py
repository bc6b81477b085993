"""A table's columns as a tree of text for an operator, with warnings.

**Invariant:** no line of the tree is wider than 100 columns unless a name alone is.

Pure: returns text, prints nothing.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from jostler.schema.fields import Field, Fields, Mode, spelled
from jostler.schema.names import name_fault, twins

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH = 100
_DESCRIPTION_MIN = 24
_LISTED = 8
_MODES = {Mode.NULLABLE: "", Mode.REQUIRED: "required", Mode.REPEATED: "repeated"}
_MODE_WIDTH = len("required")


def render(fields: Fields) -> str:
    """Draw the columns as a tree with type, mode (where not NULLABLE) and description."""
    rows = [("", "column", "type", "mode", "description"), *_rows(fields, "", top=True)]
    tree_width = max(len(tree + name) for tree, name, *_ in rows)
    type_width = max(len(kind) for _, _, kind, *_ in rows)
    room = max(WIDTH - tree_width - type_width - _MODE_WIDTH - 6, _DESCRIPTION_MIN)
    lines = []
    for tree, name, kind, mode, description in rows:
        first, *more = textwrap.wrap(description, room) or [""]
        left = f"{tree + name:{tree_width}}  {kind:{type_width}}  {mode:{_MODE_WIDTH}}  "
        lines += [left + first, *(" " * len(left) + line for line in more)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _rows(
    fields: Fields, indent: str, *, top: bool = False
) -> Iterator[tuple[str, str, str, str, str]]:
    for field in fields:
        last = field is fields[-1]
        branch, below = ("", "") if top else ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield indent + branch, field.name, spelled(field), _MODES[field.mode], field.description
        yield from _rows(field.fields, indent + below)


def warnings(fields: Fields) -> list[str]:
    """List what BigQuery refuses and what may cause trouble later, each with its field's path."""
    paths = list(_paths(fields, ""))
    found = [f"{path}: {problem}" for path, field in paths for problem in _problems(field)]
    found += _twins(fields, "")
    bare = [path for path, field in paths if not field.description]
    if bare:
        rest = f" and {len(bare) - _LISTED} more" if len(bare) > _LISTED else ""
        found.append(f"no description: {', '.join(bare[:_LISTED])}{rest}")
    return found


def _paths(fields: Fields, prefix: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        yield prefix + field.name, field
        mark = "[]." if field.mode is Mode.REPEATED else "."
        yield from _paths(field.fields, prefix + field.name + mark)


def _problems(field: Field) -> Iterator[str]:
    if fault := name_fault(field.name):
        yield f"BigQuery refuses this: {fault}"
    if field.key.startswith("_field_"):
        yield "names that begin with _field_ clash with those BigQuery makes up"
    if field.mode is Mode.REQUIRED:
        yield "REQUIRED: a file without it is rejected, and it can never be added to a table later"
    if field.type == "RANGE":
        yield "RANGE: load jobs of JSON have been seen to fail on any value"


def _twins(fields: Fields, prefix: str) -> Iterator[str]:
    for name, known in twins([field.name for field in fields]):
        yield f"{prefix}{name}: BigQuery takes it for {known!r}, as it ignores case"
    for field in fields:
        yield from _twins(field.fields, f"{prefix}{field.name}.")
