"""A request and its reply as plain values, so that no resource knows the web framework.

**Invariant:** a `Call` is whole: its body has been read, its path variables are decoded.

It refuses bodies that are no JSON object where one is wanted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from embedded.model.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request; header names are lower case."""

    method: str
    path: str
    url: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Json:
        """Return the body's JSON object.

        Raises:
            ApiError: the body is something else.
        """
        return json_object(self.body)

    def flag(self, name: str) -> bool:
        """Return a Boolean of the query string; absent is false."""
        return self.query.get(name, "").lower() in {"true", "1"}

    def number(self, name: str, default: int) -> int:
        """Return a count of the query string.

        Raises:
            ApiError: it is no count.
        """
        text = self.query.get(name) or str(default)
        if not text.isdecimal():
            raise invalid(f"Invalid value for {name}: {text!r} is not a count")
        return int(text)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; None is sent as an empty body."""

    payload: Json | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def json_object(data: bytes) -> Json:
    """Parse `data` as one JSON object.

    Raises:
        ApiError: it is something else.
    """
    try:
        parsed = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError as exc:
        raise invalid(f"Invalid JSON payload received: {exc}") from exc
    if not isinstance(parsed, dict):
        raise invalid("Invalid JSON payload received: not an object")
    return parsed


def page(items: list[Json], call: Call, *, default: int = 1000) -> tuple[list[Json], Json]:
    """Cut one page out of `items`: the page, and the `nextPageToken` if there is more.

    Raises:
        ApiError: the page token is not one of ours.
    """
    start = call.number("pageToken", 0)
    end = start + (call.number("maxResults", default) or default)
    more: Json = {"nextPageToken": str(end)} if end < len(items) else {}
    return items[start:end], more
