"""The sources of a load job: objects, local files, or the data uploaded with the job.

**Invariant:** a `Source` that `expand` returned existed when the job began.

URIs that BigQuery refuses are errors: two wildcards, a wildcard in the bucket's name, too many URIs
without a manifest.  Objects are read over HTTP from STORAGE_EMULATOR_HOST, never from Google.
"""

from __future__ import annotations

import gzip
import http.client
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast
from urllib.parse import quote, unquote, urlencode, urlsplit

import orjson

from embedded.model.errors import ApiError, invalid, not_found, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_URIS = 10_000  # "Load jobs", quotas
GZIP_MAGIC = b"\x1f\x8b"
TIMEOUT_S = 60.0
BUFFER = 1 << 20
LIST_PAGE = 50  # objects per page of a listing; small, so that short listings use paging too
OK = 200
NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Source:
    """An object or file; `path` is set only for a local file."""

    uri: str
    size_bytes: int
    path: Path | None = None

    def open(self) -> BinaryIO:
        """Open the stored bytes.

        Raises:
            ApiError: the object or file does not exist any more, or the server fails.
        """
        if self.path is not None:
            try:
                return self.path.open("rb", buffering=BUFFER)
            except OSError as exc:
                raise not_found("URI", self.uri) from exc
        bucket, name = _split(self.uri)
        reply = _get(f"/storage/v1/b/{quote(bucket)}/o/{quote(name, safe='')}?alt=media", self.uri)
        return io.BufferedReader(cast("io.RawIOBase", reply), BUFFER)


def expand(uris: list[str]) -> list[Source]:
    """Return every object and file that the URIs match.

    Raises:
        ApiError: a URI matches nothing, or BigQuery does not accept it.
    """
    if not uris:
        raise invalid("Required parameter is missing: sourceUris")
    if len(uris) > MAX_URIS:
        raise invalid(f"Too many source URIs: {len(uris)}, at most {MAX_URIS}")
    return [source for uri in uris for source in _expand(uri)]


def listed(manifests: list[str]) -> list[Source]:
    """Return the sources that manifests list; a manifest is an object with one URI per line.

    Raises:
        ApiError: a line is empty, has a wildcard, or its URI does not exist.
    """
    sources: list[Source] = []
    for manifest in expand(manifests):
        with manifest.open() as file:
            for line in file.read().decode(errors="replace").splitlines():
                if not line or "*" in line:
                    raise invalid(f"Manifest {manifest.uri}: {line!r} is no URI of one object")
                sources += _expand(line)
    return sources


def _expand(uri: str) -> Iterator[Source]:
    if uri.count("*") > 1:
        raise invalid(f"Invalid source URI {uri}: at most one wildcard is allowed")
    if uri.startswith("gs://"):
        yield from _objects(uri)
    elif uri.startswith("file:/") and not urlsplit(uri).netloc:  # Java writes file:/x for file:///x
        yield from _files(uri)
    else:
        raise unsupported(f"Source URI {uri} (neither gs:// nor file:///)")


def _files(uri: str) -> Iterator[Source]:
    path = Path(unquote(urlsplit(uri).path))
    found = [path]
    if "*" in path.name:
        found = sorted(path.parent.glob(path.name))
    elif "*" in str(path):
        raise invalid(f"Invalid source URI {uri}: the wildcard must be in the file's name")
    if not found or not all(item.is_file() for item in found):
        raise not_found("URI", uri)
    for item in found:
        yield Source(item.as_uri(), item.stat().st_size, item)


def _objects(uri: str) -> Iterator[Source]:
    bucket, name = _split(uri)
    if "*" in bucket:
        raise invalid(f"Invalid source URI {uri}: a wildcard must come after the bucket")
    if "//" in name:  # BigQuery replaces several slashes by one, and then does not find the object
        raise not_found("URI", uri)
    prefix, star, suffix = name.partition("*")
    if not star:
        path = f"/storage/v1/b/{quote(bucket)}/o/{quote(name, safe='')}"
        yield Source(uri, int(orjson.loads(_read(path, uri))["size"]))
        return
    found = [
        Source(f"gs://{bucket}/{item['name']}", int(item["size"]))
        for item in _listed(bucket, prefix, uri)
        if item["name"].endswith(suffix) and len(item["name"]) >= len(prefix) + len(suffix)
    ]
    if not found:
        raise not_found("URI", uri)
    yield from found


def _listed(bucket: str, prefix: str, uri: str) -> Iterator[dict[str, str]]:
    token = ""
    while True:
        query = urlencode({"prefix": prefix, "pageToken": token, "maxResults": LIST_PAGE})
        listing = orjson.loads(_read(f"/storage/v1/b/{quote(bucket)}/o?{query}", uri))
        yield from listing.get("items") or []
        token = listing.get("nextPageToken") or ""
        if not token:
            return


def _split(uri: str) -> tuple[str, str]:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    if not bucket or not name:
        raise invalid(f"Invalid source URI {uri}: a bucket and an object are needed")
    return bucket, name


def _read(path: str, uri: str) -> bytes:
    with _get(path, uri) as reply:
        return reply.read()


def _get(path: str, uri: str) -> http.client.HTTPResponse:
    host = os.environ.get("STORAGE_EMULATOR_HOST", "")
    if not host:
        raise unsupported(f"Loading {uri} without STORAGE_EMULATOR_HOST")
    address = urlsplit(host if "//" in host else f"http://{host}")
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip", "Connection": "close"})
        reply = connection.getresponse()
    except (OSError, http.client.HTTPException) as exc:
        raise ApiError("backendError", f"Error while reading {uri}: {exc}") from exc
    if reply.status == NOT_FOUND:
        raise not_found("URI", uri)
    if reply.status != OK:
        raise ApiError("backendError", f"Error while reading {uri}: HTTP {reply.status}")
    return reply


def unpacked(raw: BinaryIO) -> tuple[BinaryIO, bool]:
    """Decompress gzip, which is recognized by the content, not by the name.

    Returns:
        The plain bytes, and whether they were compressed.
    """
    buffered = io.BufferedReader(cast("io.RawIOBase", raw), BUFFER)
    if not buffered.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        return buffered, False
    return cast("BinaryIO", io.BufferedReader(gzip.GzipFile(fileobj=buffered), BUFFER)), True
