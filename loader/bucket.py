"""The buckets of a run: jostler.storage with retries and the loader's errors.

**Invariant:** an object is read only at the generation that was listed, so the bytes that are
judged are those in the fingerprint.  Objects are written only below `--staging`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from jostler import errors
from jostler.storage import open_storage
from loader.errors import BucketError, MissingError, NoBucketError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jostler.storage import Storage


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a listing; its `generation` changes whenever its bytes do.

    Its metadata is empty unless the listing was asked for it.
    """

    name: str
    generation: str
    size_bytes: int
    metadata: Mapping[str, str] = field(default_factory=dict)


@cache  # a run uses few buckets
def open_bucket(url: str, patience_s: float) -> Bucket:
    """Open a bucket, once per process: a client must not be used across a fork.

    Args:
        url: `gs://NAME` or `file:///DIR`.
        patience_s: how long a failing request is retried.

    Raises:
        BucketError: there are no credentials.
    """
    with _translated():
        return Bucket(open_storage(url, patience_s))


def split_url(url: str) -> tuple[str, str]:
    """Split `gs://bucket/prefix` into bucket and prefix; a whole `file:` URL is the bucket."""
    if url.startswith("file:"):
        return url, ""
    bucket, _, prefix = url.removeprefix("gs://").partition("/")
    return f"gs://{bucket}", prefix.strip("/")


class Bucket:
    """A bucket.  Every method raises BucketError when a request fails.

    Attributes:
        url: `gs://bucket` or `file:///dir`; an object's URL is `<url>/<name>`.
        storage: for keepers of the archive, who share code with `jostler`; it raises their errors.
    """

    def __init__(self, storage: Storage) -> None:
        self.url = storage.url
        self.storage = self._storage = storage

    def list(
        self, prefix: str, start: str = "", end: str = "", *, metadata: bool = False
    ) -> Iterator[ListedObject]:
        """Yield the objects whose names begin with `prefix` and lie in [start, end), in order.

        Raises:
            NoBucketError: there is no such bucket.
        """
        with self._listing():
            for info in self._storage.list(prefix, start, end, metadata=metadata):
                yield ListedObject(info.name, info.version, info.size_bytes, info.metadata)

    def written(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield name and creation time (Unix) of the objects whose names begin with `prefix`."""
        with self._listing():
            for name, when in self._storage.written(prefix):
                yield name, when.timestamp()

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the folders right below `prefix`, which ends with a slash or is empty."""
        with self._listing():
            return self._storage.folders(prefix)

    def read(self, name: str, generation: str) -> bytes:
        """Return an object's bytes as stored.

        Raises:
            MissingError: it does not exist, or has another generation.
        """
        with _translated():
            return self._storage.read(name, generation).data

    def read_range(self, name: str, start: int, end: int, generation: str) -> bytes:
        """Return the bytes of an object from `start` to before `end`.

        Raises:
            MissingError: it does not exist, or has another generation.
        """
        with _translated():
            return self._storage.read_range(name, start, end - start, generation)

    def write(self, name: str, data: bytes) -> None:
        """Store an object of this run; replace what an earlier attempt stored under the name."""
        with _translated():
            try:
                self._storage.put_new(name, data, {})
            except errors.ConflictError:  # a day planned again in one run may get other copies
                for info in self._storage.list(name):
                    if info.name == name:
                        self._storage.replace(name, data, info.version)

    def remove(self, name: str) -> None:
        """Delete an object; do nothing if there is none."""
        with _translated():
            self._storage.remove(name)

    @contextmanager
    def _listing(self) -> Iterator[None]:
        """Raise NoBucketError for a missing bucket; a directory bucket would seem empty."""
        gone = NoBucketError(f"{self.url}: there is no such bucket")
        if self.url.startswith("file:") and not Path(unquote(urlsplit(self.url).path)).is_dir():
            raise gone
        try:
            with _translated():
                yield
        except BucketError as exc:
            refused = exc.__cause__
            if refused and isinstance(refused.__cause__, errors.MissingError):
                raise gone from exc
            raise


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except errors.MissingError as exc:
        raise MissingError(f"{exc}") from exc
    except errors.StorageError as exc:
        raise BucketError(f"{exc}", hint=exc.hint) from exc
