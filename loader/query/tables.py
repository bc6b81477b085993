"""The tables of an archive, as a question names them: its datatypes, and tables for lookups.

**Invariant:** a name means one table.  `ndt7` is the datatype of this name if one experiment alone
has it; `ndt.ndt7`, with the experiment, always; with organizations `org.ndt.ndt7`.

Besides the columns of its schema a table has `_time` and `_node` (see `loader.query.question`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.format.bigquery_names import Naming
from jostler.schema import Field
from loader.plan.discover import discover
from loader.query.question import NODE, TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.schema import Fields
    from loader.bucket import Bucket
    from loader.plan.discover import Table
    from loader.query.lookups import Lookups

LOOKUPS = "lookups"
PSEUDO: Fields = (
    Field(
        name=TIME,
        type="TIMESTAMP",
        description="Start in the index; without one End, and without that TimeAdded.",
    ),
    Field(name=NODE, type="STRING", description="Node that stored the file."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to ask; see `loader.plan.discover.Selection`."""

    api: tuple[str, ...] = ("v1", "v2")
    experiment: frozenset[str] = frozenset()
    datatype: frozenset[str] = frozenset()
    naming: Naming = Naming.MLAB
    project: str = "archive"
    view_project: str = "archive"
    allow_empty: bool = True


class Tables:
    """The tables that a question may name; implements `loader.query.question.Shapes`.

    Args:
        found: the datatypes.
        lookups: the tables for lookups; None for none.

    Attributes:
        problems: what could not be used: pairs of what is concerned and why.
    """

    def __init__(self, found: Iterable[Table], lookups: Lookups | None = None) -> None:
        self.problems: list[tuple[str, str]] = []
        self._lookups = lookups
        named = [(name, table) for table in found for name in _names(table)]
        count = Counter(name.lower() for name, _ in named)
        self._tables = {name: table for name, table in named if count[name.lower()] == 1}
        self._by_key = {name.lower(): table for name, table in self._tables.items()}

    def names(self) -> tuple[str, ...]:
        """Return the names of all tables, as a question may write them, sorted."""
        lookups = self._lookups.names() if self._lookups else ()
        return tuple(sorted([*self._tables, *(f"{LOOKUPS}.{name}" for name in lookups)]))

    def columns(self, table: str) -> Fields | None:
        """Return a table's columns with their types; None if there is no such table."""
        if found := self.table(table):
            return with_pseudo_columns(found.fields)
        schema, _, name = table.partition(".")
        is_lookup = self._lookups is not None and schema.lower() == LOOKUPS
        return self._lookups.columns(name) if self._lookups and is_lookup else None

    def table(self, name: str) -> Table | None:
        """Return the datatype's table; None if there is none of this name."""
        return self._by_key.get(name.lower())


def tables(
    buckets: Iterable[Bucket], selection: Selection, lookups: Lookups | None = None
) -> Tables:
    """Find the tables of an archive.

    Raises:
        BucketError: a bucket cannot be listed, or does not exist.
    """
    found = discover(buckets, selection)
    made = Tables(found.tables, lookups)
    made.problems += found.problems
    return made


def with_pseudo_columns(fields: Fields) -> Fields:
    """Add `_time` and `_node`, unless the schema has columns of these names."""
    known = {field.key for field in fields}
    return (*fields, *(one for one in PSEUDO if one.key not in known))


def _names(table: Table) -> list[str]:
    place, datatype = table.place, table.sources[0].datatype
    names = [datatype, f"{place.experiment}.{datatype}"]
    if place.organization:
        names.append(f"{place.organization}.{place.experiment}.{datatype}")
    return names
