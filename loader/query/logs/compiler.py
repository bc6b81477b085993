"""Compile a pipeline to one GoogleSQL query.

A command changes the parts of one SELECT as long as that keeps its meaning; an aggregate, or a
command behind a limit, first makes that SELECT a CTE of the query and begins a new one.  So an
aggregate names in its SELECT the fields of `raw` that it needs, and no engine reads the others.

**Invariant:** the SQL has only what `emitted` lists.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs import syntax
from loader.query.logs.combining import combined
from loader.query.logs.commands import COMMANDS
from loader.query.logs.rows import Rows, read
from loader.query.logs.scope import Column, Scope
from loader.query.logs.sources import range_of, searched, table_rows
from loader.query.logs.values import TIMESTAMP, Value, typed_null
from loader.query.question import Question

if TYPE_CHECKING:
    from datetime import datetime

    from loader.query.question import Shapes

MAX_SQL = 500_000
"""Characters; BigQuery takes 1 MiB."""
_LAST = "timechart with by is the last command: its columns are named by the data"


def compiled_question(
    asked: str, pipeline: syntax.Pipeline, shapes: Shapes, now: datetime
) -> Question:
    """Compile a pipeline.

    Args:
        asked: the text of the question.
        pipeline: what it was parsed to.
        shapes: the tables.
        now: UTC; what `now()` gives.

    Raises:
        QueryError: it names what is not there, or types do not fit.
    """
    query = Query(shapes, now)
    rows = query.rows(pipeline)
    sql = query.sql(rows)
    if len(sql) > MAX_SQL:
        what = f"this compiles to {len(sql):,} characters of SQL; expected at most {MAX_SQL:,}"
        raise QueryError(Code.NOT_SUPPORTED, what, pipeline.start, pipeline.end)
    begin, until = range_of(query.read) if query.read else (None, None)
    return Question(text=asked, sql=sql, begin=begin, end=until, pivot=rows.pivot)


@dataclass(slots=True)
class Query:
    """One query while it is compiled.

    Attributes:
        shapes: the tables.
        now: UTC.
        read: the rows of all tables that it reads.
    """

    shapes: Shapes
    now: datetime
    read: list[Rows] = field(default_factory=list)
    _ctes: list[str] = field(default_factory=list)

    def rows(self, pipeline: syntax.Pipeline) -> Rows:
        """Compile a pipeline up to its end."""
        rows = self._source(pipeline.source)
        for command in pipeline.commands:
            if rows.pivot is not None and rows.pivot.key:
                raise QueryError(Code.NOT_SUPPORTED, _LAST, command.start, command.end)
            rows = COMMANDS[type(command)](self, replace(rows, pivot=None), command)
        return rows

    def subquery(self, pipeline: syntax.Pipeline) -> Rows:
        """Compile a pipeline in brackets.

        Raises:
            QueryError: it ends in a chart whose columns are named by the data.
        """
        rows = self.rows(pipeline)
        if rows.pivot is not None and rows.pivot.key:
            raise QueryError(Code.NOT_SUPPORTED, _LAST, pipeline.start, pipeline.end)
        return rows

    def sql(self, rows: Rows) -> str:
        """Return the whole query whose answer some rows are."""
        columns = [(column.value.sql, column.name) for column in rows.scope.visible]
        last = rows.select(columns, ordered=True)
        return f"WITH {', '.join(self._ctes)}\n{last}" if self._ctes else last

    def named(self, select: str) -> str:
        """Make a SELECT a CTE, and return its name."""
        cte = f"s{len(self._ctes) + 1}"
        self._ctes.append(f"{cte} AS (\n{select}\n)")
        return cte

    def closed(self, rows: Rows) -> Rows:
        """Make rows a CTE; what comes then works on their result."""
        taken = [column.name for column in rows.scope.visible]
        listed = [(column.value.sql, column.name) for column in rows.scope.visible]
        places: dict[int, str] = {}
        for place, column in enumerate(rows.scope.columns):
            if column.hidden:
                places[place] = _free(taken, column.name)
                listed.append((column.value.sql, places[place]))
        keys = []
        for sql, falls in rows.order:
            keys.append((_free(taken, "_order"), falls))
            listed.append((sql, keys[-1][0]))
        cte = self.named(rows.select(listed, ordered=False))
        columns = tuple(
            replace(column, value=read(column, cte, places.get(place, column.name)))
            for place, column in enumerate(rows.scope.columns)
        )
        order = tuple((f"{cte}.`{key}`", falls) for key, falls in keys)
        scope = replace(rows.scope, columns=columns)
        return Rows(source=cte, scope=scope, order=order, begin=rows.begin, until=rows.until)

    def uncut(self, rows: Rows) -> Rows:
        """Return rows whose conditions and groups may be extended."""
        return self.closed(rows) if rows.is_cut else rows

    def _source(self, source: syntax.Source) -> Rows:
        span = source.range
        found = [
            rows
            for part in source.names
            if (rows := table_rows(part, span, self.shapes)) is not None
        ]
        if not found:
            return self._nothing()
        if isinstance(source, syntax.Fulltext):
            found = [
                replace(rows, where=(*rows.where, searched(source.query, rows.scope)))
                for rows in found
            ]
        self.read += found
        rows = combined(self, found, source)
        if span.limit is None and not span.offset:
            return rows
        return replace(self.uncut(rows), limit=span.limit, offset=span.offset)

    def _nothing(self) -> Rows:
        """Return the rows of tables that are missing and may be."""
        cte = self.named(f"SELECT\n  {typed_null(TIMESTAMP)} AS `_time`")
        time = Column("_time", Value(f"{cte}.`_time`", TIMESTAMP))
        return Rows(source=cte, scope=Scope((time,), is_open=True), where=("FALSE",))


def _free(taken: list[str], wish: str) -> str:
    """Return a name that no column has, and take it."""
    used = {each.lower() for each in taken}
    number = 0
    candidate = wish
    while candidate.lower() in used:
        number += 1
        candidate = f"{wish}{number}"
    taken.append(candidate)
    return candidate
