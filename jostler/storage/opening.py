"""Open the bucket that a URL names.

**Invariant:** the GCS client takes 48 MiB of memory, so it is imported only for a GCS bucket.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    with _uncollected():
        from jostler.storage.gcs import GcsStorage  # noqa: PLC0415 - 48 MiB for this kind alone

    return GcsStorage(parts.netloc or parts.path, patience_s)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Import without garbage collection, which would look through the new modules for nothing.

    The client is some 400 modules, and no object of theirs is garbage; 60 collections while they
    are loaded take a twentieth of the CPU time of an agent's start.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _without_grpc() -> Iterator[None]:
    """Import as if grpc were not installed.

    Where it is installed, for the loader, the client's packages import it for other services than
    Cloud Storage, which is asked over HTTP: 9 MB and 30 ms of CPU.
    """
    if "grpc" in sys.modules:
        yield
        return
    # With None in its place an import raises ModuleNotFoundError
    # (docs.python.org/3/reference/import.html, "The module cache").
    sys.modules["grpc"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["grpc"]


class Buckets:
    """The buckets of an agent by URL, each opened once, by whichever thread asks first.

    A process that opens one first cannot use grpc through Google's packages afterwards.
    """

    def __init__(self) -> None:
        self._storages: dict[str, Storage] = {}
        self._lock = threading.Lock()

    def open(self, url: str) -> Storage:
        """Return the bucket of a URL."""
        with self._lock:
            if url not in self._storages:
                with _without_grpc():
                    self._storages[url] = open_storage(url)
            return self._storages[url]
