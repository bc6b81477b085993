"""What a word of a text is, for `fulltext`, for SEARCH on Spark, and for the text index.

**Invariant:** if SEARCH by `PATTERN`, `ASCII_PATTERN` or LOG_ANALYZER finds a word in a value of a
row, then each of `pieces(word)` is among `line_pieces` of the row, whichever version of Unicode the
engine that searched has.

The languages divide texts into letters, digits and `_` by the Unicode of Java, Python or BigQuery,
which differ in characters of late versions.  So the index has no words but pieces of them, about
whose ends there is one opinion: runs of ASCII letters, digits and `_`, and every other character
by itself.  Parts between underscores are pieces, too.

Pure.
"""

from __future__ import annotations

import re
import unicodedata

WORD = re.compile(r"\w+")
"""A word of a question."""
PATTERN = r"[\p{L}\p{N}_]+"
"""The same for SEARCH with PATTERN_ANALYZER, on BigQuery and Spark."""
ASCII_PATTERN = r"\b\w{2,}\b"
"""What PATTERN_ANALYZER takes if it is given no pattern; its words are pieces, too."""

ENCODED = r"%(?:2526|2520|2[16BbCc089]|3[BbDdAa]|7[Cc]|5[DdBb]|0[Aa])"
"""What LOG_ANALYZER takes for a delimiter in a text that is encoded for a URL."""

_PIECE = re.compile(rb"[a-z0-9_]+|[\xc0-\xff][\x80-\xbf]*")  # of UTF-8
_ENCODED = re.compile(ENCODED.encode())
_HEAD = re.compile(rb'(?m)^\{"date":"[^"]*","archiver":\{[^{}]*\},"raw":')
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))"
)
_BLANKS = frozenset("bfnrt")
_NUMBER = re.compile(rb"(?<![\w.])[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?(?![\w.])")
# Numbers whose text is the same as a JSON literal, an INT64 and a FLOAT64 of 15 digits.
_PLAIN = re.compile(
    rb"0|[1-9][0-9]{0,14}|(?=[0-9.]{3,16}$)(?:[1-9][0-9]*|0(?=\.0{0,3}[1-9]))\.[0-9]*[1-9]"
)
_INT64_DIGITS = 19


def words(text: str) -> list[str]:
    """Return the words of a question, in lower case, each once, in order."""
    return list(dict.fromkeys(word.lower() for word in WORD.findall(text)))


def pieces(word: str) -> frozenset[str]:
    """Return what must be in a text that has a word; nothing if that cannot be said.

    A character that this Python does not know may have a lower case elsewhere: it is left out.
    """
    found = map(bytes.decode, _PIECE.findall(_folded(word)))
    return frozenset(one for one in found if unicodedata.category(one[0]) != "Cn")


def line_pieces(lines: bytes) -> set[bytes]:
    """Return the pieces of all words in rows, as UTF-8; those of some names of fields, too.

    Args:
        lines: whole rows as they are stored; `date` and `archiver` are not looked at.
    """
    raw = _HEAD.sub(b"", lines)
    if raw.isascii() and b"\\" not in raw:
        text = raw.lower()
    else:
        text = _folded(_ESCAPE.sub(_unescaped, raw.decode(errors="replace")))
    found = set(_PIECE.findall(text))
    if b"%" in text:
        found.update(_PIECE.findall(_ENCODED.sub(b" ", text)))
    # For LOG_ANALYZER an underscore divides words.
    found.update(part for one in list(found) if b"_" in one for part in one.split(b"_") if part)
    for number in set(_NUMBER.findall(raw)):
        if not _PLAIN.fullmatch(number):
            found.update(_PIECE.findall(_spellings(number)))
    return found


def _folded(text: str) -> bytes:
    """Return a text in lower case as UTF-8.

    A final sigma becomes any other one: whether it is final depends on where a word ends.
    """
    return text.lower().replace("\u03c2", "\u03c3").encode(errors="surrogatepass")


def _unescaped(found: re.Match[str]) -> str:
    """Return the character that an escape of JSON stands for."""
    high, low, one, char = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    if one:
        return chr(int(one, 16))
    return " " if char in _BLANKS else str(char)


def _spellings(number: bytes) -> bytes:
    """Return the texts that a number has as INT64 and as FLOAT64, with blanks between."""
    value = float(number)
    texts = [b"%.15g" % value, b"%.17g" % value, repr(value).encode()]
    if value.is_integer() and abs(value) < 10**_INT64_DIGITS:
        texts.append(b"%d" % int(value))
    if number.isdigit():
        texts.append(number.lstrip(b"0") or b"0")
    return b" ".join(texts)
