"""What a TableFieldSchema must be beyond its shape: BigQuery's rules for a datatype's fields.

**Invariant:** every breach is reported, each once; parts whose shape is wrong are passed over, as
the meta-schema reports them.

Pure: looks at parsed JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostler.schema.fields import TYPES, Mode, canonical_type
from jostler.schema.names import name_fault, twins

if TYPE_CHECKING:
    from collections.abc import Iterator

# BigQuery nests RECORDs 15 deep, and `raw` around the datatype's fields is one of them.
DEPTH_MAX = 14
DESCRIPTION_MAX = 1024

_RANGE_ELEMENTS = ("DATE", "DATETIME", "TIMESTAMP")
_ROUNDING_MODES = ("ROUNDING_MODE_UNSPECIFIED", "ROUND_HALF_AWAY_FROM_ZERO", "ROUND_HALF_EVEN")
_DECIMALS = ("NUMERIC", "BIGNUMERIC")
_ONLY_FOR = {
    "maxLength": ("STRING", "BYTES"),
    "precision": _DECIMALS,
    "scale": _DECIMALS,
    "roundingMode": _DECIMALS,
    "collation": ("STRING",),
    "rangeElementType": ("RANGE",),
}
# Digits that may stand before the point, and behind it.
_DECIMAL_LIMITS = {"NUMERIC": (29, 9), "BIGNUMERIC": (38, 38)}


def problems_in(found: object) -> list[str]:
    """List what is wrong with a datatype schema, each sentence behind the path of its field."""
    if not isinstance(found, list):
        return []
    if not found:
        return ["(file): a table needs at least one field"]
    return list(_fields(found, "", depth=0))


def label(field: object, index: int) -> str:
    """Name a field in a path: its name, with `[]` behind it when it is REPEATED."""
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
    if isinstance(name := field.get("name"), str) and (fault := name_fault(name)):
        yield fault
    if isinstance(mode := field.get("mode"), str) and mode.upper() not in list(Mode):
        yield f"unknown mode {mode!r:.60}: one of {', '.join(Mode)}"
    description = field.get("description")
    if isinstance(description, str) and len(description) > DESCRIPTION_MAX:
        yield f"description has {len(description)} characters, at most {DESCRIPTION_MAX} fit"
    if "generatedColumn" in field:
        yield "generatedColumn is only for top-level columns, and this field lies below raw"
    if not isinstance(field.get("type"), str):
        return
    kind = canonical_type(field["type"])
    if kind not in TYPES:
        yield f"unknown type {field['type']!r:.60}: one of {', '.join(sorted(TYPES))}"
        return
    yield from _structure(field, kind)
    yield from _parameters(field, kind)


def _structure(field: dict[str, Any], kind: str) -> Iterator[str]:
    fields = field.get("fields", [])
    if kind == "RECORD" and not fields:
        yield "a RECORD needs fields"
    if kind != "RECORD" and fields:
        yield f"only a RECORD has fields, not {kind}"
    for key, kinds in _ONLY_FOR.items():
        if key in field and kind not in kinds and field[key] != "":
            yield f"{key} is only for {' and '.join(kinds)}, not {kind}"
    if kind == "RANGE" and "rangeElementType" not in field:
        yield f"a RANGE needs rangeElementType, one of {', '.join(_RANGE_ELEMENTS)}"


def _parameters(field: dict[str, Any], kind: str) -> Iterator[str]:
    length = _number(field, "maxLength") if kind in _ONLY_FOR["maxLength"] else None
    if length is not None and length < 1:
        yield f"maxLength must be at least 1, found {length}"
    yield from _one_of(field, "roundingMode", _ROUNDING_MODES)
    yield from _one_of(field, "collation", ("", "und:ci"))
    element = field.get("rangeElementType")
    if isinstance(element, dict):
        yield from _one_of(element, "type", _RANGE_ELEMENTS)
    if kind in _DECIMALS:
        yield from _decimal(field, *_DECIMAL_LIMITS[kind], kind)


def _decimal(field: dict[str, Any], whole_max: int, scale_max: int, kind: str) -> Iterator[str]:
    precision, scale = _number(field, "precision"), _number(field, "scale")
    if scale is not None and not 0 <= scale <= scale_max:
        yield f"scale of a {kind} must be 0 to {scale_max}, found {scale}"
    elif precision is not None and not 1 <= precision - (scale or 0) <= whole_max:
        yield (
            f"precision less scale of a {kind} must be 1 to {whole_max},"
            f" found {precision} less {scale or 0}"
        )
    if precision is None and "precision" not in field and "scale" in field:
        yield "scale needs precision"


def _one_of(field: dict[str, Any], key: str, allowed: tuple[str, ...]) -> Iterator[str]:
    if isinstance(text := field.get(key), str) and text not in allowed:
        yield f"unknown {key} {text!r:.60}: one of {', '.join(filter(None, allowed))}"


def _number(field: dict[str, Any], key: str) -> int | None:
    """Read an int64, which REST writes as a string; None when absent or not of that shape."""
    found = field.get(key)
    if isinstance(found, str) and found.isascii() and found.isdigit():
        return int(found[:20])
    if isinstance(found, float):
        return int(found) if found.is_integer() else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _upper(field: dict[str, Any], key: str) -> str:
    return text.upper() if isinstance(text := field.get(key), str) else ""
