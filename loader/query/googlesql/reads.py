"""What a translated question reads: which columns of which tables, of which days.

**Invariant:** a row outside the ranges, and a column outside the paths, cannot change the answer.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date, datetime

    from jostler.schema.fields import Fields
    from loader.query.text.needed import Need


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What WHERE leaves of a table; each range is half-open, None has no limit.

    Attributes:
        first_day: no row of an earlier `date` is asked for.
        end_day: no row of this `date` or a later one is.
        begin: no row of an earlier `_time` (UTC) is asked for.
        end: no row of this `_time` or a later one is.
        nodes: no row of another `_node` is.
        need: no row without these words is.
    """

    first_day: date | None = None
    end_day: date | None = None
    begin: datetime | None = None
    end: datetime | None = None
    nodes: frozenset[str] | None = None
    need: Need | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One use of a table; a table that a question names twice is read twice.

    Attributes:
        view: the name that `SparkText.sql` gives it; the runner registers a view of this name.
        table: the table's name as `Shapes` knows it.
        paths: the columns and fields that are named, in the schema's spelling, sorted; a path
            means all below it, one through an array the field of each element.  No path is a
            prefix of another one.  The view needs no other column; empty for `COUNT(*)`.
        range: which rows can matter.
    """

    view: str
    table: str
    paths: tuple[tuple[str, ...], ...]
    range: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkText:
    """A question as Spark runs it: ANSI mode on, the session's time zone UTC.

    Attributes:
        sql: one query, which names the views of `reads` only.
        reads: the tables that it reads.
        columns: the columns of the answer with their GoogleSQL types.
        functions: the functions of `functions.py` that it calls; `register` makes them known.
    """

    sql: str
    reads: tuple[Read, ...]
    columns: Fields
    functions: tuple[str, ...] = ()
