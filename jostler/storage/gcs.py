"""A bucket of Google Cloud Storage, through the official client.

**Invariant:** objects are created with `if_generation_match=0`, so no object is overwritten.  After
a 412 the stored upload id is compared with ours, so an upload whose reply was lost is no error.

Requests are retried only if `patience_s` is set.  In the agent only `jostler.bundle.commit` retries
uploads, because it knows when to stop.
"""

from __future__ import annotations

import http.client
import os
from contextlib import contextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

# Even without tracing the client requests the bucket's metadata, on its own thread.  That needs a
# permission that an uploader seldom has, and each 403 would appear in the audit log.
os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")

import orjson
import requests.exceptions
import urllib3.exceptions
from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.cloud import storage
from google.cloud.exceptions import GoogleCloudError
from google.cloud.storage.retry import DEFAULT_RETRY

from jostler.errors import (
    AuthError,
    ConflictError,
    MissingError,
    QuotaError,
    RefusedError,
    StorageError,
    TransientError,
)
from jostler.storage.bucket import NO_METADATA, ObjectInfo, StoredObject, content_type, upload_id
from jostler.storage.causes import cause
from jostler.storage.multipart import upload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

CONNECT_S = 5.0
READ_S = 60.0
PAGE = 1000
ANSWER_MOST = 200
_QUOTA_REASONS = {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"}


class GcsStorage:
    """One bucket.  STORAGE_EMULATOR_HOST (a URL with scheme) selects another server.

    Args:
        bucket: its name.
        patience_s: how long a failing request is retried; 0 for no retry.

    Raises:
        AuthError: no credentials can be found.
    """

    def __init__(self, bucket: str, patience_s: float = 0.0) -> None:
        self.url = f"gs://{bucket}"
        self._name = bucket
        self._host = "Cloud Storage"
        retry = DEFAULT_RETRY.with_timeout(patience_s) if patience_s else None
        self._how: dict[str, Any] = {"timeout": (CONNECT_S, READ_S), "retry": retry}
        with self._asking():
            emulated = bool(os.environ.get("STORAGE_EMULATOR_HOST"))
            self._client = storage.Client(project="emulated" if emulated else None)
            self._bucket = self._client.bucket(bucket)
            base = self._client._connection.API_BASE_URL  # noqa: SLF001 - shown nowhere else
            self._base = str(base)
            self._host = urlsplit(self._base).netloc

    def put_new(
        self, name: str, data: bytes, metadata: Mapping[str, str], *, digest: str = ""
    ) -> None:
        """Upload on condition that no object exists; on 412 compare the stored upload id."""
        digest = digest or upload_id(data)
        try:
            # With this precondition a repetition is safe: if the request before was carried out and
            # only its reply was lost, this one gets a 412
            # (cloud.google.com/storage/docs/retry-strategy).
            self._upload(name, data, {**metadata, "upload-id": digest}, generation=0)
        except ConflictError:
            if self.upload_id(name) != digest:
                raise

    def upload_id(self, name: str) -> str | None:
        """Read the id from the object's metadata; without metadata it is empty."""
        with self._asking(name):
            blob = self._bucket.get_blob(name, **self._how)
            return None if blob is None else str((blob.metadata or {}).get("upload-id", ""))

    def read(self, name: str, version: str = "") -> StoredObject:
        """Download an object and its generation; `version` selects one generation."""
        blob = self._blob(name, version)
        with self._asking(name):
            # raw_download: else the client would inflate an object with Content-Encoding gzip, and
            # its bytes would not be those that offsets and upload id are about.
            data = blob.download_as_bytes(raw_download=True, **self._how)
            if blob.generation is None:  # not every server sends the x-goog-generation header
                blob.reload(**self._how)
            return StoredObject(data, str(blob.generation))

    def read_range(self, name: str, offset: int, length: int, version: str = "") -> bytes:
        """Download a part of an object with one ranged request."""
        blob = self._blob(name, version)
        with self._asking(name):
            data: bytes = blob.download_as_bytes(
                start=offset,
                end=offset + length - 1,
                raw_download=True,
                checksum=None,  # the stored checksum is the whole object's
                **self._how,
            )
        return data

    def replace(
        self, name: str, data: bytes, version: str, metadata: Mapping[str, str] = NO_METADATA
    ) -> None:
        """Upload on condition that the generation is still `version`."""
        described = {**metadata, "upload-id": upload_id(data)}
        self._upload(name, data, described, generation=int(version))

    def _upload(
        self, name: str, data: bytes, metadata: Mapping[str, str], *, generation: int
    ) -> None:
        retry = self._how["retry"]
        with _bucket_exists(self.url), self._asking(name):
            (retry(upload) if retry else upload)(
                self._client,
                self._name,
                name,
                data,
                content_type=content_type(name),
                metadata=metadata,
                generation=generation,
                timeout=self._how["timeout"],
            )

    def metadata(self, name: str, version: str = "") -> Mapping[str, str]:
        """Ask for an object's metadata."""
        blob = self._blob(name, version)
        with self._asking(name):
            blob.reload(**self._how)
            return dict(blob.metadata or {})

    def list(
        self, prefix: str, start: str = "", end: str = "", *, metadata: bool = False
    ) -> Iterator[ObjectInfo]:
        """List page by page; request only the fields that are used."""
        # Listings are strongly consistent: an object whose upload was confirmed is in every listing
        # that begins later (cloud.google.com/storage/docs/consistency).
        fields = "name,generation,size,metadata" if metadata else "name,generation,size"
        with _bucket_exists(self.url), self._asking(prefix):
            for blob in self._client.list_blobs(
                self._name,
                prefix=prefix,
                start_offset=start or None,
                end_offset=end or None,
                fields=f"items({fields}),nextPageToken",
                page_size=PAGE,
                **self._how,
            ):
                described = dict(blob.metadata or {}) if metadata else {}
                yield ObjectInfo(blob.name, int(blob.size or 0), str(blob.generation), described)

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """List names and creation times; a new generation has a new creation time."""
        with _bucket_exists(self.url), self._asking(prefix):
            for blob in self._client.list_blobs(
                self._name,
                prefix=prefix,
                fields="items(name,timeCreated),nextPageToken",
                page_size=PAGE,
                **self._how,
            ):
                yield blob.name, blob.time_created.astimezone(UTC)

    def folders(self, prefix: str) -> tuple[str, ...]:
        """List with a delimiter."""
        with _bucket_exists(self.url), self._asking(prefix):
            pages = self._client.list_blobs(
                self._name,
                prefix=prefix,
                delimiter="/",
                fields="prefixes,nextPageToken",
                page_size=PAGE,
                **self._how,
            )
            for _ in pages:
                pass
            return tuple(sorted(f.removeprefix(prefix).rstrip("/") for f in pages.prefixes))

    def beside(self, prefix: str) -> tuple[str, ...]:
        """List with a delimiter."""
        with _bucket_exists(self.url), self._asking(prefix):
            blobs = self._client.list_blobs(
                self._name,
                prefix=prefix,
                delimiter="/",
                fields="items(name),nextPageToken",
                page_size=PAGE,
                **self._how,
            )
            return tuple(sorted(blob.name for blob in blobs))

    def remove(self, name: str, version: str = "") -> None:
        """Delete an object; with `version`, only that generation."""
        condition = {"if_generation_match": int(version)} if version else {}
        try:
            with self._asking(name):
                self._bucket.blob(name).delete(**condition, **self._how)
        # Gone before, by this keeper or another one: the caller wanted no more.
        except MissingError:
            return

    def clock(self) -> datetime | None:
        """Return the Date header of the answer to a small request."""
        asked: Any = self._client._http  # noqa: SLF001 - the client shows no header of an answer
        with self._asking():
            answer = asked.get(
                f"{self._base}/storage/v1/b/{self._name}?fields=name", timeout=self._how["timeout"]
            )
            date = answer.headers.get("Date")
            return parsedate_to_datetime(date) if date else None

    def _blob(self, name: str, version: str) -> Any:  # noqa: ANN401 - the library has no types
        return self._bucket.blob(name, generation=int(version) if version else None)

    @contextmanager
    def _asking(self, name: str = "") -> Iterator[None]:
        """Translate all exceptions of the client and its HTTP stack into StorageErrors."""
        try:
            yield
        except _RAISED as exc:
            raise _ours(f"{self.url}/{name}" if name else self.url, self._host, exc) from exc


# Each package of the HTTP stack lets some exceptions of the packages below it through: a truncated
# body raises urllib3's error, a malformed status line http.client's.  The last four come from the
# client's own code when an answer has status 200 but is not a JSON object, as a proxy's page.
_RAISED = (
    api.GoogleAPIError,
    auth.GoogleAuthError,
    storage.exceptions.DataCorruption,
    storage.exceptions.InvalidResponse,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,  # the errors of requests and ssl are OSErrors
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
)


def _ours(what: str, host: str, exc: Exception) -> StorageError:
    """Return the StorageError for an exception, with a hint for the operator."""
    reason = cause(exc, host)
    hint = "check network and DNS"
    match exc:
        case api.RetryError(cause=Exception() as last):  # retried for `patience_s` in vain
            return _ours(what, host, last)
        case GoogleCloudError():
            return _of_status(what, host, exc)
        case auth.GoogleAuthError() if not isinstance(exc, auth.TransportError):
            reason = " ".join(str(exc.args[0] if exc.args else exc).split())
            hint = "set up Workload Identity or GOOGLE_APPLICATION_CREDENTIALS"
            return AuthError(f"{what}: {reason}", hint=hint, cause=reason)
        case storage.exceptions.DataCorruption():
            reason = f"{host} sends bytes that do not have their checksum"
            hint = "they changed on the way: look at proxies"
        case OSError(filename=str()):  # a local file: the credentials
            hint = "can the file of the credentials be read?"
            return AuthError(f"{what}: {reason}", hint=hint, cause=reason)
        case requests.exceptions.InvalidJSONError():
            reason, hint = _not_gcs(host, exc)
        case OSError() | urllib3.exceptions.HTTPError() | http.client.HTTPException():
            pass
        case auth.TransportError():
            pass
        case _:
            reason, hint = _not_gcs(host, exc)
    return TransientError(f"{what}: {reason}", hint=hint, cause=reason)


def _not_gcs(host: str, exc: Exception) -> tuple[str, str]:
    reason = f"{host} gives an answer that is not Cloud Storage's ({type(exc).__name__})"
    return reason, "does a proxy or a login page stand in between?"


def _of_status(what: str, host: str, exc: GoogleCloudError) -> StorageError:
    status = int(exc.code or 0)
    reason = _answered(what, host, exc)
    message = f"{what}: {reason}"
    # Upload errors have the server's reason only in their text.
    over_quota = any(reason in f"{exc.message} {exc.errors}" for reason in _QUOTA_REASONS)
    kind: type[StorageError] = TransientError
    hint = "wait; if it lasts, look at the provider's status page"
    if isinstance(exc, api.PreconditionFailed):
        kind, hint = ConflictError, ""
    elif isinstance(exc, api.NotFound):
        kind, hint = MissingError, ""
    elif status == 429 or over_quota:  # noqa: PLR2004 - the HTTP status itself
        kind, hint = QuotaError, "slower uploads, or a higher quota"
    elif status in {401, 403}:
        kind = AuthError
        hint = "grant roles/storage.objectUser on the bucket (or objectCreator and objectViewer)"
    elif 0 < status < 500 and status != 408:  # noqa: PLR2004 - as above
        kind, hint = RefusedError, "time will hardly mend this; look at the request"
    return kind(message, hint=hint, cause=reason)


def _answered(what: str, host: str, exc: GoogleCloudError) -> str:
    """Describe a server's answer, with its own message if any, without the object's name."""
    code = int(exc.code or 0)
    phrase = http.client.responses.get(code, "")
    reason = f"{host} answers HTTP {code} {phrase}".rstrip()
    text = str(getattr(exc.response, "text", "") or "")
    try:
        answer = str(orjson.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError):  # a proxy's page, or nothing
        answer = "" if text.lstrip().startswith("<") else text
    _, _, name = what.removeprefix("gs://").partition("/")
    if name:
        answer = answer.replace(name, "the object")
    answer = " ".join(answer.split())[:ANSWER_MOST]
    return f"{reason}: {answer}" if answer and answer != phrase else reason


@contextmanager
def _bucket_exists(what: str) -> Iterator[None]:
    """Translate a 404: in a request that names no object, it means that the bucket is missing."""
    try:
        yield
    except MissingError as exc:
        reason = f"there is no bucket {what}"
        hint = f"does the bucket of {what} exist?"
        raise RefusedError(f"{exc} ({reason})", hint=hint, cause=reason) from exc
