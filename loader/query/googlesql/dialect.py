"""Parse GoogleSQL by SQLGlot, with every function call as it was written.

**Invariant:** SQLGlot gives functions of many dialects one meaning, and loses what differs; here a
call keeps its name and the order of its arguments, and is judged by `functions` alone.

A text is never parsed for longer than its limits allow: `MAX_CHARACTERS` and `MAX_DEPTH`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.dialects.bigquery import BigQuery
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parsers.bigquery import BigQueryParser

from loader.query.errors import Code, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot import Token

MAX_CHARACTERS = 100_000
MAX_DEPTH = 40  # brackets and CASE in each other
OPENING = {"(", "[", "CASE"}
CLOSING = {")", "]", "END"}
KEPT = ("CAST", "SAFE_CAST", "EXTRACT", "ARRAY")
"""Calls whose arguments are no list of expressions."""


class _Parser(BigQueryParser):
    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: BigQueryParser.FUNCTION_PARSERS[name] for name in KEPT
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        name: BigQueryParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
    }


class GoogleSQL(BigQuery):
    """BigQuery's dialect without SQLGlot's knowledge of functions."""

    Parser = _Parser


def tokens(text: str) -> list[Token]:
    """Split a text into tokens, whose `start` and `end` (included) are offsets in it.

    Raises:
        QueryError: it cannot be split, is too long, or its brackets do not match.
    """
    if len(text) > MAX_CHARACTERS:
        raise QueryError(
            Code.SYNTAX, f"a question has at most {MAX_CHARACTERS} characters", 0, len(text)
        )
    try:
        found = GoogleSQL().tokenize(text)
    except TokenError as exc:
        start = getattr(exc, "start", None) or 0
        raise QueryError(
            Code.SYNTAX, f"this is no GoogleSQL: {_one_line(exc)}", start, len(text)
        ) from exc
    except (SqlglotError, ValueError, OverflowError, IndexError) as exc:
        raise QueryError(
            Code.SYNTAX, f"this is no GoogleSQL: {_one_line(exc)}", 0, len(text)
        ) from exc
    _check_depth(found, len(text))
    return found


def _check_depth(found: Sequence[Token], length: int) -> None:
    open_tokens: list[Token] = []
    for token in found:
        word = token.text.upper() if token.token_type is not TokenType.STRING else ""
        if word in OPENING:
            open_tokens.append(token)
            if len(open_tokens) > MAX_DEPTH:
                message = f"brackets are nested more than {MAX_DEPTH} deep"
                raise QueryError(Code.NOT_SUPPORTED, message, token.start, token.end + 1)
        elif word in CLOSING and open_tokens:
            open_tokens.pop()
        elif word in {")", "]"}:
            raise QueryError(
                Code.SYNTAX, f"nothing is open that {word} closes", token.start, token.end + 1
            )
    if open_tokens and open_tokens[-1].text in {"(", "["}:
        message = f"{open_tokens[-1].text} is not closed"
        raise QueryError(Code.SYNTAX, message, open_tokens[-1].start, length)


def parsed(text: str, found: list[Token]) -> exp.Query:
    """Parse the tokens of one query.

    Raises:
        QueryError: it is no query, or SQLGlot cannot parse it.
    """
    while found and found[-1].token_type is TokenType.SEMICOLON:
        found = found[:-1]
    if not found:
        raise QueryError(Code.SYNTAX, "a query was expected", 0, len(text))
    for token in found:
        if token.token_type is TokenType.SEMICOLON:
            raise QueryError(
                Code.NOT_SUPPORTED, "one query was expected, not a script", token.start, len(text)
            )
    try:
        trees = GoogleSQL().parser(error_level=ErrorLevel.IMMEDIATE).parse(found, text)
    except ParseError as exc:
        raise _syntax_error(exc, text) from exc
    except RecursionError as exc:
        message = "expressions are nested too deep"
        raise QueryError(Code.NOT_SUPPORTED, message, 0, len(text)) from exc
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError, IndexError) as exc:
        # SQLGlot raises various exceptions for syntax that it does not expect.
        raise QueryError(Code.SYNTAX, f"cannot be parsed: {_one_line(exc)}", 0, len(text)) from exc
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise QueryError(
            Code.NOT_SUPPORTED, "only queries are asked: SELECT, WITH or FROM", 0, len(text)
        )
    return tree


def _syntax_error(error: ParseError, text: str) -> QueryError:
    """Find the place of an error from its line and column, which are those of a token's end."""
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line") or 1, first.get("col") or 1
    lines = text.split("\n")[: line - 1]
    end = min(sum(len(one) + 1 for one in lines) + column, len(text))
    start = max(0, end - len(first.get("highlight") or ""))
    message = str(first.get("description") or "cannot be parsed").rstrip(".")
    return QueryError(Code.SYNTAX, _one_line(message), start, end)


def _one_line(what: object) -> str:
    return re.sub(r"\s+", " ", str(what))[:200]
