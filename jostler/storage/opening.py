"""Open the bucket that a URL names.

**Invariant:** the GCS client takes 48 MiB of memory, so it is imported only for a GCS bucket.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from jostler.storage.bucket import Storage


def open_storage(url: str, patience_s: float = 0.0) -> Storage:
    """Open `gs://bucket`, a bare bucket name, or `file:///directory`.

    Args:
        url: the bucket's URL.
        patience_s: how long a failing request is retried; 0 for no retry.

    Raises:
        ValueError: the URL has another form.
        AuthError: there are no credentials.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        from jostler.storage.directory import DirectoryStorage  # noqa: PLC0415 - either is loaded

        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            raise ValueError(f"{url!r} names no absolute directory; write file:///dir")
        return DirectoryStorage(Path(unquote(parts.path)))
    if parts.scheme not in {"", "gs"} or (parts.scheme == "gs" and parts.path not in {"", "/"}):
        raise ValueError(f"{url!r} is neither a bucket name, gs://bucket nor file:///dir")
    from jostler.storage.gcs import GcsStorage  # noqa: PLC0415 - 48 MiB that a directory never needs

    return GcsStorage(parts.netloc or parts.path, patience_s)


class Buckets:
    """The buckets by URL, each opened once, by whichever thread asks first."""

    def __init__(self) -> None:
        self._storages: dict[str, Storage] = {}
        self._lock = threading.Lock()

    def open(self, url: str) -> Storage:
        """Return the bucket of a URL."""
        with self._lock:
            if url not in self._storages:
                self._storages[url] = open_storage(url)
            return self._storages[url]
