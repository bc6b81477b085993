"""Reading the status document, which may lack any part of itself.

**Invariant:** a missing or unexpected part reads as empty: the page shows what there is, since it
is looked at most when something is wrong.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Facts = Mapping[str, object]


def mapping(value: object) -> Facts:
    """Return an object's members."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    """Return a list's items."""
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def several(value: object) -> list[Facts]:
    """Return the objects of a list."""
    return [item for item in sequence(value) if isinstance(item, Mapping)]


def text(value: object) -> str:
    """Return a string; a number as it is written; anything else as nothing."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def total(value: object) -> int:
    """Return a count, or the sum of an object's counts."""
    if isinstance(value, Mapping):
        return sum(total(part) for part in value.values())
    return value if isinstance(value, int) else 0
