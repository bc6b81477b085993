"""A feed: what to fetch, how often, and what its files are called.

**Invariant:** `shown_url` and `Header.shown` have no secret; whatever is printed, logged, served or
archived uses them.  The `repr` of a feed has none, either.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit, urlunsplit

MASK = "***"


class Shape(StrEnum):
    """What a file of a feed contains."""

    JSON = "json"
    """The body itself, which must be one JSON object; untouched."""
    WRAPPED = "wrapped"
    """One JSON object about the answer, with the body in base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header of each request.

    Attributes:
        name: the header's name.
        value: what is sent; never shown.
        source: where the value is from, `env NAME` or `file PATH`; empty if the configuration has
            the value itself.
    """

    name: str
    value: str = field(repr=False)
    source: str = ""

    @property
    def shown(self) -> str:
        """The value's mask and where the value is from."""
        return f"{MASK} ({self.source})" if self.source else MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One feed; attributes are named after the keys of the configuration.

    Attributes:
        id: its name, which is the datatype of its files.
        url: http or https; may contain secrets.
        every_s: the time between two fetches.
        timeout_s: the time for one fetch, redirects included.
        shape: the key `as`.
        dedup: whether a body that equals the last one is skipped.
        prefix: the beginning of its files' names.
        postfix: the end of its files' names.
    """

    id: str
    url: str = field(repr=False)
    every_s: float
    timeout_s: float
    headers: tuple[Header, ...] = ()
    shape: Shape = Shape.JSON
    dedup: bool = True
    prefix: str
    postfix: str

    def shown(self) -> dict[str, Any]:
        """Return the configuration of this feed with secrets masked, as it would stand in JSON."""
        return {
            "id": self.id,
            "url": shown_url(self.url),
            "every": f"{self.every_s:g}s",
            "timeout": f"{self.timeout_s:g}s",
            "headers": {header.name: header.shown for header in self.headers},
            "as": str(self.shape),
            "dedup": self.dedup,
            "prefix": self.prefix,
            "postfix": self.postfix,
        }


def shown_url(url: str) -> str:
    """Return a URL without user, password, fragment and values of its query.

    Services often expect their key in the query, and no rule finds out which value is the key.
    """
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    netloc = f"{MASK}@{host}" if "@" in parts.netloc else host
    query = "&".join(_masked(pair) for pair in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def _masked(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={MASK}" if equals else MASK
