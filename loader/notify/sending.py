"""Send one event to one receiver.

**Invariant:** only an answer 2xx counts as delivered.  No redirect is followed, nothing of the
answer's body is read, and no error text has more of the URL than its host.

The request is a CloudEvent in the structured mode of the HTTP binding.  It is signed as the
Standard Webhooks specification says (standardwebhooks.com), for which libraries exist.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests

from jostler.storage.causes import cause
from loader.notify.events import CONTENT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loader.notify.events import Event
    from loader.notify.receivers import Receiver

CONNECT_S, ANSWER_S = 3.0, 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of sending an event once.

    Attributes:
        status: the HTTP status; 0 without an answer.
        error: why the event counts as not delivered; empty if it was.
    """

    status: int
    error: str = ""


def headers(event: Event, keys: Iterable[bytes], now_s: int) -> dict[str, str]:
    """Return the request's headers; with keys, one signature by each.

    Args:
        event: the event.
        keys: the receiver's keys; none leaves the request unsigned.
        now_s: Unix time, which is signed too, so that an old request cannot be sent again.
    """
    named = {
        "Content-Type": CONTENT_TYPE,
        "User-Agent": "jostler-load",
        "Webhook-Id": event.id,
        "Webhook-Timestamp": str(now_s),
    }
    signed = b"%b.%d.%b" % (event.id.encode(), now_s, event.body)
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    if digests:
        texts = (f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
        named["Webhook-Signature"] = " ".join(texts)
    return named


def send(
    session: requests.Session, receiver: Receiver, event: Event, keys: Iterable[bytes], now_s: int
) -> Answer:
    """Send an event once; every failure is an answer, never an exception."""
    host = urlsplit(receiver.url).netloc
    try:
        with session.post(
            receiver.url,
            data=event.body,
            headers=headers(event, keys, now_s),
            timeout=(CONNECT_S, ANSWER_S),
            allow_redirects=False,  # else a receiver could lead the loader to any address
            stream=True,  # the body of the answer, however long, stays unread
        ) as found:
            status = found.status_code
    except (requests.RequestException, OSError, ValueError) as exc:
        return Answer(0, cause(exc, host))
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Answer(status)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return Answer(status, f"{host} answers {status}; redirects are not followed")
    return Answer(status, f"{host} answers {status}")
