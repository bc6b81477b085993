"""Values of expressions: their SQL and their type.

**Invariant:** `sql` is one operand, which may stand between any operators without parentheses.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError

if TYPE_CHECKING:
    from jostler.schema.fields import Field
    from loader.query.logs.syntax import Part

NUMBERS = ("INT64", "NUMERIC", "BIGNUMERIC", "FLOAT64")
TIMES = ("DATE", "DATETIME", "TIMESTAMP")
NULL = "NULL"
"""The type of `null` itself."""
MAX_LENGTH = 10_000
"""Characters of an expression."""
MAX_DEPTH = 36
"""Parentheses in one another; SQLGlot, which reads the SQL, ends at some 45 levels."""

_NEW_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
_SHOWN = {
    "INT64": "int", "FLOAT64": "double", "BOOL": "bool", NULL: "null", "JSON_TEXT": "json",
}  # fmt: skip
_BRACKET = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|([()\[\]])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value: GoogleSQL's name, or RECORD, or NULL.

    Attributes:
        kind: of the value, or of the elements of a list; JSON_TEXT is a STRING that holds JSON.
        repeated: whether it is a list.
        fields: of a RECORD.
    """

    kind: str
    repeated: bool = False
    fields: tuple[Field, ...] = ()

    @property
    def shown(self) -> str:
        """The name of the type in the log-query language, as `typeof` gives it."""
        return "list" if self.repeated else _SHOWN.get(self.kind, self.kind.lower())

    @property
    def is_number(self) -> bool:
        """Whether one can calculate with it."""
        return not self.repeated and self.kind in NUMBERS

    @property
    def is_time(self) -> bool:
        """Whether it is a day or an instant."""
        return not self.repeated and self.kind in TIMES

    @property
    def is_null(self) -> bool:
        """Whether it is the type of `null`."""
        return self.kind == NULL

    def is_one(self, *kinds: str) -> bool:
        """Say whether it is one value of one of these types."""
        return not self.repeated and self.kind in kinds

    @property
    def sql(self) -> str:
        """The type for a CAST."""
        kind = "STRING" if self.kind in {NULL, "JSON_TEXT"} else self.kind
        if kind == "RECORD":
            parts = (f"{name(field.name)} {type_of(field).sql}" for field in self.fields)
            kind = f"STRUCT<{', '.join(parts)}>"
        return f"ARRAY<{kind}>" if self.repeated else kind


STRING, INT64, FLOAT64, BOOL = Type("STRING"), Type("INT64"), Type("FLOAT64"), Type("BOOL")
TIMESTAMP = Type("TIMESTAMP")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression that is compiled."""

    sql: str
    type: Type


NOTHING = Value("NULL", Type(NULL))


def type_of(field: Field) -> Type:
    """Return the type of a column or of a field of a RECORD."""
    kind = _NEW_NAMES.get(field.type, field.type)
    return Type(kind, field.mode == "REPEATED", field.fields)


def name(text: str) -> str:
    """Return an identifier in backquotes."""
    return f"`{text}`"


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def literal(text: str) -> str:
    """Return a text as SQL."""
    escaped = "".join(_ESCAPES.get(char, char) for char in text)
    return f"'{escaped}'"


def typed_null(wanted: Type) -> str:
    """Return null of a type; so engines need not guess it."""
    return f"CAST(NULL AS {wanted.sql})"


def bounded(value: Value, part: Part) -> Value:
    """Return a value as it is.

    Raises:
        QueryError: it is too long or nests too deep for the engines.
    """
    if len(value.sql) > MAX_LENGTH or _depth(value.sql) > MAX_DEPTH:
        message = "this expression is too large (use eval and stats for its parts)"
        raise QueryError(Code.NOT_SUPPORTED, message, part.start, part.end)
    return value


def _depth(sql: str) -> int:
    depth = deepest = 0
    for match in _BRACKET.finditer(sql):
        if match[1] is not None:
            depth += 1 if match[1] in "([" else -1
            deepest = max(deepest, depth)
    return deepest


def common(types: list[Type]) -> Type | None:
    """Return the type that values of several types have together; None if there is none."""
    found = [each for each in types if not each.is_null]
    if not found:
        return Type(NULL)
    if len(set(found)) == 1:
        return found[0]
    if all(each.is_number for each in found):
        return FLOAT64
    if all(each.is_time for each in found):
        return TIMESTAMP
    return None


def converted(value: Value, wanted: Type) -> str:
    """Return the SQL of a value as the type that `common` found."""
    if value.type == wanted or wanted.is_null:
        return value.sql
    if value.type.is_null:
        return typed_null(wanted)
    return timestamp(value) if wanted == TIMESTAMP else f"CAST({value.sql} AS {wanted.sql})"


def timestamp(value: Value) -> str:
    """Return the SQL of a day or an instant as TIMESTAMP; a day begins at midnight UTC."""
    return value.sql if value.type.kind == "TIMESTAMP" else f"TIMESTAMP({value.sql})"


def text(value: Value) -> str:
    """Return the SQL of any value as a text; lists and records as JSON; null stays null."""
    if value.type.is_null:
        return typed_null(STRING)
    if value.type.is_one("STRING", "JSON_TEXT"):
        return value.sql
    if value.type.repeated or value.type.kind in {"RECORD", "JSON", "GEOGRAPHY", "RANGE", "BYTES"}:
        return f"IF({value.sql} IS NULL, NULL, TO_JSON_STRING({value.sql}))"
    return f"CAST({value.sql} AS STRING)"
