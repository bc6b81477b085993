"""Parse GoogleSQL text into SQLGlot's trees.

**Invariant:** positional parameters are named by their place, pipe syntax is rewritten to ordinary
queries, and quoted names were checked before SQLGlot loses them.
"""

from __future__ import annotations

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from embedded.model.errors import ApiError, unsupported
from embedded.sql.grammar import check_names
from embedded.sql.parameters import PLACE
from embedded.sql.pipes import without_pipes


def parsed(sql: str) -> exp.Expr:
    """Parse one GoogleSQL statement.

    Raises:
        ApiError: it is not exactly one statement, or SQLGlot cannot parse it.
    """
    trees = parsed_all(sql)
    if len(trees) != 1:
        raise unsupported("Several statements in this place" if trees else "An empty query")
    return trees[0]


def parsed_all(sql: str) -> list[exp.Expr]:
    """Parse the statements of a script; a script may be one statement.

    Raises:
        ApiError: SQLGlot cannot parse it.
    """
    try:
        return [
            tree
            for tree in sqlglot.parse(without_pipes(_numbered(sql)), read="bigquery")
            if tree is not None
        ]
    except SqlglotError as exc:
        message = str(exc).splitlines()[0] if str(exc) else "cannot be parsed"
        raise ApiError("invalidQuery", f"Syntax error: {message}") from exc


def _numbered(sql: str) -> str:
    """Name positional parameters by their place, which the parsed tree does not have any more."""
    tokens = sqlglot.tokenize(sql, read="bigquery")
    check_names(tokens)
    places = [token for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    for number, token in reversed(list(enumerate(places, 1))):
        sql = f"{sql[: token.start]}@{PLACE}{number}{sql[token.end + 1 :]}"
    return sql
