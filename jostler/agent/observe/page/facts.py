"""Read the status document, of which any part may be missing.

**Invariant:** a missing or malformed part reads as empty, so that the page shows all other parts;
people look at it most when something is wrong.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Facts = Mapping[str, object]
REST = "/status.json"
"""Where the rows are that a table of the page leaves out."""


def mapping(value: object) -> Facts:
    """Return an object's members."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    """Return a list's items."""
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def several(value: object) -> list[Facts]:
    """Return the objects of a list."""
    return [item for item in sequence(value) if isinstance(item, Mapping)]


def total(value: object) -> int:
    """Return a count, or the sum of an object's counts."""
    if isinstance(value, Mapping):
        return sum(total(part) for part in value.values())
    return value if isinstance(value, int) else 0
