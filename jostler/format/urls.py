"""URLs of receivers as they may be shown: a path or a query may hold a token.

Pure.
"""

from __future__ import annotations

from urllib.parse import urlsplit


def masked(url: str) -> str:
    """Return a URL without what may be secret: user, password, path and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "a text that is no URL"
    if not parts.scheme or not parts.hostname:
        return "a text that is no URL"
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{rest}"
