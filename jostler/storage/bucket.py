"""The interface to a bucket that agent, archive and loader use.

**Invariant:** an object is written whole or not at all, and is overwritten only by a call that
names its version.  The upload id is the digest of the bytes, so the object itself shows whether an
upload arrived, even after a restart or a lost reply.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


NO_METADATA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's bytes and the version (GCS: generation) at which they were read."""

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing shows it.

    Attributes:
        name: the object's name.
        size_bytes: its size.
        version: it changes whenever the object's bytes do.
        metadata: what it was created with, if the listing was asked for it; else empty.
    """

    name: str
    size_bytes: int
    version: str
    metadata: Mapping[str, str] = field(default_factory=dict)


class Storage(Protocol):
    """A bucket.  Every method may be called from several threads at once.

    Every method raises TransientError or one of its subclasses when a request fails.

    Attributes:
        url: `gs://bucket` or `file:///dir`; an object's URL is `<url>/<name>`.
    """

    url: str

    def put_new(
        self, name: str, data: bytes, metadata: Mapping[str, str], *, digest: str = ""
    ) -> None:
        """Create an object; when this returns, the object is durable.  Repeating it is harmless.

        The content type follows from the name: gzip for `.gz`, bytes for `.bloom`, else JSON.

        Args:
            name: the object's name.
            data: its bytes.
            metadata: short texts by name, which are stored with it.
            digest: the upload id of `data` if the caller knows it; else it is computed.

        Raises:
            ConflictError: `name` already holds different bytes.
        """

    def upload_id(self, name: str) -> str | None:
        """Return the upload id of the object `name`; None if there is no such object."""

    def read(self, name: str, version: str = "") -> StoredObject:
        """Return a whole object.

        Args:
            name: the object's name.
            version: the version that it must have; empty for any.

        Raises:
            MissingError: there is no such object, or it has another version.
        """

    def read_range(self, name: str, offset: int, length: int, version: str = "") -> bytes:
        """Return `length` bytes of an object from byte `offset`; arguments as for `read`.

        Raises:
            MissingError: there is no such object, or it has another version.
        """

    def replace(
        self, name: str, data: bytes, version: str, metadata: Mapping[str, str] = NO_METADATA
    ) -> None:
        """Replace an object and its metadata if it still has this version.

        Raises:
            ConflictError: it has another version, or does not exist.
        """

    def metadata(self, name: str, version: str = "") -> Mapping[str, str]:
        """Return the metadata that an object was created with; arguments as for `read`.

        It is empty for an object that another program stored without.  The upload id may be in it.

        Raises:
            MissingError: there is no such object, or it has another version.
        """

    def list(
        self, prefix: str, start: str = "", end: str = "", *, metadata: bool = False
    ) -> Iterator[ObjectInfo]:
        """Yield the objects whose names begin with `prefix`, in the order of their names.

        Args:
            prefix: the beginning of the names.
            start: the first name to return; empty for no lower bound.
            end: the first name not to return; empty for no upper bound.
            metadata: whether to return the objects' metadata, which makes the answer longer.
        """

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Yield name and creation time (aware) of the objects whose names begin with `prefix`."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted folders directly below `prefix`, which is empty or ends with `/`."""

    def beside(self, prefix: str) -> tuple[str, ...]:
        """Return the sorted names of the objects directly below `prefix`, in none of its folders.

        Args:
            prefix: empty or with a slash at its end.
        """

    def remove(self, name: str, version: str = "") -> None:
        """Delete an object; do nothing if there is none.

        Args:
            name: the object's name.
            version: the version that it must have; empty for any.

        Raises:
            ConflictError: it has another version.
        """

    def clock(self) -> datetime | None:
        """Return the server's time (aware, whole seconds); None if there is no server."""


def new_upload_id() -> hashlib.blake2b:
    """Return a hash object whose `hexdigest` is the upload id of the bytes it was given."""
    return hashlib.blake2b(digest_size=16)


def upload_id(data: bytes) -> str:
    """Return the id under which these bytes are stored: BLAKE2b of 16 bytes, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def content_type(name: str) -> str:
    """Return the content type for an object's name.

    Bundles have no Content-Encoding.  With `gzip`, GCS would decompress them on download
    (cloud.google.com/storage/docs/transcoding), and Spark and Hadoop, which expect compressed
    data because of the suffix `.gz`, would fail.
    """
    if name.endswith(".bloom"):
        return "application/octet-stream"
    return "application/gzip" if name.endswith(".gz") else "application/json"
