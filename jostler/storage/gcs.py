"""A bucket of Google Cloud Storage, through the official client.

**Invariant:** objects are created with `if_generation_match=0`, so none is ever overwritten, and a
412 is answered by the stored upload id, so a lost reply is no error.  The library's own retries are
off: `jostler.bundle.commit` alone retries, because it alone knows when to stop.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

# The client asks for the bucket's metadata on a thread of its own although nobody traces;
# this needs a permission an uploader seldom has, and a 403 would lie in the audit log.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")

import requests.exceptions
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud import storage
from google.cloud.exceptions import GoogleCloudError

from jostler.errors import (
    AuthError,
    ConflictError,
    MissingError,
    QuotaError,
    RefusedError,
    StorageError,
    TransientError,
)
from jostler.storage.bucket import ObjectInfo, Stored, content_type, upload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

CONNECT_S = 5.0
READ_S = 60.0
TIMEOUT = (CONNECT_S, READ_S)
_QUOTA_REASONS = {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"}


class GcsStorage:
    """One bucket.  STORAGE_EMULATOR_HOST (with its scheme) leads to another server.

    Raises:
        AuthError: no credentials can be found.
    """

    def __init__(self, bucket: str) -> None:
        self.url = f"gs://{bucket}"
        self._name = bucket
        with _translated(self.url):
            emulated = bool(os.environ.get("STORAGE_EMULATOR_HOST"))
            self._client = storage.Client(project="emulated" if emulated else None)
            self._bucket = self._client.bucket(bucket)

    def put_new(self, name: str, data: bytes, metadata: Mapping[str, str]) -> None:
        """Upload with the precondition that there is no object; on 412 see whose it is."""
        blob = self._bucket.blob(name)
        blob.metadata = {**metadata, "upload-id": upload_id(data)}
        try:
            with _bucket_exists(self.url), _translated(f"{self.url}/{name}"):
                blob.upload_from_string(
                    data,
                    content_type=content_type(name),
                    if_generation_match=0,
                    timeout=TIMEOUT,
                    retry=None,
                )
        except ConflictError:
            if self.upload_id(name) != upload_id(data):
                raise

    def upload_id(self, name: str) -> str | None:
        """Read it from the object's metadata; an object without one has the empty id."""
        with _translated(f"{self.url}/{name}"):
            blob = self._bucket.get_blob(name, timeout=TIMEOUT, retry=None)
        return None if blob is None else str((blob.metadata or {}).get("upload-id", ""))

    def read(self, name: str) -> Stored:
        """Download an object and the generation it had."""
        blob = self._bucket.blob(name)
        with _translated(f"{self.url}/{name}"):
            data = blob.download_as_bytes(raw_download=True, timeout=TIMEOUT, retry=None)
            if blob.generation is None:  # not every server sends the x-goog-generation header
                blob.reload(timeout=TIMEOUT, retry=None)
        return Stored(data, str(blob.generation))

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Download a part of an object with one ranged request."""
        with _translated(f"{self.url}/{name}"):
            data: bytes = self._bucket.blob(name).download_as_bytes(
                start=offset,
                end=offset + length - 1,
                raw_download=True,
                timeout=TIMEOUT,
                retry=None,
                checksum=None,  # the stored checksum is the whole object's
            )
        return data

    def replace(self, name: str, data: bytes, version: str) -> None:
        """Upload with the precondition that the generation is still `version`."""
        blob = self._bucket.blob(name)
        blob.metadata = {"upload-id": upload_id(data)}
        with _bucket_exists(self.url), _translated(f"{self.url}/{name}"):
            blob.upload_from_string(
                data,
                content_type=content_type(name),
                if_generation_match=int(version),
                timeout=TIMEOUT,
                retry=None,
            )

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List page by page."""
        with _bucket_exists(self.url), _translated(f"{self.url}/{prefix}"):
            for blob in self._client.list_blobs(
                self._name,
                prefix=prefix,
                fields="items(name,size),nextPageToken",
                timeout=TIMEOUT,
                retry=None,
            ):
                yield ObjectInfo(blob.name, int(blob.size or 0))

    def remove(self, name: str) -> None:
        """Delete an object."""
        try:
            with _translated(f"{self.url}/{name}"):
                self._bucket.blob(name).delete(timeout=TIMEOUT, retry=None)
        except MissingError:
            return

    def clock(self) -> datetime | None:
        """Take the Date header of an answer that costs nothing."""
        http: Any = self._client._http  # noqa: SLF001 - the client shows no header of an answer
        base = self._client._connection.API_BASE_URL  # noqa: SLF001 - as above
        with _translated(self.url):
            answer = http.get(f"{base}/storage/v1/b/{self._name}?fields=name", timeout=TIMEOUT)
        date = answer.headers.get("Date")
        return parsedate_to_datetime(date) if date else None


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn the library's exceptions into ours, each with what an operator can do."""
    try:
        yield
    except GoogleCloudError as exc:
        raise _of_status(what, exc) from exc
    except (auth.RefreshError, auth.DefaultCredentialsError) as exc:
        hint = "set up Workload Identity or GOOGLE_APPLICATION_CREDENTIALS"
        raise AuthError(f"{what}: {exc}", hint=hint) from exc
    except (
        requests.exceptions.RequestException,
        auth.GoogleAuthError,
        ConnectionError,
        TimeoutError,
    ) as exc:
        raise TransientError(f"{what}: {exc!r}", hint="check network and DNS") from exc
    except storage.exceptions.DataCorruption as exc:
        raise TransientError(f"{what}: {exc}", hint="bytes changed on the way") from exc


def _of_status(what: str, exc: GoogleCloudError) -> StorageError:
    status = int(exc.code or 0)
    message = f"{what}: HTTP {status} {' '.join(str(exc.message).split())[:300]}"
    # Errors of uploads carry the server's reason in their text alone.
    over_quota = any(reason in f"{exc.message} {exc.errors}" for reason in _QUOTA_REASONS)
    error: StorageError
    if isinstance(exc, api.PreconditionFailed):
        error = ConflictError(message)
    elif isinstance(exc, api.NotFound):
        error = MissingError(message)
    elif status == 429 or over_quota:  # noqa: PLR2004 - the HTTP status itself
        error = QuotaError(message, hint="slower uploads, or a higher quota")
    elif status in {401, 403}:
        hint = "grant roles/storage.objectUser on the bucket (or objectCreator and objectViewer)"
        error = AuthError(message, hint=hint)
    elif status == 408 or status >= 500 or not status:  # noqa: PLR2004 - the HTTP status itself
        error = TransientError(message)
    else:
        error = RefusedError(message, hint="time will hardly mend this; look at the request")
    return error


@contextmanager
def _bucket_exists(what: str) -> Iterator[None]:
    """Where no object is asked for, a 404 means that there is no such bucket."""
    try:
        yield
    except MissingError as exc:
        raise RefusedError(str(exc), hint=f"does the bucket of {what} exist?") from exc
