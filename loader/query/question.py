"""A question that is understood: one GoogleSQL text, and how its answer is shown.

Each language compiles to a `Question`.  The SQL names tables as the asker does: `ndt7`,
`ndt.ndt7` (experiment and datatype), `index1`, `rejected1`, `lookups.NAME`; each runner puts its
own in their place.

A table of data has two columns beside `date`, `archiver` and `raw`, which no bundle has as such.
`Shapes` lists them last, each runner provides them, and both are read only if the SQL names them:

- `_time` TIMESTAMP: `raw.Start` of the row's line in index1, else its `raw.End`, else its
  `raw.TimeAdded`; in index1 itself the same of the row; NULL if the bundle has no index.
- `_node` STRING: the node that stored the file, `raw.Node` of its line in index1; the log-query
  language calls it `archiver.Node`.

The day of a row's folder may differ from that of its Start: the SQL of a range of times says so
itself, by a condition on `date` that is a day wider on both sides.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from jostler.schema.fields import Fields


TIME, NODE = "_time", "_node"


class Shapes(Protocol):
    """What tables there are and what columns they have."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all tables, as a question may write them, sorted."""

    def columns(self, table: str) -> Fields | None:
        """Return a table's columns with their types; None if there is no such table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pivot:
    """How the rows of a chart become columns: one row of the answer for each bucket.

    The SQL answers in rows (bucket, key, values …), because a column's name is data here.

    Attributes:
        bucket: the column that names the row of the chart.
        key: the column whose values become columns; empty if there is no `by`.
        values: the aggregates; with more than one a column is named `AGG:KEY`.
    """

    bucket: str
    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One GoogleSQL query.

    Attributes:
        text: what was asked, for messages.
        sql: one statement in GoogleSQL without parameters.
        begin: no row of an earlier Start is asked for; UTC; None if all times are.
        end: no row of this Start or a later one is asked for; UTC.
        pivot: for a timechart with `by`.
    """

    text: str
    sql: str
    begin: datetime | None = None
    end: datetime | None = None
    pivot: Pivot | None = None
