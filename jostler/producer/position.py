"""The line of a document on which a field stands, so that a person finds what is wrong.

**Invariant:** any bytes and any path give a line or None, never an exception.

Pure.
"""

from __future__ import annotations

import json
import re

_STEP_RE = re.compile(r"\.?([A-Za-z0-9_-]+)|\[(\d+)\]", re.ASCII)
_SPACE_RE = re.compile(r"[ \t\r\n]*")
_skip = json.JSONDecoder(strict=False).raw_decode


def line_of(document: bytes, path: str) -> int | None:
    """Return the line, from 1, of a field; None if the document has one line, or it is not found.

    Args:
        document: JSON.
        path: as a flaw has it, `Samples[3].RTT`.  Of a field that is absent, the line is that of
            the object in which it should be.
    """
    try:
        text = document.decode()
        if "\n" not in text.strip() or not path:
            return None
        return text.count("\n", 0, _place(text, path)) + 1
    except (ValueError, IndexError, RecursionError):
        return None


def _place(text: str, path: str) -> int:
    """Return where the value at a path begins, or the last container on the way to it.

    Raises:
        ValueError, IndexError: the text is not JSON, or the path is none of plain names.
    """
    place = _after_space(text, 0)
    at = 0
    while at < len(path):
        step = _STEP_RE.match(path, at)
        if not step:
            raise ValueError(path)
        at = step.end()
        name, number = step.groups()
        inner = _member(text, place, name) if name else _element(text, place, int(number))
        if inner is None:
            break
        place = inner
    return place


def _member(text: str, place: int, name: str) -> int | None:
    """Return where the value of an object's member begins; of several the last one's."""
    found = None
    place = _after_space(text, place + 1)
    while text[place] != "}":
        key, place = _skip(text, place)
        place = _after_space(text, _after_space(text, place) + 1)
        if str(key).lower() == name.lower():
            found = place
        place = _after_space(text, _skip(text, place)[1])
        if text[place] == ",":
            place = _after_space(text, place + 1)
    return found


def _element(text: str, place: int, number: int) -> int | None:
    """Return where an array's element begins."""
    place = _after_space(text, place + 1)
    for _ in range(number):
        place = _after_space(text, _skip(text, place)[1])
        if text[place] != ",":
            return None
        place = _after_space(text, place + 1)
    return place


def _after_space(text: str, place: int) -> int:
    found = _SPACE_RE.match(text, place)
    assert found
    return found.end()
