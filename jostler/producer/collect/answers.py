"""What a fetch ends in: an answer, news that nothing changed, or a failure of one class.

**Invariant:** the words of a failure have no secret and no text longer than a line.

Pure.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from jostler.errors import JostlerError

if TYPE_CHECKING:
    from datetime import datetime


class Failure(StrEnum):
    """Why nothing was saved; the label `class` of the metric."""

    CONNECT = "connect"
    """No connection, or it broke before the answer's body: DNS, TCP, a proxy."""
    TLS = "tls"
    """The server has no valid certificate, or does not speak TLS."""
    TIMEOUT = "timeout"
    """The time of the feed was over."""
    HTTP = "http"
    """What answers does not speak HTTP."""
    STATUS = "status"
    """An answer with another status than 200."""
    REDIRECT = "redirect"
    """A circle, too many, or a target that is not followed."""
    CUT_OFF = "cut-off"
    """The body ended before its end."""
    ENCODING = "encoding"
    """The body's Content-Encoding is unknown or damaged."""
    TOO_BIG = "too-big"
    """The file would be larger than a bundle."""
    NOT_JSON = "not-json"
    """A feed `as = "json"` answered something that is not one JSON object."""
    SPOOL = "spool"
    """The file could not be written."""
    UNFORESEEN = "unforeseen"
    """A fault of jostler; the log has it with its trace."""


class FetchError(JostlerError):
    """A fetch that failed.

    Attributes:
        failure: its class.
        retry_after_s: the time that the server asks to be left alone, in seconds; 0 if none.
    """

    def __init__(self, failure: Failure, words: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(words)
        self.failure = failure
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a conditional request repeats of the last answer; empty where it had none."""

    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        """Whether there is anything to ask by."""
        return bool(self.etag or self.last_modified)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer.

    Attributes:
        at: when its headers arrived: aware, in UTC, whole milliseconds, as in the file's name.
        url: where it came from after redirects, with secrets masked.
        status: 200, or 304 for an answer without body that says that nothing changed.
        content_type: the header, empty if there is none.
        validators: for the next request.
        body: decompressed.
        received_bytes: of the body as it was sent.
    """

    at: datetime
    url: str
    status: int
    content_type: str
    validators: Validators
    body: bytes
    received_bytes: int

    @property
    def unmodified(self) -> bool:
        """Whether the server says that nothing changed."""
        return self.status == HTTPStatus.NOT_MODIFIED

    @property
    def body_hash(self) -> bytes:
        """The SHA-256 of the body."""
        return hashlib.sha256(self.body).digest()


def inflate(body: bytes, most_bytes: int) -> bytes:
    """Decompress gzip, which may have several members.

    Raises:
        FetchError: it is damaged, cut off, or gives more than `most_bytes`.
    """
    parts: list[bytes] = []
    size = 0
    while body:
        member = zlib.decompressobj(wbits=31)
        try:
            parts.append(member.decompress(body, most_bytes + 1 - size))
        except zlib.error as exc:
            raise FetchError(Failure.ENCODING, "the body is not gzip, though it says so") from exc
        size += len(parts[-1])
        if size > most_bytes:
            raise too_big(most_bytes)
        # zlib raises no error for a stream that is cut off: only `eof` shows it.
        if not member.eof:
            raise FetchError(Failure.CUT_OFF, "the gzip body ends before its end")
        body = member.unused_data
    return b"".join(parts)


def too_big(most_bytes: int) -> FetchError:
    """Return the failure of a body that has more bytes than a bundle may have."""
    return FetchError(
        Failure.TOO_BIG,
        f"the body makes a row larger than a bundle of {most_bytes} bytes (-bundle-size-max)",
    )
