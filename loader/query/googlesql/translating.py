"""From GoogleSQL to Spark SQL that has the same answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.googlesql import dialect
from loader.query.googlesql.functions.dispatch import RULES
from loader.query.googlesql.pipes import without_pipes
from loader.query.googlesql.places import MAX_SQL, PythonInLambda, Work, too_long
from loader.query.googlesql.positions import span
from loader.query.googlesql.queries import Queries
from loader.query.googlesql.ranges import Ranges
from loader.query.googlesql.reads import Read, SparkText
from loader.query.googlesql.sources import view_name
from loader.query.googlesql.types import field_of

if TYPE_CHECKING:
    from sqlglot import exp

    from loader.query.googlesql.places import Place, Used
    from loader.query.googlesql.scopes import Column
    from loader.query.googlesql.sources import Answer
    from loader.query.googlesql.values import Value
    from loader.query.question import Question, Shapes


def to_spark(question: Question, shapes: Shapes, now: datetime | None = None) -> SparkText:
    """Translate a question.

    Args:
        question: its SQL may have pipes.
        shapes: the tables.
        now: the instant that CURRENT_TIMESTAMP is; this one by default.

    Raises:
        QueryError: a table or column is unknown, or a part of GoogleSQL is not supported; its
            offsets are those of `question.sql`.
    """
    text = question.sql
    tokens = dialect.tokens(text)
    rewritten = without_pipes(text, tokens)
    if rewritten is None:
        return translated(text, shapes, now or datetime.now(UTC), question)
    try:
        return translated(rewritten.text, shapes, now or datetime.now(UTC), question)
    except QueryError as exc:
        raise rewritten.error(exc, len(text)) from exc


def translated(text: str, shapes: Shapes, now: datetime, question: Question | None) -> SparkText:
    """Translate one query without pipes.

    Raises:
        QueryError: as `to_spark`; its offsets are those of `text`.
    """
    return worked_out(text, shapes, now, question)[0]


def worked_out(
    text: str, shapes: Shapes, now: datetime, question: Question | None
) -> tuple[SparkText, Work]:
    """Translate one query without pipes, and return what was found on the way.

    Raises:
        QueryError: as `translated`.
    """
    tree = dialect.parsed(text, dialect.tokens(text))
    ranges = Ranges()
    work = Work(shapes=shapes, now=now, rules=RULES, subquery=_no_subquery)
    queries = Queries(work, ranges)
    work.subquery = queries.in_expression
    try:
        answer = queries.answer(tree, None, {})
    except PythonInLambda as exc:
        message = f"{exc} in a subquery over an array is not supported"
        raise QueryError(Code.NOT_SUPPORTED, message, *span(exc.node)) from exc
    except RecursionError as exc:
        message = "expressions are nested too deep"
        raise QueryError(Code.NOT_SUPPORTED, message, 0, len(text)) from exc
    if len(answer.sql) > MAX_SQL:
        raise too_long(tree)
    _check_names(answer.columns, tree)
    for column in answer.columns:
        work.use(column.value)
    begin, end = (question.begin, question.end) if question is not None else (None, None)
    made = SparkText(
        sql=_without_null_arrays(answer),
        reads=tuple(
            Read(
                view=view_name(place),
                table=used.table,
                paths=_paths(used),
                range=ranges.of(place, begin, end),
            )
            for place, used in enumerate(work.uses)
        ),
        columns=tuple(
            field_of(column.name or column.value.sql.strip("`"), column.value.type)
            for column in answer.columns
        ),
        functions=tuple(sorted(work.functions)),
    )
    return made, work


def _no_subquery(place: Place, node: exp.Expr) -> Value:
    del place, node
    raise AssertionError("subqueries are set before anything is translated")


def _without_null_arrays(answer: Answer) -> str:
    """Return the query with `[]` for arrays that are NULL, as BigQuery's answers have it."""
    if all(column.value.type.element is None for column in answer.columns):
        return answer.sql
    parts = []
    for column in answer.columns:
        sql, kind = column.value.sql, column.value.type
        empty = f"coalesce({sql}, CAST(array() AS {kind.spark})) AS {sql}"
        parts.append(sql if kind.element is None else empty)
    return f"SELECT {', '.join(parts)} FROM ({answer.sql})"  # noqa: S608 - translated


def _check_names(columns: list[Column], tree: exp.Expr) -> None:
    """Refuse two columns of one name; BigQuery does."""
    seen: set[str] = set()
    for column in columns:
        name = column.name.lower()
        if name and name in seen:
            message = f"the answer has two columns of the name {column.name!r}"
            raise QueryError(Code.ARGUMENT, message, *span(tree))
        seen.add(name)


def _paths(used: Used) -> tuple[tuple[str, ...], ...]:
    """Return what is read, without the paths that another one has."""
    paths = set(used.paths)
    for path in used.passed:
        if not any(known[: len(path)] == path for known in paths):
            paths.add(path)
    return tuple(
        sorted(
            path
            for path in paths
            if not any(path[:length] in paths for length in range(1, len(path)))
        )
    )
