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
    safe = _DOTS.sub(".", _OTHERS.sub("-", name)).lstrip(".")
    extension = next((end for end in extensions if safe.endswith(end)), "")
    stem = safe.removesuffix(extension) or _NOTHING
    extension = extension or extensions[0]
    if len(stem + extension) > NAME_MAX:
        mark = f"-{_hash(name.encode(errors='surrogateescape'))}"
        stem = stem[: NAME_MAX - len(mark + extension)] + mark
    # A stem that ends with a dot would make two of them.
    return check_file_name(f"{stem.rstrip('.') or _NOTHING}{extension}")


def row_name(name: str, number: int, extensions: Sequence[str] = (".json",)) -> str:
    """Return the name of one row of a file: `<name>.<number>.json`.

    Args:
        name: of the file of rows, without its extension.
        number: of the line, from 1.
        extensions: as in `safe_name`.
    """
    return safe_name(f"{name}.{number}{extensions[0]}", extensions)


def timed_name(when: datetime, content: bytes, *, prefix: str = "", postfix: str = ".json") -> str:
    """Return `<prefix><YYYYMMDD>T<HHMMSS>.<mmm>Z_<hash><postfix>`.

    Args:
        when: aware, in UTC.
        content: what the first characters of its SHA-256, in base32, are part of the name of.
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
