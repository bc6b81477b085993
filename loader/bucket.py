"""A bucket as the loader sees it: listed by the driver, read by executors, staged into.

**Invariant:** an object is read at the generation that was listed or not at all, so what was
judged is what the fingerprint names; no object that is not below `--staging` is ever written.

It refuses nothing itself: what the service answers becomes a BucketError.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from loader.errors import BucketError, MissingError, NoBucketError

# The client asks for the bucket's metadata on a thread of its own although nobody traces.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """An object as a listing shows it; `generation` changes whenever its bytes do."""

    name: str
    generation: str
    size_bytes: int


class Bucket(Protocol):
    """A bucket.  Every method raises BucketError when the bucket cannot be asked.

    Attributes:
        url: `gs://bucket` or `file:///dir`; an object's URL is `<url>/<name>`.
    """

    url: str

    def list(self, prefix: str, start: str = "", end: str = "") -> Iterator[Entry]:
        """Yield the objects whose names begin with `prefix` and lie in [start, end), in order."""
        ...

    def written(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Yield name and Unix time of writing of the objects whose names begin with `prefix`."""
        ...

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the folders right below `prefix`, which ends with a slash or is empty."""
        ...

    def read(self, name: str, generation: str) -> bytes:
        """Return an object's bytes as stored.

        Raises:
            MissingError: it is gone, or of another generation.
        """
        ...

    def write(self, name: str, data: bytes) -> None:
        """Store bytes under a name of our own; the same again is harmless."""
        ...

    def remove(self, name: str) -> None:
        """Delete an object; none of that name is no error."""
        ...


@cache  # a run names few buckets
def open_bucket(url: str, patience_s: float) -> Bucket:
    """Open a bucket; once in each process, for a client must not cross a fork.

    Args:
        url: `gs://NAME` or `file:///DIR`.
        patience_s: how long a request is tried again.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return DirectoryBucket(Path(unquote(parts.path)))
    return GcsBucket(parts.netloc, patience_s)


def split_url(url: str) -> tuple[str, str]:
    """Split `gs://bucket/prefix` into bucket and prefix; a `file:` URL is a bucket as a whole."""
    if url.startswith("file:"):
        return url, ""
    bucket, _, prefix = url.removeprefix("gs://").partition("/")
    return f"gs://{bucket}", prefix.strip("/")


class DirectoryBucket:
    """A directory; an object's generation is made of its inode, its size and its time."""

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._root = root

    def list(self, prefix: str, start: str = "", end: str = "") -> Iterator[Entry]:
        """Walk the directory that the prefix names; names beginning with a dot are at work."""
        if not self._root.is_dir():
            raise NoBucketError(f"{self.url}: there is no such bucket")
        with _translated(f"{self.url}/{prefix}"):
            below = prefix.rpartition("/")[0]
            for path in sorted(self._walk(self._root / below)):
                name = path.relative_to(self._root).as_posix()
                if name.startswith(prefix) and start <= name and (not end or name < end):
                    yield self._entry(name, path)

    def _walk(self, directory: Path) -> Iterator[Path]:
        for folder, folders, files in os.walk(directory):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (Path(folder, name) for name in files if not name.startswith("."))

    def _entry(self, name: str, path: Path) -> Entry:
        seen = path.stat()
        return Entry(name, f"{seen.st_ino}-{seen.st_mtime_ns}", seen.st_size)

    def written(self, prefix: str) -> Iterator[tuple[str, float]]:
        """Tell the time of each file's last change."""
        for entry in self.list(prefix):
            with _translated(f"{self.url}/{entry.name}"):
                yield entry.name, (self._root / entry.name).stat().st_mtime

    def folders(self, prefix: str) -> tuple[str, ...]:
        """List the directories right below."""
        with _translated(f"{self.url}/{prefix}"):
            below = self._root / prefix
            if not below.is_dir():
                return ()
            names = (p.name for p in below.iterdir() if p.is_dir())
            return tuple(sorted(name for name in names if not name.startswith(".")))

    def read(self, name: str, generation: str) -> bytes:
        """Read a file that still is the one that was listed."""
        path = self._root / name
        with _translated(f"{self.url}/{name}"):
            if generation and self._entry(name, path).generation != generation:
                raise MissingError(f"{self.url}/{name}: changed since it was listed")
            return path.read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write beside and rename, so that no reader sees a part."""
        path = self._root / name
        with _translated(f"{self.url}/{name}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f".{path.name}.{os.getpid()}")
            part.write_bytes(data)
            part.rename(path)

    def remove(self, name: str) -> None:
        """Delete a file and the directories that are empty without it."""
        path = self._root / name
        with _translated(f"{self.url}/{name}"):
            path.unlink(missing_ok=True)
        try:
            while (path := path.parent) != self._root:
                path.rmdir()
        except OSError:
            return


class GcsBucket:
    """A bucket of Google Cloud Storage; STORAGE_EMULATOR_HOST leads to another server."""

    def __init__(self, name: str, patience_s: float) -> None:
        from google.cloud import storage  # noqa: PLC0415 - 0.2 s that a directory never needs
        from google.cloud.storage.retry import DEFAULT_RETRY  # noqa: PLC0415 - as above

        self.url = f"gs://{name}"
        emulated = bool(os.environ.get("STORAGE_EMULATOR_HOST"))
        with _translated(self.url):
            self._client = storage.Client(project="emulated" if emulated else None)
        self._bucket = self._client.bucket(name)
        self._how: dict[str, Any] = {"retry": DEFAULT_RETRY.with_timeout(patience_s)}
        self._how["timeout"] = (5.0, 60.0)

    def list(self, prefix: str, start: str = "", end: str = "") -> Iterator[Entry]:
        """List with only the fields that a fingerprint needs."""
        with self._listing(), _translated(f"{self.url}/{prefix}"):
            blobs = self._client.list_blobs(
                self._bucket,
                prefix=prefix,
                start_offset=start or None,
                end_offset=end or None,
                fields="items(name,generation,size),nextPageToken",
                page_size=PAGE,
                **self._how,
            )
            for blob in blobs:
                yield Entry(blob.name, str(blob.generation), int(blob.size or 0))

    def written(self, prefix: str) -> Iterator[tuple[str, float]]:
        """List names and times of creation."""
        with self._listing(), _translated(f"{self.url}/{prefix}"):
            for blob in self._client.list_blobs(
                self._bucket,
                prefix=prefix,
                fields="items(name,timeCreated),nextPageToken",
                page_size=PAGE,
                **self._how,
            ):
                yield blob.name, blob.time_created.timestamp()

    @contextmanager
    def _listing(self) -> Iterator[None]:
        try:
            yield
        except MissingError as exc:  # a listing may be empty; only a bucket can be missing
            raise NoBucketError(f"{self.url}: there is no such bucket") from exc

    def folders(self, prefix: str) -> tuple[str, ...]:
        """List with a delimiter."""
        with self._listing(), _translated(f"{self.url}/{prefix}"):
            pages = self._client.list_blobs(
                self._bucket, prefix=prefix, delimiter="/", page_size=PAGE, **self._how
            )
            for _ in pages:
                pass
        return tuple(sorted(found.removeprefix(prefix).rstrip("/") for found in pages.prefixes))

    def read(self, name: str, generation: str) -> bytes:
        """Download one generation as it is stored; gzip's own sum says whether it is whole."""
        blob = self._bucket.blob(name, generation=int(generation) if generation else None)
        with _translated(f"{self.url}/{name}"):
            data: bytes = blob.download_as_bytes(raw_download=True, **self._how)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Upload; equal names get equal bytes, so no precondition is needed."""
        kind = "application/gzip" if name.endswith(".gz") else "text/plain"
        with _translated(f"{self.url}/{name}"):
            self._bucket.blob(name).upload_from_string(data, content_type=kind, **self._how)

    def remove(self, name: str) -> None:
        """Delete an object."""
        try:
            with _translated(f"{self.url}/{name}"):
                self._bucket.blob(name).delete(**self._how)
        except MissingError:
            return


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise MissingError(f"{what}: there is no such object") from exc
    except OSError as exc:  # requests' own errors are of this kind too
        raise BucketError(f"{what}: {exc}") from exc
    except BucketError:
        raise
    except Exception as exc:  # the library raises errors of three packages that share no base
        if getattr(exc, "code", None) == 404:  # noqa: PLR2004 - the HTTP status itself
            raise MissingError(f"{what}: there is no such object") from exc
        if not type(exc).__module__.startswith("google."):
            raise
        raise BucketError(f"{what}: {' '.join(str(exc).split())[:500]}") from exc
