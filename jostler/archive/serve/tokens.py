"""Opaque tokens in URLs: the id of a file, the name of a bundle, and the cursor of a result list.

**Invariant:** `parse(format(x)) == x`, and any other text raises ValueError.  A token holds names
only, no secret and no right: it may name anything, and whatever it names is looked up as a query.

Pure.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, TypeVar

import msgspec

from jostler.archive.files import Position

if TYPE_CHECKING:
    from jostler.archive.files import File

TOKEN_MAX = 4096
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileId:
    """What identifies one stored file.

    Attributes:
        hash: in hexadecimal; empty when the index has none.
        node: the node that stored it.
        filename: the Filename of its row.
        datatype: its datatype.
        day: the day of its folder.
    """

    hash: str
    node: str
    filename: str
    datatype: str
    day: date

    @classmethod
    def of(cls, file: File) -> FileId:
        """Return the id of a file."""
        return cls(file.hash, file.node, file.filename, file.datatype, file.origin.day)

    @classmethod
    def parse(cls, token: str) -> FileId:
        """Read a token.

        Raises:
            ValueError: it is not a file's.
        """
        digest, node, filename, datatype, day = _decode(token, tuple[str, str, str, str, date])
        return cls(digest, node, filename, datatype, day)

    def __str__(self) -> str:
        return _encode((self.hash, self.node, self.filename, self.datatype, self.day))

    def is_of(self, file: File) -> bool:
        """Return whether a file is this one."""
        return FileId.of(file) == self


@dataclass(frozen=True, slots=True)
class BundleId:
    """What identifies one bundle: its datatype, node and day, and its index object."""

    index: str
    datatype: str
    node: str
    day: date

    @classmethod
    def of(cls, file: File) -> BundleId:
        """Return the id of the bundle that a file lies in."""
        origin = file.origin
        return cls(origin.index, origin.datatype, origin.node, origin.day)

    @classmethod
    def parse(cls, token: str) -> BundleId:
        """Read a token.

        Raises:
            ValueError: it is not a bundle's.
        """
        return cls(*_decode(token, tuple[str, str, str, date]))

    def __str__(self) -> str:
        return _encode((self.index, self.datatype, self.node, self.day))


def cursor(position: Position) -> str:
    """Return the cursor of the results that come after a position."""
    return _encode(tuple(position))


def parse_cursor(token: str) -> Position:
    """Read a cursor.

    Raises:
        ValueError: it is not a cursor.
    """
    day, index_name, line = _decode(token, tuple[date, str, int])
    return Position(day, index_name, line)


def _encode(parts: tuple[object, ...]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).rstrip(b"=").decode()


def _decode(token: str, kind: type[T]) -> T:
    if len(token) > TOKEN_MAX:
        raise ValueError("the token is too long")
    try:
        packed = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), b"-_", True)
        found = msgspec.json.decode(packed, type=kind)
    except (binascii.Error, UnicodeError, msgspec.DecodeError) as exc:
        raise ValueError("the token is not one of this archive") from exc
    if isinstance(found, tuple) and _encode(found) == token:
        return found
    raise ValueError("the token is not one of this archive")
