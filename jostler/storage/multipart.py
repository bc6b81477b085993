"""Upload an object in one request, without a copy of its bytes.

The client's own upload joins metadata and data by `+` into one body, so that for a moment it holds
the object three times.  With several uploads at once that was the largest part of an agent's
memory.  Here the parts of the same request are sent one after the other, through the client's own
session: https://cloud.google.com/storage/docs/uploading-objects, "multipart upload".

**Invariant:** the server gets the checksum of the bytes with them and refuses others.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import google_crc32c
import orjson
from google.api_core import exceptions as api

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HTTP_OK = 200
_TYPE_OF_METADATA = b"application/json; charset=UTF-8"


class Body:
    """The body of a request: parts that are sent one after the other, as often as is asked.

    requests takes the length from `__len__` and hands each part to the socket as it is.
    """

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parts)


def upload(
    client: Any,  # noqa: ANN401 - the library has no types
    bucket: str,
    name: str,
    data: bytes,
    *,
    content_type: str,
    metadata: Mapping[str, str],
    generation: int,
    timeout: tuple[float, float],
) -> None:
    """Upload an object on condition that it has a generation.

    Args:
        client: of Cloud Storage.
        bucket: the bucket's name.
        name: the object's name.
        data: its bytes.
        content_type: as in MIME.
        metadata: stored with the object.
        generation: that it must have now; 0 if there must be none.
        timeout: seconds to connect and to wait for an answer.

    Raises:
        GoogleAPICallError: the server refuses; other errors of the client and its HTTP stack.
        ValueError, LookupError, TypeError: the answer is not Cloud Storage's.
    """
    boundary = uuid4().hex.encode()  # 122 random bits: the data does not contain it
    crc32c = google_crc32c.value(data).to_bytes(4, "big")
    described = {
        "name": name,
        "contentType": content_type,
        "metadata": metadata,
        # GCS compares it with the bytes that arrive and refuses others
        # (cloud.google.com/storage/docs/data-validation).
        "crc32c": base64.b64encode(crc32c).decode(),
    }
    connection = client._connection  # noqa: SLF001 - the client has no other way to its session
    base = connection.get_api_base_url_for_mtls()
    where = f"{base}/upload/storage/v1/b/{quote(bucket, safe='')}/o"
    answer = client._http.request(  # noqa: SLF001 - as above
        "POST",
        f"{where}?uploadType=multipart&ifGenerationMatch={generation}",
        data=Body(
            _part(boundary, _TYPE_OF_METADATA) + orjson.dumps(described) + b"\r\n",
            _part(boundary, content_type.encode()),
            data,
            b"\r\n--%b--" % boundary,
        ),
        headers={
            "Accept": "application/json",
            "Content-Type": f'multipart/related; boundary="{boundary.decode()}"',
            "User-Agent": connection.user_agent,
        },
        timeout=timeout,
    )
    if answer.status_code != _HTTP_OK:
        raise api.from_http_response(answer)
    if answer.json()["name"] != name:  # a login page, say
        raise ValueError("the answer is about another object")


def _part(boundary: bytes, content_type: bytes) -> bytes:
    return b"--%b\r\ncontent-type: %b\r\n\r\n" % (boundary, content_type)
