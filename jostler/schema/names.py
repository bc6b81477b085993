"""The check of column names.

**Invariant:** only names by the strict rule of TableFieldSchema are accepted, because not every
BigQuery feature supports flexible column names.

Pure.
"""

from __future__ import annotations

import re

_NAME_RE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_MAX = 300
_FORBIDDEN = (
    "_TABLE_",
    "_FILE_",
    "_PARTITION",
    "_ROW_TIMESTAMP",
    "__ROOT__",
    "_COLIDENTIFIER",
    "_CHANGE_SEQUENCE_NUMBER",
    "_CHANGE_TYPE",
    "_CHANGE_TIMESTAMP",
)


def name_fault(name: str) -> str | None:
    """Return why BigQuery refuses a column's name; None if it accepts the name."""
    if len(name) > _NAME_MAX:
        return f"name has {len(name)} characters, at most {_NAME_MAX} are allowed"
    if not _NAME_RE.fullmatch(name):
        return f"name {name!r} must be letters, digits and underscores, no digit first"
    for prefix in _FORBIDDEN:
        if name.upper().startswith(prefix):
            return f"name {name!r} begins with {prefix}, which BigQuery keeps for itself"
    return None


def twins(names: list[str]) -> list[tuple[str, str]]:
    """Pair each name with an earlier name that differs from it at most in letter case."""
    first: dict[str, str] = {}
    return [
        (name, known)
        for name in names
        if (known := first.setdefault(name.lower(), name)) is not name
    ]
