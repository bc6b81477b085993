"""Infer a first datatype schema from sample documents, for a person to correct.

**Invariant:** if there are no problems, every sample is a good row of the fields.  No field is
REQUIRED, because samples cannot prove that a value is never absent.

Pure: reads no file.  Invents no description and no type that the samples do not show.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.schema.document import Object, Value, parse
from jostler.schema.fields import Field, Fields, Mode
from jostler.schema.flaw import Flaw, key_step
from jostler.schema.moments import date_fault, timestamp_fault
from jostler.schema.names import name_fault
from jostler.schema.rules import DEPTH_MAX
from jostler.schema.scalars import INT64_DIGITS, INT64_MAX, INT64_MIN, unclean

if TYPE_CHECKING:
    from collections.abc import Iterable

_RFC3339_RE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_TEXTS = frozenset({"STRING", "TIMESTAMP", "DATE"})
_NUMBERS = frozenset({"INTEGER", "FLOAT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """The result of inferring a schema.

    Attributes:
        fields: the datatype's fields, in the order in which they first occurred.
        problems: why a sample fits no table or contradicts an earlier one; each names the files.
        notes: fields whose type the samples do not determine, and the type chosen for them.
    """

    fields: Fields
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def infer(samples: Iterable[tuple[str, bytes]]) -> Inferred:
    """Infer a datatype schema from the names and contents of sample files."""
    found = _Samples()
    root = _Node("", "", 0)
    for name, content in samples:
        document = parse(content)
        if isinstance(document, Flaw):
            found.problems.append(f"{name}: {document.reason}: {document.detail}")
        else:
            found.record(root, document, "", name)
    fields = found.fields(root, "")
    return Inferred(
        fields=fields,
        problems=tuple(dict.fromkeys(found.problems)),
        notes=tuple(found.notes),
    )


class _Node:
    """What is known about one field; an unknown type or shape is None."""

    __slots__ = ("children", "depth", "kind", "kind_from", "name", "name_from", "repeated")

    def __init__(self, name: str, name_from: str, depth: int) -> None:
        self.name = name
        self.name_from = name_from
        self.depth = depth
        self.kind: str | None = None
        self.kind_from = name_from
        self.repeated: bool | None = None
        self.children: dict[str, _Node] = {}


class _Samples:
    """Collects samples into nodes; single-threaded, used once."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.notes: list[str] = []

    def record(self, node: _Node, record: Object, prefix: str, source: str) -> None:
        met: set[str] = set()
        for key, value in record:
            path = prefix + key_step(key)
            child = self._child(node, key, path, source)
            if child.name.lower() in met:
                self.problems.append(f"{path}: {source} has the key twice; case is ignored")
            met.add(child.name.lower())
            self._value(child, value, path, source)

    def _child(self, node: _Node, key: str, path: str, source: str) -> _Node:
        child = node.children.get(key.lower())
        if child is None:
            child = node.children[key.lower()] = _Node(key, source, node.depth + 1)
            if fault := name_fault(key):
                self.problems.append(f"{path}: {source}: BigQuery refuses this: {fault:.200}")
        elif child.name != key:
            self.problems.append(
                f"{path}: {source} spells it so, {child.name_from} spells it {child.name!r};"
                " BigQuery takes them for one name"
            )
        return child

    def _value(self, node: _Node, value: Value, path: str, source: str) -> None:
        if value is None:
            return
        repeated = isinstance(value, list)
        if node.repeated is not None and node.repeated is not repeated:
            here, there = _shape(repeated), _shape(node.repeated)
            self.problems.append(f"{path}: {source} has {here} where {node.kind_from} has {there}")
            return
        if node.repeated is None:
            node.repeated, node.kind_from = repeated, source
        for element in value if isinstance(value, list) else [value]:
            self._element(node, element, f"{path}[]" if repeated else path, source)

    def _element(self, node: _Node, value: Value, path: str, source: str) -> None:
        if value is None:
            self.problems.append(f"{path}: {source} has null in an array, which BigQuery refuses")
            return
        if isinstance(value, list):
            self.problems.append(f"{path}: {source} has an array in an array, which no column is")
            return
        kind, fault = _kind(value)
        if fault:
            self.problems.append(f"{path}: {source}: {fault}")
        wider = kind if node.kind is None else _wider(node.kind, kind)
        if wider is None:
            self.problems.append(
                f"{path}: {source} has {kind} where {node.kind_from} has {node.kind}"
            )
            return
        if wider != node.kind:
            node.kind, node.kind_from = wider, source
        if isinstance(value, tuple):
            self._deeper(node, value, path, source)

    def _deeper(self, node: _Node, value: Object, path: str, source: str) -> None:
        if node.depth > DEPTH_MAX:
            self.problems.append(f"{path}: {source} nests objects deeper than {DEPTH_MAX}")
        else:
            self.record(node, value, path + ".", source)

    def fields(self, node: _Node, prefix: str) -> Fields:
        """Turn the nodes into fields; add a note for each type that the samples leave open."""
        return tuple(self._field(child, prefix + key_step(child.name)) for child in _known(node))

    def _field(self, node: _Node, path: str) -> Field:
        mode = Mode.REPEATED if node.repeated else Mode.NULLABLE
        kind, inner = node.kind, self.fields(node, f"{path}[]." if node.repeated else f"{path}.")
        if kind is None:
            what = "only empty arrays" if node.repeated else "only null"
            kind = "STRING"
            self.notes.append(f"{path}: {what} in the samples; put down as STRING")
        elif kind == "RECORD" and not inner:
            kind = "JSON"
            self.notes.append(f"{path}: only empty objects in the samples; put down as JSON")
        return Field(name=node.name, type=kind, mode=mode, fields=inner)


def _known(node: _Node) -> Iterable[_Node]:
    return node.children.values()


def _shape(repeated: bool) -> str:
    return "an array" if repeated else "a single value"


def _wider(known: str, found: str) -> str | None:
    """Return the type that can represent values of both; None if there is none."""
    if known == found:
        return known
    if {known, found} <= _NUMBERS:
        return "FLOAT"
    return "STRING" if {known, found} <= _TEXTS else None


def _kind(value: Value) -> tuple[str, str | None]:
    """Return the narrowest type of a single value, and why BigQuery refuses the value, if so."""
    if isinstance(value, tuple):
        return "RECORD", None
    if isinstance(value, bool):
        return "BOOLEAN", None
    if isinstance(value, bytes):
        if not math.isfinite(float(value)):
            return "FLOAT", "number too large for BigQuery"
        whole = value.lstrip(b"-").isdigit() and len(value) <= INT64_DIGITS + 1
        return "INTEGER" if whole and INT64_MIN <= int(value) <= INT64_MAX else "FLOAT", None
    return _text_kind(str(value))


def _text_kind(text: str) -> tuple[str, str | None]:
    if found := unclean(text):
        return "STRING", found.detail
    if _RFC3339_RE.fullmatch(text) and not timestamp_fault(text):
        return "TIMESTAMP", None
    return "STRING" if date_fault(text) else "DATE", None
