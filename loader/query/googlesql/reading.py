"""Read a question in GoogleSQL, with pipes or without.

**Invariant:** a question that is read has a translation to Spark; its `sql` is what the asker
wrote, with pipes as ordinary queries, and `*` as the columns that it means where the question names
columns that `*` leaves out.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlglot import TokenType, exp

from loader.query.errors import Code, QueryError
from loader.query.googlesql import dialect
from loader.query.googlesql.pipes import without_pipes
from loader.query.googlesql.positions import refusal, span
from loader.query.googlesql.sources import HIDDEN
from loader.query.googlesql.translating import worked_out
from loader.query.question import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import Token

    from loader.query.googlesql.places import Work
    from loader.query.googlesql.scopes import Column
    from loader.query.question import Shapes


def read(text: str, shapes: Shapes) -> Question:
    """Read a question.

    Args:
        text: one query.
        shapes: the tables.

    Raises:
        QueryError: it is no query, names an unknown table, column or function, or needs what is
            not supported; its offsets are those of `text`.
    """
    rewritten = without_pipes(text, dialect.tokens(text))
    plain = text if rewritten is None else rewritten.text
    try:
        _, work = worked_out(plain, shapes, datetime.now(UTC), None)
        return Question(text=text, sql=_with_columns(plain, work))
    except QueryError as exc:
        if rewritten is None:
            raise
        raise rewritten.error(exc, len(text)) from exc


def _with_columns(text: str, work: Work) -> str:
    """Write the columns of `*` where the question names one that `*` leaves out.

    A runner puts a query with these columns in the table's place, whose `*` would have them.
    """
    named = {path[0] for used in work.uses for path in used.paths | used.passed}
    if not named & HIDDEN:
        return text
    tokens = dialect.tokens(text)
    edits = {}
    for node, columns in work.stars:
        start, end = span(node)
        edits[start] = _edit(text, tokens, node, columns, (start, end))
    for start, (end, columns_text) in sorted(edits.items(), reverse=True):
        text = text[:start] + columns_text + text[end:]
    return text


def _edit(
    text: str, tokens: Sequence[Token], node: exp.Expr, columns: list[Column], at: tuple[int, int]
) -> tuple[int, str]:
    """Return where a star with its EXCEPT ends, and its columns as text."""
    start, _ = at
    star = next(
        place
        for place, token in enumerate(tokens)
        if token.start >= start and token.token_type is TokenType.STAR
    )
    end, left_out = tokens[star].end + 1, set[str]()
    after = [token.text.upper() for token in tokens[star + 1 : star + 3]]
    if after[:1] == ["REPLACE"]:
        raise refusal(Code.NOT_SUPPORTED, "* REPLACE beside _time or _node is not supported", node)
    if after == ["EXCEPT", "("]:
        place = star + 3
        while tokens[place].text != ")":
            left_out.add(tokens[place].text.lower())
            place += 1
        end = tokens[place].end + 1
        if place + 1 < len(tokens) and tokens[place + 1].text.upper() == "REPLACE":
            raise refusal(
                Code.NOT_SUPPORTED, "* REPLACE beside _time or _node is not supported", node
            )
    before = text[start : tokens[star].start]
    names = [column.name for column in columns if column.name.lower() not in left_out]
    return end, ", ".join(f"{before}`{name}`" for name in names)
