"""What names mean in a place of a query: columns of the sources in FROM, and those around it.

**Invariant:** a name that two sources have is an error, as in BigQuery, never the first one's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loader.query.googlesql.sources import Named
    from loader.query.googlesql.values import Value


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source, or of a query's answer.

    Attributes:
        name: as it is written; "" for a column without a name.
        value: what it is in Spark.
        hidden: whether `*` leaves it out.
    """

    name: str
    value: Value
    hidden: bool = False


@dataclass(slots=True)
class Source:
    """An item of FROM.

    Attributes:
        alias: the name by which columns are qualified; "" for none.
        columns: its columns.
        element: for UNNEST: the element of the array, which the alias alone names.
        merged: the names, in lower case, that USING has made one with another source's.
    """

    alias: str
    columns: list[Column]
    element: Value | None = None
    merged: set[str] = field(default_factory=set)

    def named(self, name: str) -> list[Column]:
        """Return the columns of a name; letter case does not count."""
        return [column for column in self.columns if column.name.lower() == name.lower()]


@dataclass(slots=True)
class Scope:
    """The sources of one SELECT, within those of the queries around it.

    Attributes:
        sources: the items of FROM.
        joined: the columns that USING made of two.
        aliases: the columns of the answer, where they are visible (GROUP BY, HAVING, ORDER BY).
        around: the scope of the query that this one stands in, if it may see it.
        correlated: whether a name of `around` was used.
        names: the queries that WITH names here.
    """

    sources: list[Source] = field(default_factory=list)
    joined: list[Column] = field(default_factory=list)
    aliases: list[Column] = field(default_factory=list)
    around: Scope | None = None
    correlated: bool = False
    names: Mapping[str, Named] = field(default_factory=dict)

    def columns(self, name: str) -> list[Column]:
        """Return the columns that a name may mean here, not around."""
        found = [column for column in self.joined if column.name.lower() == name.lower()]
        for source in self.sources:
            if name.lower() not in source.merged:
                found += source.named(name)
        return found

    def source(self, name: str) -> Source | None:
        """Return the source of an alias."""
        return next((one for one in self.sources if one.alias.lower() == name.lower()), None)

    def outwards(self) -> Iterator[Scope]:
        """Go through this scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.around

    def all_columns(self) -> list[Column]:
        """Return what `*` stands for."""
        found = list(self.joined)
        for source in self.sources:
            found += [
                column
                for column in source.columns
                if not column.hidden and column.name.lower() not in source.merged
            ]
        return found
