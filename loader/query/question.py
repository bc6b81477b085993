"""A question that is understood: one GoogleSQL text, and how its answer is shown.

Each language compiles to a `Question`.  The SQL names tables as the asker does: `ndt7`,
`ndt.ndt7` (experiment and datatype), `index1`, `rejected1`, `lookups.NAME`; each runner puts its
own in their place.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from jostler.schema.fields import Fields


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
