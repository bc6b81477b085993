"""The rules for a datatype schema that JSON Schema cannot express.

They concern duplicate names, depth, number of columns, and digits of decimals.

**Invariant:** every violation is reported once.  Parts of a wrong shape are skipped, because
`datatype` reports them by the JSON Schema.

Pure: inspects parsed JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostler.schema.fields import Mode, canonical_type
from jostler.schema.names import twins

if TYPE_CHECKING:
    from collections.abc import Iterator

# BigQuery allows 15 levels of RECORDs; `raw` around the datatype's fields is one of them.
DEPTH_MAX = 14
# BigQuery allows 10,000 columns, counting RECORDs and the fields in them.  `date`, `archiver` with
# four fields, and `raw` are seven.
COLUMNS_MAX = 10_000 - 7

# The maximum number of digits before and after the decimal point.
_DECIMAL_LIMITS = {"NUMERIC": (29, 9), "BIGNUMERIC": (38, 38)}


def columns_beyond(found: object) -> list[str]:
    """Return a problem if a datatype schema has more columns than a table may have."""
    number = _number_of_columns(found)
    if number <= COLUMNS_MAX:
        return []
    return [f"(file): {number} columns, at most {COLUMNS_MAX} fit beside date and archiver"]


def problems_in(found: object) -> list[str]:
    """List what is wrong with a datatype schema; each problem begins with its field's path."""
    return list(_fields(found, "", depth=0)) if isinstance(found, list) else []


def _number_of_columns(fields: object) -> int:
    if not isinstance(fields, list):
        return 0
    inside = (
        _number_of_columns(field.get("fields")) for field in fields if isinstance(field, dict)
    )
    return len(fields) + sum(inside)


def label(field: object, index: int) -> str:
    """Return a field's step in a path: its name, followed by `[]` if it is REPEATED."""
    if not isinstance(field, dict) or not isinstance(name := field.get("name"), str):
        return f"[{index}]"
    return f"{name:.300}[]" if _upper(field, "mode") == Mode.REPEATED else f"{name:.300}"


def _fields(fields: list[Any], prefix: str, *, depth: int) -> Iterator[str]:
    named = [(label(field, index), field) for index, field in enumerate(fields)]
    for step, field in named:
        if isinstance(field, dict):
            path = prefix + step
            yield from (f"{path.removesuffix('[]')}: {problem}" for problem in _problems(field))
            yield from _nested(field, path, depth=depth)
    names = [
        name for _, f in named if isinstance(f, dict) and isinstance(name := f.get("name"), str)
    ]
    for name, known in twins(names):
        yield f"{prefix}{name}: a second field of this name, after {known!r}; case is ignored"


def _nested(field: dict[str, Any], path: str, *, depth: int) -> Iterator[str]:
    fields = field.get("fields")
    if not isinstance(fields, list) or not fields:
        return
    if depth == DEPTH_MAX:
        yield f"{path.removesuffix('[]')}: RECORDs nest at most {DEPTH_MAX} deep below raw"
        return
    yield from _fields(fields, path + ".", depth=depth + 1)


def _problems(field: dict[str, Any]) -> Iterator[str]:
    if isinstance(kind := field.get("type"), str) and canonical_type(kind) in _DECIMAL_LIMITS:
        yield from _decimal(field, *_DECIMAL_LIMITS[canonical_type(kind)], canonical_type(kind))


def _decimal(field: dict[str, Any], whole_max: int, scale_max: int, kind: str) -> Iterator[str]:
    precision, scale = _number(field, "precision"), _number(field, "scale")
    if scale is not None and not 0 <= scale <= scale_max:
        yield f"scale of a {kind} must be 0 to {scale_max}, found {scale}"
    elif precision is not None and not 1 <= precision - (scale or 0) <= whole_max:
        yield (
            f"precision less scale of a {kind} must be 1 to {whole_max},"
            f" found {precision} less {scale or 0}"
        )


def _number(field: dict[str, Any], key: str) -> int | None:
    """Read an int64, which REST writes as a string; None if absent or of another shape."""
    found = field.get(key)
    if isinstance(found, str) and found.isascii() and found.isdigit():
        return int(found[:20])
    if isinstance(found, float):
        return int(found) if found.is_integer() else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _upper(field: dict[str, Any], key: str) -> str:
    return text.upper() if isinstance(text := field.get(key), str) else ""
