"""URLs of receivers as they may be shown, for a path or a query may hold a token; and of buckets.

Pure.
"""

from __future__ import annotations

from urllib.parse import urlsplit


def is_bucket_url(text: str) -> bool:
    """Return whether a text is the URL of a bucket, and not a table's name."""
    return text.startswith(("gs://", "file://"))


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
