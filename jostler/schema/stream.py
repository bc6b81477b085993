"""A parser that reads a large JSON object piece by piece, in bounded memory beside its text.

A tree of Python values takes up to 40 bytes per byte of the document: an array of six million empty
arrays (18 MB) would take 500 MB.  Here objects and arrays are iterators over the text, so only the
current value is in memory, or a tree of at most PIECE characters.  This takes up to three times as
long, so small documents are read by `document.parse`.

**Invariant:** the caller reads each container to its end before it continues with the value after
it, or stops reading.  Values are those of `document.parse`, with `Members` for an object and
`Elements` for an array.

Pure.
"""

from __future__ import annotations

import re
from itertools import chain
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined] # the tokenizer of `json`
from typing import TYPE_CHECKING, Any

from jostler.schema.document import DECODER, NotANumberError, Value, guarded, parse
from jostler.schema.flaw import Flaw, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TREE_BYTES_MAX = 64 * 2**20
"""The maximum memory of a tree; a document that needs more is read piece by piece."""
PIECE = 2**16
"""How many characters are parsed at once; a tree of so many takes little memory."""
DEPTH_MAX = 1000
"""The maximum depth; the limit of `json` is about the same."""
SMALL_BYTES = 2**20
"""A document of at most this length is never large, whatever it contains."""

_SPACE_RE = re.compile(rb"[ \t\n\r]*")
_scan: Callable[[str, int], tuple[Any, int]] = DECODER.scan_once  # type: ignore[attr-defined] # likewise
_space = re.compile(r"[ \t\n\r]*").match


def is_large(document: bytes) -> bool:
    """Return whether a tree of the document might take too much memory; call if it is not small.

    Each value follows a comma or a bracket.  Commas and brackets inside strings are counted too;
    at worst a document is read piece by piece without need.  The weights are measured: of a tuple
    or dict with one pair, of a list, of a further value.
    """
    size = 250 * document.count(b"{") + 100 * document.count(b"[") + 150 * document.count(b",")
    return size > TREE_BYTES_MAX


def streamed(
    document: bytes, judge: Callable[[Members], Flaw | None], *, piece: int = PIECE
) -> Flaw | None:
    """Pass the members of a document to `judge`; return its flaw, or why the text is not JSON.

    Reading stops at the first flaw in the order of the document, so text after it is not checked.

    Args:
        document: the bytes of a file or row.
        judge: reads all members, or returns a flaw.
        piece: how many characters to parse at once, where whole values end within them.
    """
    spaces = _SPACE_RE.match(document)
    assert spaces is not None
    start = document[spaces.end() : spaces.end() + 1]
    if start == b"[":
        detail = "expected a JSON object, found an array"
        return Flaw(reason=Reason.NOT_OBJECT, field="", detail=detail)
    if start != b"{":  # a scalar, white space or not JSON: parsing it builds no tree
        value = parse(document)
        assert isinstance(value, Flaw)
        return value
    return guarded(document, lambda text: _read(_Cursor(text, piece), judge))


def _read(cursor: _Cursor, judge: Callable[[Members], Flaw | None]) -> Flaw | None:
    text = cursor.text
    cursor.at = _skip(text, 0) + 1
    if found := judge(Members(cursor)):
        return found
    end = _skip(text, cursor.at)
    if end != len(text):
        raise JSONDecodeError("Extra data", text, end)
    return None


def walk(members: Members) -> Flaw | None:
    """Read all members without checking their types."""
    for _, depth in values(members):
        if depth > DEPTH_MAX:
            return Flaw(reason=Reason.TOO_DEEP, field="", detail="nested too deeply to be read")
    return None


def values(value: Part) -> Iterator[tuple[Part, int]]:
    """Yield a value and all keys and values in it, in their order, each with its depth.

    A container comes before its content, so a caller can stop before it becomes too deep.
    """
    open_: list[Iterator[Part]] = [iter((value,))]
    while open_:
        for part in open_[-1]:
            yield part, len(open_)
            if isinstance(part, ARRAYS):
                open_.append(iter(part))
                break
            if isinstance(part, OBJECTS):
                open_.append(chain.from_iterable(part))
                break
        else:
            open_.pop()


def _skip(text: str, at: int) -> int:
    """Return the position of the first character from `at` on that is not white space."""
    if text[at : at + 1] > " ":
        return at
    found = _space(text, at)
    assert found is not None
    return found.end()


class _Cursor:
    """The position up to which a text has been read."""

    __slots__ = ("_piece", "_try_at", "at", "text")

    def __init__(self, text: str, piece: int) -> None:
        self.text = text
        self.at = self._try_at = 0
        self._piece = piece

    def piece(self, brackets: str) -> Any:  # noqa: ANN401 - what json makes of it
        """Parse the next values of a container together, as a tree; return nothing if impossible.

        The text up to some comma ahead may be several whole values, or end inside one.  It is put
        in brackets of its own; if the result is JSON, it consists of whole values.
        """
        at, end = self.at, self.at + self._piece
        if at < self._try_at or end > len(self.text):
            return None
        for before_comma in "}", "]", "":
            comma = self.text.rfind(f"{before_comma},", at, end) + len(before_comma)
            if comma > at:
                text = f"{brackets[0]}{self.text[at:comma]}{brackets[1]}"
                try:
                    found, length = _scan(text, 0)
                except (StopIteration, ValueError, NotANumberError):
                    continue
                if found and length == len(text):
                    self.at = comma
                    return found
        self._try_at = end  # no attempt before this: all attempts together take linear time
        return None

    def value(self, at: int) -> Part:
        """Read the scalar that begins at `at`, or the bracket of the container."""
        at = _skip(self.text, at)
        first = self.text[at : at + 1]
        if first == "{":
            self.at = at + 1
            return Members(self)
        if first == "[":
            self.at = at + 1
            return Elements(self)
        try:
            found: Part
            found, self.at = _scan(self.text, at)
        except StopIteration as exc:
            raise JSONDecodeError("Expecting value", self.text, exc.value) from None
        return found

    def closed(self, bracket: str) -> bool:
        """Read what follows a value: a comma, or the bracket that ends the container."""
        at = _skip(self.text, self.at)
        found = self.text[at : at + 1]
        if found not in {",", bracket}:
            raise JSONDecodeError("Expecting ',' delimiter", self.text, at)
        self.at = at + 1
        return found == bracket

    def key(self) -> str:
        """Read a key and its colon."""
        at = _skip(self.text, self.at)
        if self.text[at : at + 1] != '"':
            message = "Expecting property name enclosed in double quotes"
            raise JSONDecodeError(message, self.text, at)
        key: str
        key, at = scanstring(self.text, at + 1, True)
        at = _skip(self.text, at)
        if self.text[at : at + 1] != ":":
            raise JSONDecodeError("Expecting ':' delimiter", self.text, at)
        self.at = at + 1
        return key

    def empty(self, bracket: str) -> bool:
        """Read the closing bracket if the container is empty."""
        at = _skip(self.text, self.at)
        is_empty = self.text[at : at + 1] == bracket
        self.at = at + is_empty
        return is_empty


class Members:
    """The (key, value) pairs of an object; to be iterated once."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: _Cursor) -> None:
        self._cursor = cursor

    def __str__(self) -> str:
        return "an object"

    def __iter__(self) -> Iterator[tuple[str, Part]]:
        cursor = self._cursor
        if cursor.empty("}"):
            return
        while True:
            if piece := cursor.piece("{}"):
                yield from piece
            else:
                key = cursor.key()
                yield key, cursor.value(cursor.at)
            if cursor.closed("}"):
                return


class Elements:
    """The values of an array; to be iterated once."""

    __slots__ = ("_cursor",)

    def __init__(self, cursor: _Cursor) -> None:
        self._cursor = cursor

    def __str__(self) -> str:
        return "an array"

    def __iter__(self) -> Iterator[Part]:
        cursor = self._cursor
        if cursor.empty("]"):
            return
        while True:
            if piece := cursor.piece("[]"):
                yield from piece
            else:
                yield cursor.value(cursor.at)
            if cursor.closed("]"):
                return


Part = Value | Members | Elements
"""A value of a tree, or a container that is being read."""
# For isinstance: an expression `list | Elements` there would create a new object at each call.
OBJECTS = (tuple, Members)
ARRAYS = (list, Elements)
CONTAINERS = (list, tuple, Elements, Members)
