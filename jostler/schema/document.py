"""A strict JSON parser (RFC 8259, UTF-8) that keeps duplicate keys and the text of numbers.

**Invariant:** any bytes give a value or a flaw, never an exception.  An object becomes a tuple of
(key, value) pairs in their order, an array a list, a number the bytes of its literal.

Pure.  Does not remove a byte order mark; the code that reads the file does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn, TypeVar

from jostler.schema.flaw import Flaw, Reason

if TYPE_CHECKING:
    from collections.abc import Callable

Object = tuple[tuple[str, "Value"], ...]
Value = None | bool | str | bytes | list["Value"] | Object

T = TypeVar("T")


def parse(document: bytes) -> Object | Flaw:
    """Parse one JSON object; a flaw found here concerns the whole document: its path is empty."""
    if not document.strip(b" \t\r\n"):
        return _flaw(Reason.EMPTY, "expected a JSON object, found nothing")
    value: Value | Flaw = guarded(document, DECODER.decode)
    if isinstance(value, tuple | Flaw):
        return value
    return _flaw(Reason.NOT_OBJECT, f"expected a JSON object, found {_kind(value)}")


def guarded(document: bytes, read: Callable[[str], T]) -> T | Flaw:
    """Return the result of `read` for the document's text, or why it is not strict JSON."""
    try:
        text = document.decode()
        if text.startswith("\ufeff"):
            return _flaw(Reason.NOT_JSON, "a byte order mark before the object")
        return read(text)
    except UnicodeDecodeError as error:
        return _flaw(Reason.NOT_UTF8, f"{error.reason} at byte {error.start}")
    except json.JSONDecodeError as error:
        return _flaw(Reason.NOT_JSON, f"{error.msg} at line {error.lineno} column {error.colno}")
    except NotANumberError as error:
        return _flaw(Reason.NOT_JSON, f"{error} is not JSON")
    except RecursionError:
        return _flaw(Reason.TOO_DEEP, "nested too deeply to be read")


def _kind(value: Value) -> str:
    """Name the kind of a JSON value."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "a string", bytes: "a number", list: "an array"}
    return kinds.get(type(value), "an object")


class NotANumberError(Exception):
    """`NaN`, `Infinity` or `-Infinity` stands where a value should."""


def _refuse(constant: str) -> NoReturn:
    raise NotANumberError(constant)


def _flaw(reason: Reason, detail: str) -> Flaw:
    return Flaw(reason=reason, field="", detail=detail)


# The hooks are functions in C (str.encode, tuple), so no Python code runs per value.  int() is not
# called, because CPython refuses integers of more than 4,300 digits (sys.set_int_max_str_digits).
DECODER = json.JSONDecoder(
    object_pairs_hook=tuple,
    parse_int=str.encode,
    parse_float=str.encode,
    parse_constant=_refuse,
    strict=True,
)
