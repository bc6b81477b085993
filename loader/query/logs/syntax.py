"""The parts of a question of the log-query language, as values.

**Invariant:** `start` and `end` of each part are offsets in the text; a part lies within the part
that holds it.  `depth` of an expression is at most `MAX_DEPTH`.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from loader.query.logs.spans import Span

MAX_DEPTH = 30
"""How deep expressions nest.  SQLGlot, which reads what is compiled, ends at some 45 levels."""


@dataclass(frozen=True, slots=True)
class Part:
    """Anything that has a place in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Part):
    """A number, a text, `true`, `false` or `null` (None)."""

    value: str | int | float | bool | None
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Name(Part):
    """A field: `city`, `raw.Download.MeanThroughputMbps`."""

    path: tuple[str, ...]
    depth: int = 1

    @property
    def text(self) -> str:
        """The field as it is written."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Call(Part):
    """A function; operators are functions with the name of their sign (`neg` is unary minus)."""

    name: str
    args: tuple[Expression, ...]
    depth: int


Expression = Literal | Name | Call


@dataclass(frozen=True, slots=True)
class TableName(Part):
    """A table after `table` or `from`; `NAME?` may be missing."""

    name: str
    may_be_missing: bool


@dataclass(frozen=True, slots=True)
class Range(Part):
    """Which rows of a table: by time, then by number.  No begin, end or limit is None."""

    begin: datetime | None = None
    until: datetime | None = None
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Table(Part):
    """`table duration=1d ndt7, ndt5`."""

    range: Range
    names: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Fulltext(Part):
    """`fulltext "a" and not "b" from ndt7`; `query` has texts, `and`, `or` and `not`."""

    range: Range
    query: Expression
    names: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class Search(Part):
    """`search limit=10 x > 1`, and `eval` without an assignment."""

    condition: Expression
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Eval(Part):
    """`eval x = 1 + 2`."""

    name: Name
    value: Expression


@dataclass(frozen=True, slots=True)
class Aggregate(Part):
    """`sum(x) as total`: `alias` is empty if there is none."""

    function: str
    args: tuple[Expression, ...]
    alias: str


@dataclass(frozen=True, slots=True)
class Stats(Part):
    """`stats count, sum(x) by a, b`."""

    aggregates: tuple[Aggregate, ...]
    by: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Timechart(Part):
    """`timechart span=1h count by a`."""

    span: Span
    aggregates: tuple[Aggregate, ...]
    by: Name | None


@dataclass(frozen=True, slots=True)
class Key(Part):
    """A field to sort by."""

    name: Name
    descending: bool


@dataclass(frozen=True, slots=True)
class Sort(Part):
    """`sort limit=10 -count, city`."""

    keys: tuple[Key, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Fields(Part):
    """`fields a, b`, and `fields - a, b`, which removes them."""

    names: tuple[Name, ...]
    removed: bool


@dataclass(frozen=True, slots=True)
class Rename(Part):
    """`rename a as b, c as d`."""

    pairs: tuple[tuple[Name, Name], ...]


@dataclass(frozen=True, slots=True)
class Limit(Part):
    """`limit 10`, `limit 20 10`: the second form leaves out the first 20 rows."""

    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class Drop(Part):
    """`drop`: no row is left."""


@dataclass(frozen=True, slots=True)
class Rex(Part):
    """`rex field=line "(?<user>[a-z]+)@"`; `pattern` is the literal of the regular expression."""

    field: Name
    pattern: Literal


@dataclass(frozen=True, slots=True)
class Lookup(Part):
    """`lookup iso_code code as country_code output country as name`.

    Attributes:
        table: the CSV file's name.
        key: the column of the lookup table that is compared.
        field: the field of the rows that it is compared with.
        outputs: columns of the lookup table, each with the name of the field that it becomes.
    """

    table: Name
    key: Name
    field: Name
    outputs: tuple[tuple[Name, Name], ...]


@dataclass(frozen=True, slots=True)
class Join(Part):
    """`join type=left a, b [ table … ]`."""

    keys: tuple[Name, ...]
    left: bool
    query: Pipeline


@dataclass(frozen=True, slots=True)
class Union(Part):
    """`union [ table … ]`."""

    query: Pipeline


@dataclass(frozen=True, slots=True)
class ParseJson(Part):
    """`parsejson field=line`."""

    field: Name


Source = Table | Fulltext
Command = (
    Search | Eval | Stats | Timechart | Sort | Fields | Rename | Limit | Drop | Rex | Lookup
    | Join | Union | ParseJson
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pipeline(Part):
    """A source and what is done with its rows."""

    source: Source
    commands: tuple[Command, ...]
