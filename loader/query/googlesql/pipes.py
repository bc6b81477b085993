"""Rewrite pipe syntax as ordinary queries, and remember where each part of the text came from.

**Invariant:** each operator works on the rows of the operators before it ("Pipe query syntax").
SQLGlot would merge them into one SELECT, which filters before an earlier LIMIT and loses DISTINCT.

Operators without an equivalent query are refused.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from sqlglot import TokenType

from loader.query.errors import Code, QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import Token

OPENING = {"(", "["}
CLOSING = {")", "]"}
SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT"}
JOINING = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a rewritten text, and where it stands in the original one.

    Attributes:
        text: the part.
        start: the offset in the original text of its first character, or of the operator that
            this text was made for.
        copied: whether it stands there as it is.
    """

    text: str
    start: int
    copied: bool = True


class Rewritten:
    """A text made of pieces of another one."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = [piece for piece in pieces if piece.text]
        self._starts, at = [], 0
        for piece in self._pieces:
            self._starts.append(at)
            at += len(piece.text)
        self.text = "".join(piece.text for piece in self._pieces)

    def original(self, offset: int) -> int:
        """Return the offset in the original text of an offset in this one."""
        if not self._pieces:
            return 0
        place = max(0, bisect_right(self._starts, offset) - 1)
        piece = self._pieces[place]
        return piece.start + (offset - self._starts[place] if piece.copied else 0)

    def error(self, found: QueryError, length: int) -> QueryError:
        """Return an error in this text as one in the original text of this length."""
        start = min(self.original(found.start), length)
        end = self.original(found.end - 1) + 1 if found.end > found.start else start
        return QueryError(found.code, found.message, start, max(start, min(end, length)))


def without_pipes(text: str, tokens: Sequence[Token]) -> Rewritten | None:
    """Return a text with every chain of pipe operators rewritten as an ordinary query.

    Returns:
        None if the text has no pipes and does not begin with FROM.

    Raises:
        QueryError: an operator is not supported.
    """
    pipes = any(token.token_type is TokenType.PIPE_GT for token in tokens)
    if not tokens or not (pipes or tokens[0].text.upper() == "FROM"):
        return None
    return Rewritten(_Text(text, list(tokens)).rewritten())


@dataclass(frozen=True, slots=True)
class _Text:
    """A part of the text with its tokens, of which there is at least one."""

    sql: str
    tokens: Sequence[Token]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    def refuse(self, code: Code, message: str) -> NoReturn:
        raise QueryError(code, message, self.start, self.tokens[-1].end + 1)

    def made(self, text: str) -> Piece:
        """Return a text that this part needs and the original has not."""
        return Piece(text, self.start, copied=False)

    def copied(self, start: int, end: int) -> Piece:
        return Piece(self.sql[start:end], start)

    def rewritten(self) -> list[Piece]:
        """Rewrite the chains in parentheses, then the chain on this level."""
        segments = self.split(TokenType.PIPE_GT)
        if len(segments) == 1 and segments[0].word() != "FROM":
            return segments[0].inner()
        chain = _Chain(segments[0])
        for segment in segments[1:]:
            chain.add(segment)
        return chain.query()

    def inner(self) -> list[Piece]:
        """Return the text with the chains in parentheses rewritten."""
        pieces: list[Piece] = []
        at = self.start
        for opening, closing in self._groups():
            inside = self.tokens[opening + 1 : closing]
            chained = any(token.token_type is TokenType.PIPE_GT for token in inside)
            if chained or inside[0].text.upper() == "FROM":
                pieces += [self.copied(at, inside[0].start), *_Text(self.sql, inside).rewritten()]
                at = inside[-1].end + 1
        return [*pieces, self.copied(at, self.tokens[-1].end + 1)]

    def after(self, count: int) -> _Text:
        """Return the text after its first `count` tokens.

        Raises:
            QueryError: nothing follows them.
        """
        if len(self.tokens) <= count:
            self.refuse(Code.SYNTAX, f"something was expected after {self.word()}")
        return _Text(self.sql, self.tokens[count:])

    def word(self, place: int = 0) -> str:
        """Return a token in upper case; "" after the end."""
        return self.tokens[place].text.upper() if place < len(self.tokens) else ""

    def split_at(self, word: str) -> tuple[_Text | None, _Text | None]:
        """Return the texts before and after a word on this level; None for no text."""
        depth = 0
        for place, token in enumerate(self.tokens):
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0 and token.text.upper() == word and token.token_type != TokenType.STRING:
                before, after = self.tokens[:place], self.tokens[place + 1 :]
                return (
                    _Text(self.sql, before) if before else None,
                    _Text(self.sql, after) if after else None,
                )
        return self, None

    def items(self) -> list[_Text]:
        """Return the parts between the commas on this level; a comma may stand at the end."""
        ends = self.tokens[-1].token_type is TokenType.COMMA and len(self.tokens) > 1
        return (_Text(self.sql, self.tokens[:-1]) if ends else self).split(TokenType.COMMA)

    def split(self, kind: TokenType) -> list[_Text]:
        """Return the parts between the tokens of a kind on this level."""
        segments: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0 and token.token_type is kind:
                if not segments[-1]:
                    raise QueryError(
                        Code.SYNTAX, "something was expected before this",
                        token.start, token.end + 1,
                    )  # fmt: skip
                segments.append([])
            else:
                segments[-1].append(token)
        if not segments[-1]:
            self.refuse(Code.SYNTAX, "something was expected after the last operator")
        return [_Text(self.sql, segment) for segment in segments]

    def _groups(self) -> list[tuple[int, int]]:
        groups, depth, opening = [], 0, 0
        for place, token in enumerate(self.tokens):
            if token.text in OPENING:
                opening = place if depth == 0 else opening
                depth += 1
            elif token.text in CLOSING:
                depth -= 1
                if depth == 0 and place > opening + 1:
                    groups.append((opening, place))
        return groups


Pieces = list[Piece]


@dataclass(slots=True)
class _Chain:
    """The query that is built from a chain: `source` is its FROM item, the others its clauses."""

    first: _Text
    source: Pieces = field(default_factory=list)
    prefix: Pieces = field(default_factory=list)
    joined: bool = False
    wheres: list[Pieces] = field(default_factory=list)
    tail: Pieces = field(default_factory=list)
    limited: bool = False

    def __post_init__(self) -> None:
        first, at = self.first, self.first
        if first.word() == "WITH":
            head, rest = first.split_at("FROM")
            if rest is not None and head is not None and head.split_at("SELECT")[1] is None:
                self.prefix, at = [*head.inner(), first.made(" ")], rest
                self.source = at.inner()
                return
        if first.word() == "FROM":
            self.source = first.after(1).inner()
            self.joined = any(_Text(first.sql, [word]).word() in JOINING for word in first.tokens)
            self.joined = self.joined or len(first.after(1).items()) > 1
        else:
            self.source = [first.made("("), *first.inner(), first.made(")")]

    def query(self, at: _Text | None = None, columns: Pieces | None = None) -> Pieces:
        """Return the query; the text that is made for it stands where the operator `at` does."""
        made = (at or self.first).made
        where: Pieces = []
        for place, condition in enumerate(self.wheres):
            where += [made(" AND (" if place else " WHERE ("), *condition, made(")")]
        selected = columns or [made("*")]
        before = [*self.prefix, made("SELECT "), *selected, made(" FROM ")]
        return [*before, *self.source, *where, *self.tail]

    def add(self, operator: _Text) -> None:
        """Apply an operator.

        Raises:
            QueryError: the operator is not supported.
        """
        word = operator.word()
        if word == "WHERE":
            self._close_tail(operator)
            self.wheres.append(operator.after(1).inner())
        elif word in JOINING:
            self._join(operator)
        elif word in SET_OPERATORS:
            self._combine(operator)
        elif word == "ORDER BY":
            self._close_tail(operator)
            self.tail = [operator.made(" "), *operator.inner()]
        elif word == "LIMIT":
            if self.limited:
                self._close_tail(operator)
            self.tail += [operator.made(" "), *operator.inner()]
            self.limited = True
        else:
            self._select(word, operator)

    def _select(self, word: str, operator: _Text) -> None:
        self._close_tail(operator)
        made = operator.made
        if word == "SELECT":
            self._wrap(operator, operator.after(1).inner())
        elif word == "AGGREGATE":
            self._aggregate(operator)
        elif word == "DISTINCT" and len(operator.tokens) == 1:
            self._wrap_all(operator, [made("DISTINCT *")])
        elif word == "EXTEND":
            self._wrap_all(operator, [made("*, "), *operator.after(1).inner()])
        elif word == "SET":
            self._set(operator)
        elif word == "DROP":
            left_out = [made("* EXCEPT ("), *operator.after(1).inner(), made(")")]
            self._wrap_all(operator, left_out)
        elif word == "AS":
            self._wrap_all(operator, [made("*")])
            self.source += [made(" AS "), *operator.after(1).inner()]
        else:
            operator.refuse(Code.NOT_SUPPORTED, f"the pipe operator {word} is not supported")

    def _set(self, operator: _Text) -> None:
        made = operator.made
        replaced: Pieces = []
        for item in operator.after(1).items():
            name, value = item.split_at("=")
            if name is None or value is None:
                item.refuse(Code.SYNTAX, "NAME = EXPRESSION was expected")
            replaced += [made(", ")] if replaced else []
            replaced += [*value.inner(), made(" AS "), *name.inner()]
        self._wrap_all(operator, [made("* REPLACE ("), *replaced, made(")")])

    def _join(self, operator: _Text) -> None:
        self._close_tail(operator)
        if self.wheres and operator.word() in {"RIGHT", "FULL"}:
            # An outer join must not return rows that an earlier operator removed.
            self._wrap_all(operator, [operator.made("*")])
        self.source += [operator.made(" "), *operator.inner()]
        self.joined = True

    def _combine(self, operator: _Text) -> None:
        if self.wheres or self.tail or self.joined or self.prefix:
            self._wrap_all(operator, [operator.made("*")])
        made = operator.made
        place = next((i for i, token in enumerate(operator.tokens) if token.text == "("), None)
        if place is None:
            operator.refuse(Code.SYNTAX, "a query in parentheses was expected")
        how = " ".join(token.text for token in operator.tokens[:place])
        parts: Pieces = []
        for item in operator.after(place).items():
            parts += [made(f" {how} "), *item.inner()]
        self.source = [made("(SELECT * FROM "), *self.source, *parts, made(")")]

    def _aggregate(self, operator: _Text) -> None:
        made = operator.made
        aggregates, groups = operator.split_at("GROUP BY")
        keys = groups.items() if groups is not None else []
        columns: Pieces = []
        for key in keys:
            if key.word(len(key.tokens) - 1) in {"ASC", "DESC"}:
                key.refuse(Code.NOT_SUPPORTED, "|> AGGREGATE with ASC or DESC is not supported")
            columns += [*key.inner(), made(", ")]
        if aggregates is not None and len(aggregates.tokens) > 1:
            for item in aggregates.after(1).items():
                columns += [*item.inner(), made(", ")]
        if not columns:
            operator.refuse(Code.SYNTAX, "something was expected after AGGREGATE")
        if keys:
            self.tail = [made(f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}")]
        self._wrap(operator, columns[:-1])

    def _close_tail(self, operator: _Text) -> None:
        """Make a subquery of a query with ORDER BY or LIMIT, which precede later operators."""
        if self.tail:
            self._wrap_all(operator, [operator.made("*")])

    def _wrap_all(self, operator: _Text, columns: Pieces) -> None:
        if self.joined:
            operator.refuse(
                Code.NOT_SUPPORTED,
                "after tables are joined, |> WHERE, SELECT or AGGREGATE is supported",
            )
        self._wrap(operator, columns)

    def _wrap(self, operator: _Text, columns: Pieces) -> None:
        prefix, self.prefix = self.prefix, []
        made = operator.made
        self.source = [made("("), *self.query(operator, columns), made(")")]
        self.prefix, self.tail, self.joined, self.wheres = prefix, [], False, []
        self.limited = False
