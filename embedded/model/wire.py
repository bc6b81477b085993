"""Requests and replies as plain values, so that only `app` depends on the web framework.

**Invariant:** a `Call` is complete: its body has been read, and its path variables are decoded.
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
    """A request; the names of its headers are lower-case."""

    method: str
    path: str
    url: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> Json:
        """Return the body as a JSON object.

        Raises:
            ApiError: the body is not a JSON object.
        """
        return json_object(self.body)

    def flag(self, name: str) -> bool:
        """Return a Boolean parameter of the query string; false if it is absent."""
        return self.query.get(name, "").lower() in {"true", "1"}

    def number(self, name: str, default: int) -> int:
        """Return a number, 0 or more, of the query string; `default` if it is absent.

        Raises:
            ApiError: it is not such a number.
        """
        text = self.query.get(name) or str(default)
        if not text.isdecimal():
            raise invalid(f"Invalid value for {name}: {text!r} is not a count")
        return int(text)


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply; a body of None is sent as an empty body."""

    payload: Json | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


def json_object(data: bytes) -> Json:
    """Parse a JSON object.

    Raises:
        ApiError: the data is not a JSON object.
    """
    try:
        parsed = orjson.loads(data or b"{}")
    except orjson.JSONDecodeError as exc:
        raise invalid(f"Invalid JSON payload received: {exc}") from exc
    if not isinstance(parsed, dict):
        raise invalid("Invalid JSON payload received: not an object")
    return parsed


def page(items: list[Json], call: Call, *, default: int = 1000) -> tuple[list[Json], Json]:
    """Return the page of `items` that a call requests, and the `nextPageToken` if more follow.

    Raises:
        ApiError: the page token is not one that this function made.
    """
    start = call.number("pageToken", 0)
    end = start + (call.number("maxResults", default) or default)
    more: Json = {"nextPageToken": str(end)} if end < len(items) else {}
    return items[start:end], more
