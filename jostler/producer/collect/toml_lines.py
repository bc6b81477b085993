"""The lines of keys in a TOML document, which tomllib does not report.

A document is split into statements by tomllib itself: lines are added to a statement until it
parses alone.  That is exact, because a statement goes over several lines only within brackets and
multi-line strings, which do not parse while they are open.

**Invariant:** each key of the document, each table and each member of an array of tables has a
line; members of an array that is a value have that of the array.

Pure.
"""

from __future__ import annotations

import tomllib
from typing import Any

Way = tuple[str | int, ...]
"""The way to a value from the document's top: keys, and places in arrays of tables from 0."""


class Lines:
    """The lines of all keys of one document.

    Args:
        text: a document that tomllib accepts.
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Way, int] = {}
        self._arrays: dict[Way, int] = {}
        self._table: Way = ()
        self._read(text)

    def of(self, way: Way) -> int:
        """Return the line, from 1, where a value is set; of the nearest one above if not known."""
        while way and way not in self._lines:
            way = way[:-1]
        return self._lines.get(way, 1)

    def _read(self, text: str) -> None:
        begin, statement = 1, ""
        # As TOML has it, only a line feed ends a line: str.splitlines knows more.
        for number, line in enumerate(text.split("\n"), 1):
            statement += f"{line}\n"
            try:
                found = tomllib.loads(statement)
            except tomllib.TOMLDecodeError:
                continue
            if found:
                self._statement(statement.lstrip(), found, begin)
            begin, statement = number + 1, ""

    def _statement(self, statement: str, found: dict[str, Any], line: int) -> None:
        """Take a header or `key = value`, both of which parse to nested tables."""
        if not statement.startswith("["):
            self._values(found, self._table, line)
            return
        way: Way = ()
        value: object = found
        while isinstance(value, dict) and value:
            ((key, value),) = value.items()
            way = self._last((*way, key))
        if isinstance(value, list):  # [[key]]: one more member
            way = way[:-1] if isinstance(way[-1], int) else way
            self._arrays[way] = self._arrays.get(way, -1) + 1
            self._lines.setdefault(way, line)
            way = self._last(way)
        self._table = way
        self._lines.setdefault(way, line)

    def _last(self, way: Way) -> Way:
        """Go on to the last member of an array of tables."""
        return (*way, self._arrays[way]) if way in self._arrays else way

    def _values(self, found: dict[str, Any], above: Way, line: int) -> None:
        for key, value in found.items():
            way = (*above, key)
            self._lines.setdefault(way, line)
            if isinstance(value, dict):
                self._values(value, way, line)
