"""Rewrite pipe syntax as ordinary queries, before parsing.

**Invariant:** each operator works on the rows of the operators before it ("Pipe query syntax").
SQLGlot would merge them into one SELECT, which filters before an earlier LIMIT and loses DISTINCT.

Operators without an equivalent query are errors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import TokenType

from embedded.model.errors import unsupported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import Token

OPENING = {"(", "["}
CLOSING = {")", "]"}
SET_OPERATORS = {"UNION", "INTERSECT", "EXCEPT"}
JOINING = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS"}


def without_pipes(sql: str) -> str:
    """Return `sql` with every chain of pipe operators rewritten as an ordinary query.

    Raises:
        ApiError: an operator is not supported.
        SqlglotError: the text cannot be split into tokens of GoogleSQL.
    """
    tokens = sqlglot.tokenize(sql, read="bigquery")
    if all(token.token_type is not TokenType.PIPE_GT for token in tokens):
        return sql
    return _Text(sql, tokens).rewritten()


@dataclass(frozen=True, slots=True)
class _Text:
    """A part of the SQL text with its tokens; their positions are those in the whole text."""

    sql: str
    tokens: Sequence[Token]

    def rewritten(self) -> str:
        """Rewrite the chains in parentheses, then the chain on this level."""
        segments = self._split(TokenType.PIPE_GT)
        if len(segments) == 1:
            return segments[0].inner()
        chain = _Chain()
        chain.begin(segments[0])
        for segment in segments[1:]:
            chain.add(segment)
        return chain.query()

    def inner(self) -> str:
        """Return the text with the chains in parentheses rewritten."""
        pieces: list[str] = []
        at = self.tokens[0].start
        for opening, closing in self._groups():
            inside = self.tokens[opening + 1 : closing]
            if any(token.token_type is TokenType.PIPE_GT for token in inside):
                pieces += [self.sql[at : inside[0].start], _Text(self.sql, inside).rewritten()]
                at = inside[-1].end + 1
        return "".join(pieces) + self.sql[at : self.tokens[-1].end + 1]

    def after(self, count: int) -> _Text:
        """Return the text after its first `count` tokens.

        Raises:
            ApiError: nothing follows them.
        """
        if len(self.tokens) <= count:
            raise unsupported(f"|> {self.word()} without arguments")
        return _Text(self.sql, self.tokens[count:])

    def word(self, place: int = 0) -> str:
        """Return a token in upper case; "" after the end."""
        return self.tokens[place].text.upper() if place < len(self.tokens) else ""

    def split_at(self, word: str) -> tuple[_Text, _Text]:
        """Return the texts before and after a word on this level; either may be empty."""
        depth = 0
        for place, token in enumerate(self.tokens):
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0 and token.text.upper() == word:
                before, after = self.tokens[:place], self.tokens[place + 1 :]
                return _Text(self.sql, before), _Text(self.sql, after)
        return self, _Text(self.sql, ())

    def items(self) -> list[_Text]:
        """Return the parts between the commas on this level."""
        return self._split(TokenType.COMMA)

    def _split(self, kind: TokenType) -> list[_Text]:
        segments: list[list[Token]] = [[]]
        depth = 0
        for token in self.tokens:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0 and token.token_type is kind:
                segments.append([])
            else:
                segments[-1].append(token)
        if not all(segments):
            raise unsupported("An empty pipe operator or list item")
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


@dataclass(slots=True)
class _Chain:
    """The query that is built from a chain: `source` is its FROM item, the others its clauses."""

    source: str = ""
    prefix: str = ""
    joined: bool = False
    wheres: list[str] = field(default_factory=list)
    tail: str = ""

    def begin(self, first: _Text) -> None:
        """Begin with the text before the first pipe: `FROM …` or a whole query."""
        if first.word() == "WITH" and first.split_at("FROM")[1].tokens:
            head, rest = first.split_at("FROM")
            if head.split_at("SELECT")[1].tokens:
                self.source = f"({first.inner()})"
            else:
                self.prefix, self.source = f"{head.inner()} ", rest.inner()
        elif first.word() == "FROM":
            self.source = first.after(1).inner()
            self.joined = any(word.word() in JOINING for word in _words(first))
        else:
            self.source = f"({first.inner()})"

    def query(self, columns: str = "*") -> str:
        """Return the query as text."""
        where = f" WHERE {' AND '.join(f'({c})' for c in self.wheres)}" if self.wheres else ""
        return f"{self.prefix}SELECT {columns} FROM {self.source}{where}{self.tail}"  # noqa: S608

    def add(self, operator: _Text) -> None:
        """Apply an operator.

        Raises:
            ApiError: the operator is not supported.
        """
        word = operator.word()
        if word == "WHERE":
            self._close_tail()
            self.wheres.append(operator.after(1).inner())
        elif word in JOINING:
            self._join(operator)
        elif word in SET_OPERATORS:
            self._combine(operator)
        elif word == "ORDER BY":
            self._close_tail()
            self.tail = f" {operator.inner()}"
        elif word == "LIMIT":
            if " LIMIT " in self.tail:
                self._close_tail()
            self.tail += f" {operator.inner()}"
        else:
            self._select(word, operator)

    def _select(self, word: str, operator: _Text) -> None:
        self._close_tail()
        if word == "SELECT":
            self._wrap(operator.after(1).inner())
        elif word == "AGGREGATE":
            self._aggregate(operator)
        elif word == "DISTINCT":
            self._wrap_all("DISTINCT *")
        elif word == "EXTEND":
            self._wrap_all(f"*, {operator.after(1).inner()}")
        elif word == "SET":
            pairs = [item.split_at("=") for item in operator.after(1).items()]
            sets = ", ".join(f"{value.inner()} AS {name.inner()}" for name, value in pairs)
            self._wrap_all(f"* REPLACE ({sets})")
        elif word == "DROP":
            self._wrap_all(f"* EXCEPT ({operator.after(1).inner()})")
        elif word == "AS":
            self._wrap_all("*")
            self.source += f" AS {operator.after(1).inner()}"
        else:
            raise unsupported(f"The pipe operator {word}")

    def _join(self, operator: _Text) -> None:
        self._close_tail()
        if self.wheres and operator.word() in {"RIGHT", "FULL"}:
            self._wrap_all(
                "*"
            )  # an outer join must not return rows that an earlier operator removed
        self.source += f" {operator.inner()}"
        self.joined = True

    def _combine(self, operator: _Text) -> None:
        if not self._is_plain():
            self._wrap_all("*")
        with_others = operator.tokens
        place = next(i for i, token in enumerate(with_others) if token.text == "(")
        how = " ".join(token.text for token in with_others[:place])
        parts = [item.inner() for item in operator.after(place).items()]
        left = f"SELECT * FROM {self.source}"  # noqa: S608 - the client's own text
        self.source = f"({' '.join([left, *(f'{how} {part}' for part in parts)])})"

    def _aggregate(self, operator: _Text) -> None:
        aggregates, groups = operator.split_at("GROUP BY")
        keys = groups.items() if groups.tokens else []
        if any(key.word(len(key.tokens) - 1) in {"ASC", "DESC"} for key in keys):
            raise unsupported("|> AGGREGATE with ASC or DESC")
        values = [aggregates.after(1).inner()] if len(aggregates.tokens) > 1 else []
        columns = ", ".join([*(key.inner() for key in keys), *values])
        if keys:
            self.tail = f" GROUP BY {', '.join(str(i) for i in range(1, len(keys) + 1))}"
        self._wrap(columns)

    def _is_plain(self) -> bool:
        return not (self.wheres or self.tail or self.joined or self.prefix)

    def _close_tail(self) -> None:
        """Make a subquery of a query with ORDER BY or LIMIT, which precede later operators."""
        if self.tail:
            self._wrap_all("*")

    def _wrap_all(self, columns: str) -> None:
        if self.joined:
            raise unsupported("A pipe operator other than SELECT and AGGREGATE on joined tables")
        self._wrap(columns)

    def _wrap(self, columns: str) -> None:
        prefix, self.prefix = self.prefix, ""
        self.source = f"({self.query(columns)})"
        self.prefix, self.tail, self.joined, self.wheres = prefix, "", False, []


def _words(text: _Text) -> list[_Text]:
    return [_Text(text.sql, [token]) for token in text.tokens]
