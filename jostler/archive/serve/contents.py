"""The content of a stored file as a download: its bytes, their type, their encoding.

Pure, but for the reader that the caller passes in.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
from typing import TYPE_CHECKING, NamedTuple

import orjson

from jostler.format.names import REJECTED

if TYPE_CHECKING:
    from jostler.archive.catalogue import File

JSON_TYPE = "application/json"
BINARY = "application/octet-stream"
_ENCODINGS = {"gzip": "gzip", "br": "br", "compress": "compress"}


class Download(NamedTuple):
    """The bytes of a file; `encoding` is a Content-Encoding or empty."""

    data: bytes
    content_type: str
    encoding: str


def download(file: File, raw: bytes) -> Download:
    """Return what a download of a file delivers.

    Of a data row that is `raw`.  Of a rejected file it is the file's own bytes, which the row has
    in Content; their type is guessed from the name.

    Args:
        file: the file.
        raw: the column `raw` of its row.
    """
    if file.datatype != REJECTED:
        return Download(raw, JSON_TYPE, "")
    try:
        data = base64.b64decode(orjson.loads(raw)["Content"], validate=True)
    except (orjson.JSONDecodeError, KeyError, TypeError, binascii.Error):
        return Download(raw, JSON_TYPE, "")
    kind, encoding = mimetypes.guess_type(file.name, strict=False)
    if encoding and encoding not in _ENCODINGS:  # a type of file for browsers, such as bzip2
        return Download(data, BINARY, "")
    return Download(data, kind or BINARY, _ENCODINGS.get(encoding or "", ""))
