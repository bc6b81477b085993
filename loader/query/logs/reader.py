"""Read tokens one after the other, and say what was expected where another one stands.

**Invariant:** the place only goes forward, so parsing ends; nothing reads beyond `END`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from loader.query.errors import Code, QueryError
from loader.query.logs.syntax import MAX_DEPTH, Name
from loader.query.logs.tokens import Kind, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
RESERVED = frozenset({"and", "or", "not", "as", "by", "true", "false", "null"})
"""Words of the language; a field of such a name stands in backquotes."""


class Reader:
    """The tokens of a text and the place of the next one; private to one call of the parser."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._place = 0
        self._depth = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self._tokens[self._place]

    @property
    def end(self) -> int:
        """Where the last token that was read ends."""
        return self._tokens[self._place - 1].end if self._place else 0

    def following(self, count: int = 1) -> Token:
        """Return a token after the next one."""
        return self._tokens[min(self._place + count, len(self._tokens) - 1)]

    def advance(self) -> Token:
        """Read the next token, whatever it is."""
        token = self.token
        if token.kind is not Kind.END:
            self._place += 1
        return token

    def is_sign(self, *signs: str) -> bool:
        """Say whether one of these signs is next."""
        return self.token.kind is Kind.SIGN and self.token.text in signs

    def is_word(self, *words: str) -> bool:
        """Say whether one of these words of the language is next, in any letter case."""
        token = self.token
        return token.kind is Kind.WORD and not token.quoted and token.text.lower() in words

    def take_sign(self, sign: str) -> bool:
        """Read a sign if it is next."""
        found = self.is_sign(sign)
        if found:
            self._place += 1
        return found

    def take_word(self, *words: str) -> bool:
        """Read a word if it is next."""
        found = self.is_word(*words)
        if found:
            self._place += 1
        return found

    def sign(self, sign: str, where: str) -> Token:
        """Read a sign that must be next."""
        if not self.is_sign(sign):
            raise self.expected(f"`{sign}` {where}")
        return self.advance()

    def word(self, word: str, where: str) -> Token:
        """Read a word that must be next."""
        if not self.is_word(word):
            raise self.expected(f"`{word}` {where}")
        return self.advance()

    def kind(self, kind: Kind, what: str) -> Token:
        """Read a token of a kind that must be next."""
        if self.token.kind is not kind:
            raise self.expected(what)
        return self.advance()

    def name(self, what: str) -> Name:
        """Read a field's name, which may have parts: `raw.Client.City`."""
        first = self._part(what)
        parts = [first.text]
        while self.take_sign("."):
            parts.append(self.kind(Kind.WORD, "a name after `.`").text)
        return Name(first.start, self.end, tuple(parts))

    def plain_name(self, what: str) -> Name:
        """Read a name of one part."""
        first = self._part(what)
        if self.is_sign("."):
            raise self.expected(f"{what} without a dot")
        return Name(first.start, first.end, (first.text,))

    def _part(self, what: str) -> Token:
        token = self.token
        if token.kind is Kind.WORD and not token.quoted and token.text.lower() in RESERVED:
            raise self.expected(f"{what} (write the name `{token.text}` in backquotes)")
        return self.kind(Kind.WORD, what)

    def several(self, one: Callable[[], T]) -> tuple[T, ...]:
        """Read one or more, with commas between."""
        found = [one()]
        while self.take_sign(","):
            found.append(one())
        return tuple(found)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Count one level of nesting while the `with` lasts.

        Raises:
            QueryError: it is one too many.
        """
        if self._depth >= MAX_DEPTH:
            raise self.wrong(Code.NOT_SUPPORTED, f"nested deeper than {MAX_DEPTH} levels")
        self._depth += 1
        yield
        self._depth -= 1

    def expected(self, what: str) -> QueryError:
        """Return the error that something else stands here."""
        return self.wrong(Code.SYNTAX, f"expected {what}, found {self.token.shown}")

    def wrong(self, code: Code, message: str) -> QueryError:
        """Return an error at the next token."""
        return QueryError(code, message, self.token.start, self.token.end)
