"""Split a question into tokens.

**Invariant:** tokens are in the order of the text and do not overlap; between two of them there is
white space alone.  The last one is `END`, at the end of the text.

Pure.  Takes time proportional to the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from loader.query.errors import Code, QueryError

MAX_CHARACTERS = 100_000
MAX_TOKENS = 4_000


class Kind(StrEnum):
    """What a token is; the values are the words of messages."""

    WORD = "a name"
    NUMBER = "a number"
    SPAN = "a span of time"
    STRING = "a text in double quotes"
    SIGN = "a sign"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: what it is.
        text: a name without its backquotes, a string without its quotes and escapes, else as it
            stands in the question.
        start: offset of its first character.
        end: offset behind its last one.
        quoted: whether a name stood in backquotes, and so is no word of the language.
    """

    kind: Kind
    text: str
    start: int
    end: int
    quoted: bool = False

    @property
    def shown(self) -> str:
        """The token for a message."""
        if self.kind is Kind.END:
            return "the end"
        text = self.text if len(self.text) <= 40 else f"{self.text[:37]}…"  # noqa: PLR2004
        return repr(text)


_TOKEN = re.compile(
    r"""
    (?P<SPACE>\s+)
  | (?P<SPAN>[0-9]+[A-Za-z]+\b)
  | (?P<NUMBER>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+)
  | (?P<WORD>[^\W\d]\w*)
  | `(?P<QUOTED>[^`\n]+)`
  | "(?P<STRING>(?:[^"\\]|\\.)*)"
  | (?P<SIGN>==|!=|<=|>=|[-+*/%<>=|,()\[\].:?])
    """,
    re.VERBOSE | re.DOTALL,
)
_FLOAT_WITHOUT_POINT = re.compile(r"[0-9]+[eE][+-]?[0-9]+\b")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def tokens(text: str) -> list[Token]:
    """Split a question.

    Raises:
        QueryError: there is a character that begins no token, a string without its end, or the
            text is too long.
    """
    if len(text) > MAX_CHARACTERS:
        what = f"a question has at most {MAX_CHARACTERS:,} characters, this has {len(text):,}"
        raise QueryError(Code.NOT_SUPPORTED, what, MAX_CHARACTERS, len(text))
    found: list[Token] = []
    at = 0
    while at < len(text):
        token, at = _next(text, at)
        if token is None:
            continue
        found.append(token)
        if len(found) > MAX_TOKENS:
            what = f"a question has at most {MAX_TOKENS:,} words and signs"
            raise QueryError(Code.NOT_SUPPORTED, what, token.start, token.end)
    return [*found, Token(Kind.END, "", len(text), len(text))]


def _next(text: str, at: int) -> tuple[Token | None, int]:
    """Return the token that begins at a place, None for white space, and where the next begins."""
    if number := _FLOAT_WITHOUT_POINT.match(text, at):  # 1e3 is a number, not a span of 1 e3
        return Token(Kind.NUMBER, number[0], at, number.end()), number.end()
    match = _TOKEN.match(text, at)
    if match is None:
        raise _no_token(text, at)
    group, end = str(match.lastgroup), match.end()
    value = match[group]
    if group == "SPACE":
        return None, end
    if group == "QUOTED":
        return Token(Kind.WORD, value, at, end, quoted=True), end
    if group == "STRING":
        _check_characters(value, at + 1)
        return Token(Kind.STRING, _ESCAPED.sub(_unescaped, value), at, end), end
    return Token(Kind[group], value, at, end), end


def _unescaped(match: re.Match[str]) -> str:
    # Other characters keep their backslash, so that "\d" need not be written "\\d".
    return _ESCAPES.get(match[1], match[0])


def _check_characters(value: str, start: int) -> None:
    """Refuse what no SQL text can carry: NUL and halves of surrogate pairs."""
    for place, char in enumerate(value, start):
        if char == "\0" or "\ud800" <= char <= "\udfff":
            what = f"the character U+{ord(char):04X} cannot stand in a text"
            raise QueryError(Code.SYNTAX, what, place, place + 1)


def _no_token(text: str, at: int) -> QueryError:
    char = text[at]
    if char == '"':
        return QueryError(Code.SYNTAX, 'expected a `"` that ends this text', at, len(text))
    if char == "`":
        return QueryError(Code.SYNTAX, "expected a backquote that ends this name", at, len(text))
    if char == "'":
        what = "expected a text in double quotes, found a single quote"
        return QueryError(Code.SYNTAX, what, at, at + 1)
    return QueryError(Code.SYNTAX, f"expected a word, found {char!r}", at, at + 1)
