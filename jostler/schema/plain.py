"""Plain datatype schemas: those that need no JSON Schema to see that they have the right shape.

**Invariant:** a plain schema is valid by `datatype.schema.json`; the others may be valid or not.

Nearly all are plain.  An agent that reads only such schemas does not import `jsonschema`, which
takes a fifth of the time of a start, and 4 MiB of memory.

Pure: inspects parsed JSON.
"""

from __future__ import annotations

import re

from jostler.schema.fields import ALIASES, TYPES, Mode

_NAME_RE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,299}")
_TYPES = (TYPES | ALIASES.keys()) - {"RANGE"}  # a RANGE needs one key more
_RECORDS = frozenset({"RECORD", "STRUCT"})
_KEYS = frozenset({"name", "type", "mode", "description", "fields"})
_DESCRIPTION_MAX = 1024


def is_plain(found: object) -> bool:
    """Return whether a document is a list of fields in their usual spelling, and at least one."""
    return isinstance(found, list) and bool(found) and all(map(_is_plain_field, found))


def _is_plain_field(field: object) -> bool:
    if not isinstance(field, dict) or not field.keys() <= _KEYS:
        return False
    name, kind, description = field.get("name"), field.get("type"), field.get("description", "")
    return (
        isinstance(name, str)
        and _NAME_RE.fullmatch(name) is not None
        and isinstance(kind, str)
        and kind in _TYPES
        and field.get("mode", "NULLABLE") in tuple(Mode)
        and isinstance(description, str)
        and len(description) <= _DESCRIPTION_MAX
        and (is_plain(field.get("fields")) if kind in _RECORDS else "fields" not in field)
    )
