"""The bucket as agent, archive and loader see it.

**Invariant:** an object is written whole or not at all, and is never overwritten unless its
version is named.  An upload id is the digest of the bytes, so "did my upload arrive?" is answered
by the object itself, even after a restart and even when the reply was lost.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's bytes and the version (GCS: generation) they were read at."""

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing shows it; `version` changes whenever its bytes do."""

    name: str
    size_bytes: int
    version: str


class Storage(Protocol):
    """A bucket.  Every method may be called from several threads at once.

    Every method raises TransientError or one of its kinds when the bucket cannot be asked.

    Attributes:
        url: `gs://bucket` or `file:///dir`; an object's URL is `<url>/<name>`.
    """

    url: str

    def put_new(self, name: str, data: bytes, metadata: Mapping[str, str]) -> None:
        """Create an object; returning means it survives a crash.  Repeating the call is harmless.

        The content type follows from the name: gzip for `.gz`, else JSON.

        Raises:
            ConflictError: `name` already holds different bytes.
        """

    def upload_id(self, name: str) -> str | None:
        """Return the upload id of what `name` holds; None when it holds nothing."""

    def read(self, name: str, version: str = "") -> StoredObject:
        """Return an object whole.

        Args:
            name: of the object.
            version: that it must have; empty for whichever it has.

        Raises:
            MissingError: there is none, or it has another version.
        """

    def read_range(self, name: str, offset: int, length: int, version: str = "") -> bytes:
        """Return `length` bytes of an object from byte `offset`; arguments as for `read`.

        Raises:
            MissingError: there is none, or it has another version.
        """

    def replace(self, name: str, data: bytes, version: str) -> None:
        """Replace an object that still is at `version`.

        Raises:
            ConflictError: it is at another version, or gone.
        """

    def list(self, prefix: str, start: str = "", end: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects whose names begin with `prefix`, in the order of their names.

        Args:
            prefix: of the names.
            start: the first name of interest; empty for the first there is.
            end: the first name that is no longer of interest; empty for none.
        """

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Yield name and time of creation (aware) of the objects below a prefix of names."""

    def folders(self, prefix: str) -> tuple[str, ...]:
        """Return the folders right below `prefix`, which ends with a slash or is empty, sorted."""

    def remove(self, name: str, version: str = "") -> None:
        """Delete an object; none of that name is no error.

        Args:
            name: of the object.
            version: that it must have; empty for whichever it has.

        Raises:
            ConflictError: it has another version.
        """

    def clock(self) -> datetime | None:
        """Return the bucket's own time (aware, seconds); None when it has none of its own."""


def upload_id(data: bytes) -> str:
    """Return the id under which these bytes are stored: BLAKE2b of 16 bytes, in hex."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def content_type(name: str) -> str:
    """Return the content type for an object's name.

    Bundles carry no Content-Encoding: with one, GCS would gunzip them on the way out, and Spark
    and Hadoop would then fail on the suffix (cloud.google.com/storage/docs/transcoding).
    """
    return "application/gzip" if name.endswith(".gz") else "application/json"
