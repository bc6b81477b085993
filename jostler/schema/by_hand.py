"""Read JSON that people write, and quote what stands in it.

**Invariant:** what is accepted means one thing: no key stands twice, and there is no NaN.

Pure.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

_SHOWN = 60


def read_json(data: bytes) -> Any:  # noqa: ANN401 - parsed JSON
    """Read a JSON document, with or without a byte order mark.

    Raises:
        ValueError: it is no JSON document, or a key stands twice in one object.
    """
    try:
        return json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_refuse
        )
    except RecursionError:
        raise ValueError("nested too deeply to be read") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = sorted(key for key, _ in pairs)
        twice = next(key for key, later in pairwise(keys) if key == later)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def shown(value: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Write a value as it stands in a problem's sentence, cut if it is long."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
