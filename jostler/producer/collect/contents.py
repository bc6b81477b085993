"""The file of an answer: its content, its name, and whether the agent would take it.

**Invariant:** the content of a feed `as = "json"` is the body, byte for byte.

Pure.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import orjson

from jostler.producer.checking import Checks
from jostler.producer.collect.answers import Failure, FetchError, too_big
from jostler.producer.collect.feeds import Shape
from jostler.producer.naming import timed_name

if TYPE_CHECKING:
    from jostler.producer.collect.answers import Answer
    from jostler.producer.collect.feeds import Feed


def content_of(feed: Feed, answer: Answer) -> bytes:
    """Return the content of the file."""
    if feed.shape is Shape.JSON:
        return answer.body
    return orjson.dumps(
        {
            "URL": answer.url,
            "FetchedAt": answer.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "Status": answer.status,
            "ContentType": answer.content_type,
            "ETag": answer.validators.etag,
            "Content": base64.b64encode(answer.body).decode(),
        }
    )


def filename_of(feed: Feed, answer: Answer) -> str:
    """Return the path below the feed's directory, `yyyy/mm/dd/<name>`, by the answer's time."""
    name = timed_name(answer.at, answer.body, prefix=feed.prefix, postfix=feed.postfix)
    return f"{answer.at:%Y/%m/%d}/{name}"


def check(feed: Feed, filename: str, content: bytes, most_bytes: int) -> None:
    """Check that the agent would take the file, whatever the schema of its datatype.

    A body that does not fit the schema is saved: others publish it, and may change it at any time;
    the agent puts it into rejected1, from where it can be had again.

    Raises:
        FetchError: it would not.
    """
    checks = Checks.of(feed.id, None, max_bytes=most_bytes)
    rejection = checks.rejection(content, filename)
    if rejection is None:
        return
    if rejection.reason == "too-big":
        raise too_big(most_bytes)
    raise FetchError(Failure.NOT_JSON, f"the body is not one JSON object: {rejection.detail}")
