"""The rows at one place of a pipeline, as the parts of one SELECT.

**Invariant:** the columns' SQL names them by the alias of their source, so no name of the answer
can be taken for one of them.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.logs.values import Value, name

if TYPE_CHECKING:
    from datetime import datetime

    from loader.query.logs.scope import Column, Scope
    from loader.query.question import Pivot


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A SELECT that is not written yet.

    Attributes:
        source: what follows FROM.
        scope: its columns.
        where: conditions that hold in all rows.
        order: SQL by which they are sorted, each with whether it falls.
        limit: how many rows there are at most.
        offset: how many are left out before.
        begin: no row is earlier; None if it is not known.
        until: no row is as late; None if it is not known.
        pivot: how the rows of a chart are shown.
    """

    source: str
    scope: Scope
    where: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    begin: datetime | None = None
    until: datetime | None = None
    pivot: Pivot | None = None

    @property
    def is_cut(self) -> bool:
        """Whether it matters what is done first: a later condition would change the rows."""
        return self.limit is not None or self.offset > 0

    def select(self, columns: list[tuple[str, str]], *, ordered: bool) -> str:
        """Return the SQL with columns of (SQL, name)."""
        listed = ",\n  ".join(f"{sql} AS {name(text)}" for sql, text in columns)
        lines = [f"SELECT\n  {listed}", f"FROM {self.source}"]
        if self.where:
            lines.append("WHERE " + "\n  AND ".join(self.where))
        return "\n".join([*lines, *self._end(ordered=ordered)])

    def _end(self, *, ordered: bool) -> list[str]:
        lines = []
        if self.order and (ordered or self.is_cut):
            keys = (f"{sql} DESC" if falls else sql for sql, falls in self.order)
            lines.append(f"ORDER BY {', '.join(keys)}")
        if self.is_cut:
            limit = 2**31 - 1 if self.limit is None else self.limit
            lines.append(f"LIMIT {limit}" + (f" OFFSET {self.offset}" if self.offset else ""))
        return lines


def read(column: Column, alias: str, text: str) -> Value:
    """Return the value of a column that a table or CTE has under a name."""
    return Value(f"{alias}.{name(text)}", column.value.type)
