"""Reading a large JSON object piece by piece, in memory that does not grow with its values.

A tree of Python values takes up to 40 bytes per byte of the document: an array of six million empty
arrays (18 MB) would take 500 MB.  Here an object and an array are iterators over the text, so only
what is being looked at is held, and trees of at most PIECE characters.  It may take three times as
long as one tree, so small documents are read by `document.parse`.

**Invariant:** whatever reads a container reads it to its end before it asks for what follows, or
stops for good; the values are those of `document.parse` with `Members` for an object and `Elements`
for an array.

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
"""What a tree may take; more than that is read piece by piece."""
PIECE = 2**16
"""Characters that are read at once: trees of so many take little."""
DEPTH_MAX = 1000
"""Levels that are read; `json` stops at about as many."""
SMALL_BYTES = 2**20
"""A document that is no longer is not large, whatever it holds."""

_SPACE_RE = re.compile(rb"[ \t\n\r]*")
_scan: Callable[[str, int], tuple[Any, int]] = DECODER.scan_once  # type: ignore[attr-defined] # likewise
_space = re.compile(r"[ \t\n\r]*").match


def is_large(document: bytes) -> bool:
    """Say whether a tree of the document might take too much memory; ask if it is not small.

    Each value stands behind a comma or a bracket; those within strings are counted too, which only
    makes a document be read piece by piece that need not be.  The weights are measured: of a tuple
    or dict with its pair, of a list, of a further value.
    """
    size = 250 * document.count(b"{") + 100 * document.count(b"[") + 150 * document.count(b",")
    return size > TREE_BYTES_MAX


def streamed(
    document: bytes, judge: Callable[[Members], Flaw | None], *, piece: int = PIECE
) -> Flaw | None:
    """Let `judge` read the members of a document; name its flaw, or what keeps it from being JSON.

    The first flaw in the order of the document is named, so what stands behind it may be anything.

    Args:
        document: the bytes of a file or row.
        judge: reads members to their end, or returns a flaw.
        piece: characters that are read at once where whole values end within them.
    """
    spaces = _SPACE_RE.match(document)
    assert spaces is not None
    start = document[spaces.end() : spaces.end() + 1]
    if start == b"[":
        detail = "expected a JSON object, found an array"
        return Flaw(reason=Reason.NOT_OBJECT, field="", detail=detail)
    if start != b"{":  # a scalar, white space or no JSON: no tree comes of it
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
    """Read everything, whatever it is."""
    for _, depth in values(members):
        if depth > DEPTH_MAX:
            return Flaw(reason=Reason.TOO_DEEP, field="", detail="nested too deeply to be read")
    return None


def values(value: Part) -> Iterator[tuple[Part, int]]:
    """Walk over a value, all keys and all values in it, in their order, each with its depth.

    A container comes before what it holds; whoever stops there need not fear its depth.
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
    """Return where the white space from `at` on ends."""
    if text[at : at + 1] > " ":
        return at
    found = _space(text, at)
    assert found is not None
    return found.end()


class _Cursor:
    """How far a text has been read."""

    __slots__ = ("_piece", "_try_at", "at", "text")

    def __init__(self, text: str, piece: int) -> None:
        self.text = text
        self.at = self._try_at = 0
        self._piece = piece

    def piece(self, brackets: str) -> Any:  # noqa: ANN401 - what json makes of it
        """Read the next values of a container at once, as a tree; nothing if that cannot be had.

        The text up to a comma that is near enough may be some whole values, or end within one: it
        is put into brackets of its own, and if that is JSON, it is values.
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
        self._try_at = end  # so that all attempts together take time proportional to the text
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
        """Read what stands behind a value: a comma, or the bracket that ends the container."""
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
        """Read the end of a container that holds nothing, if it stands here."""
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
# To be asked by isinstance: `list | Elements` would be made anew each time.
OBJECTS = (tuple, Members)
ARRAYS = (list, Elements)
CONTAINERS = (list, tuple, Elements, Members)
