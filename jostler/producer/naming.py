"""Names of files in the spool: names that the agent takes, made of anything.

**Invariant:** every returned name is one that `check_file_name` allows, ends with one of the given
extensions, and has at most `NAME_MAX` characters.

Pure.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING

from jostler.format.names import check_file_name

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

NAME_MAX = 255
"""The longest file name of Linux and of each file system in use there, in bytes."""
HASH_CHARACTERS = 12
NUMBER_DIGITS = 12
"""Digits of the greatest number of a row that a name has room for."""
_OTHERS = re.compile(r"[^A-Za-z0-9:._-]+", re.ASCII)
_DOTS = re.compile(r"\.{2,}")
_NOTHING = "file"


def safe_name(name: str, extensions: Sequence[str] = (".json",)) -> str:
    """Return a name that the agent takes; a name that it takes already is returned as it is.

    Other characters become dashes, dots that follow one another become one, and a name without one
    of the extensions gets the first.  A name that is too long is cut, and a hash of it is added.

    Args:
        name: any text; may contain surrogates for bytes that are not UTF-8.
        extensions: of the files that the agent takes.
    """
    extension = next((end for end in extensions if name.endswith(end)), "")
    stem = name.removesuffix(extension)
    extension = extension or extensions[0]
    return check_file_name(_safe(stem, NAME_MAX - len(extension)) + extension)


def row_stem(name: str, extensions: Sequence[str] = (".json",)) -> str:
    """Return what the names of a file's rows begin with: they are `<stem>.<number>.json`.

    Args:
        name: of the file of rows, without its extension.
        extensions: as in `safe_name`.
    """
    return _safe(name, NAME_MAX - len(f".{'9' * NUMBER_DIGITS}{extensions[0]}"))


def _safe(stem: str, most: int) -> str:
    """Return a stem of allowed characters and of a length that is allowed."""
    safe = _DOTS.sub(".", _OTHERS.sub("-", stem)).strip(".") or _NOTHING
    if len(safe) <= most:
        return safe
    mark = f"-{_hash(stem.encode(errors='surrogateescape'))}"
    return safe[: most - len(mark)].rstrip(".") + mark


def timed_name(when: datetime, content: bytes, *, prefix: str = "", postfix: str = ".json") -> str:
    """Return `<prefix><YYYYMMDD>T<HHMMSS>.<mmm>Z_<hash><postfix>`.

    Args:
        when: aware, in UTC.
        content: the first characters of its SHA-256, in base32, become a part of the name.
        prefix: goes before; letters, digits, `:`, `.`, `_` and `-`.
        postfix: goes after; one of the agent's extensions at its end.
    """
    moment = f"{when:%Y%m%dT%H%M%S}.{when.microsecond // 1000:03d}Z"
    return check_file_name(f"{prefix}{moment}_{_hash(content)}{postfix}")


def other_name(name: str, content: bytes, extensions: Sequence[str] = (".json",)) -> str:
    """Return the name for a file whose own name another content has: with a hash of its content.

    The same name and content give the same result, so a repetition finds its file.
    """
    extension = next((end for end in extensions if name.endswith(end)), "")
    stem = name.removesuffix(extension)
    return safe_name(f"{stem[: NAME_MAX - 40]}.{_hash(content)}{extension}", extensions)


def _hash(content: bytes) -> str:
    digest = base64.b32encode(hashlib.sha256(content).digest())
    return digest[:HASH_CHARACTERS].decode().lower()
