"""Expressions of Spark SQL with their types, and how their texts are put together.

**Invariant:** a `Value.sql` is one operand: it stands in any other expression without parentheses.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from loader.query.googlesql.types import (
    BOOL,
    BYTES,
    DATE,
    DATETIME,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = 60  # characters from which an operand is evaluated once and named


@dataclass(frozen=True, slots=True)
class Origin:
    """A column or field of a table, not changed by anything.

    Attributes:
        read: the place of the table in the list of reads.
        path: the column and its fields.
        whole: whether a condition on this value may leave out rows of the table: they have not
            been counted, numbered or limited yet.
    """

    read: int
    path: tuple[str, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known before the query runs; None is NULL."""

    value: bool | int | float | str | bytes | date | datetime | None


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of Spark SQL.

    Attributes:
        sql: its text.
        type: its type in GoogleSQL.
        constant: its value, of a literal and of what is computed from literals.
        origin: the column that it is.
    """

    sql: str
    type: Type
    constant: Constant | None = None
    origin: Origin | None = None

    def retyped(self, kind: Type) -> Value:
        """Return the same expression as a value of another type."""
        return replace(self, type=kind)

    def plain(self) -> Value:
        """Return the same expression, however it is computed."""
        return Value(self.sql, self.type, self.constant, self.origin)


_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def text(value: str) -> str:
    """Write a string literal; Spark would replace `${name}` by a setting."""
    return "'" + "".join(_character(char) for char in value) + "'"


def _character(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\u{ord(char):04x}" if ord(char) < ord(" ") or char == "$" else char


def number(value: float) -> str:
    """Write a FLOAT64."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return f"double('{value}')"
    return f"({value!r}D)" if value < 0 else f"{value!r}D"


def literal(value: bool | float | str | bytes | date | datetime | None) -> Value:
    """Return a literal with its type; an aware `datetime` is a TIMESTAMP, else a DATETIME."""
    kind, sql = DATE, ""
    if value is None:
        kind, sql = NULL, "NULL"
    elif isinstance(value, bool):
        kind, sql = BOOL, str(value).lower()
    elif isinstance(value, int):
        kind = INT64
        sql = f"{value}L" if value >= 0 else f"({value}L)"
    elif isinstance(value, float):
        kind, sql = FLOAT64, number(value)
    elif isinstance(value, str):
        kind, sql = STRING, text(value)
    elif isinstance(value, bytes):
        kind, sql = BYTES, f"X'{value.hex()}'"
    elif isinstance(value, datetime):
        plain = value.replace(tzinfo=None).isoformat(" ", "microseconds")
        kind = TIMESTAMP if value.tzinfo else DATETIME
        sql = f"TIMESTAMP'{plain}Z'" if value.tzinfo else f"TIMESTAMP_NTZ'{plain}'"
    else:
        sql = f"DATE'{value.isoformat()}'"
    return Value(sql, kind, Constant(value))


_PLACE = re.compile(r"\{(\d+)\}")


def written(template: str, values: Sequence[str]) -> str:
    """Put operands into a template, in which `{0}` is the first one, each where it stands."""
    return _PLACE.sub(lambda found: values[int(found[1])], template)


def filled(template: str, values: Sequence[str]) -> str:
    """Put operands into a template, in which `{0}` is the first one.

    An operand that stands in several places and is long would be written and evaluated again and
    again, and nested calls would grow without limit: then all operands are named by a lambda.
    """
    places = [int(place) for place in _PLACE.findall(template)]
    often = any(places.count(place) > 1 and len(values[place]) > LONG for place in set(places))
    if not often or any("(SELECT " in value for value in values):
        # A lambda cannot have a subquery; Spark runs equal subqueries once.
        return written(template, values)
    names = dict(zip(sorted(set(places)), string.ascii_lowercase, strict=False))
    depth = sum(one.count("_v") for one in values)
    held = f"_v{depth}"
    fields = ", ".join(f"'{name}', {values[place]}" for place, name in names.items())
    body = _PLACE.sub(lambda found: f"{held}.{names[int(found[1])]}", template)
    return f"transform(array(named_struct({fields})), {held} -> {body})[0]"
