"""Fetch a feed over HTTP once: one conditional GET, redirects, and the whole body or a failure.

**Invariant:** an answer is returned only if its body is whole.  A feed's headers go to the origin
of its URL alone.  At most `BIG_AT_ONCE` bodies above `SMALL_BYTES` are in memory at once.

aiohttp's own redirects and decompression are not used: it would send a header such as X-Api-Key to
any host that a redirect names, and accepts gzip that is cut off.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from jostler import build
from jostler.producer.collect.answers import (
    Answer,
    Failure,
    FetchError,
    Validators,
    inflate,
    too_big,
)
from jostler.producer.collect.feeds import shown_url
from jostler.storage.causes import cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.producer.collect.feeds import Feed

REDIRECTS_MAX = 5
SMALL_BYTES = 256 * 1024
BIG_AT_ONCE = 4
KEEP_ALIVE_S = 30.0
DNS_CACHE_S = 60
RETRY_AFTER_MAX_S = 3600.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK, _NOT_MODIFIED = 200, 304


class Room:
    """The memory for one body; a big one must wait until few others are.

    Args:
        big: the places for big bodies.
    """

    def __init__(self, big: asyncio.Semaphore) -> None:
        self._big = big
        self.is_big = False

    async def grow(self) -> None:
        """Wait for a place for a big body, unless there is one already."""
        if not self.is_big:
            await self._big.acquire()
            self.is_big = True

    def give_back(self) -> None:
        """Give the place back."""
        if self.is_big:
            self._big.release()
            self.is_big = False


class Fetcher:
    """Fetches feeds; belongs to one event loop.

    Args:
        most_bytes: the maximum size of a body, decompressed.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._big = asyncio.Semaphore(BIG_AT_ONCE)
        self._session = aiohttp.ClientSession(
            # How many fetches run at once is the caller's business.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=DNS_CACHE_S
            ),
            # A session's cookies would be sent for all feeds of a host, also those with other keys.
            cookie_jar=aiohttp.DummyCookieJar(),
            # One limit for everything, name, connection, redirects and body, is set in `fetch`.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            auto_decompress=False,
            headers={"User-Agent": f"jostler/{build.version()}", "Accept-Encoding": "gzip"},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    @contextmanager
    def room(self) -> Iterator[Room]:
        """Keep the memory for one body until it is written."""
        made = Room(self._big)
        try:
            yield made
        finally:
            made.give_back()

    async def fetch(self, feed: Feed, validators: Validators, room: Room) -> Answer:
        """Fetch a feed.

        Args:
            feed: what to fetch.
            validators: of the last answer; empty for a request without conditions.
            room: where the body lies.

        Raises:
            FetchError: there is no whole answer of status 200, and no 304 to a condition.
        """
        host = urlsplit(feed.url).netloc.rpartition("@")[2]
        try:
            async with asyncio.timeout(feed.timeout_s):
                return await self._follow(feed, validators, room)
        except TimeoutError as exc:
            words = f"{host} has not answered within {feed.timeout_s:g} s"
            raise FetchError(Failure.TIMEOUT, words) from exc
        except aiohttp.ClientPayloadError as exc:
            raise FetchError(Failure.CUT_OFF, f"{host} breaks off the body") from exc
        except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch) as exc:
            raise FetchError(Failure.TLS, cause(exc, host)) from exc
        except aiohttp.ClientResponseError as exc:
            raise FetchError(Failure.HTTP, f"{host} does not speak HTTP") from exc
        except aiohttp.ServerDisconnectedError as exc:
            words = f"{host} closes the connection without an answer"
            raise FetchError(Failure.CONNECT, words) from exc
        except ValueError as exc:  # of aiohttp and yarl; it may repeat the URL
            raise FetchError(Failure.CONNECT, f"{host} cannot be asked by this URL") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise FetchError(Failure.CONNECT, cause(exc, host)) from exc

    async def _follow(self, feed: Feed, validators: Validators, room: Room) -> Answer:
        """Send the request; follow redirects."""
        url = URL(feed.url)
        origin = url.origin()
        headers = _conditions(validators)
        own = {header.name: header.value for header in feed.headers}
        seen = {url}
        for _ in range(REDIRECTS_MAX + 1):
            sent = {**own, **headers} if url.origin() == origin else headers
            async with self._session.get(url, headers=sent, allow_redirects=False) as reply:
                if reply.status not in _REDIRECTS:
                    return await self._answer(reply, room, asked=bool(validators))
                url = _target(reply)
            if url in seen:
                raise FetchError(Failure.REDIRECT, f"redirects lead back to {_shown(url)}")
            seen.add(url)
        raise FetchError(Failure.REDIRECT, f"more than {REDIRECTS_MAX} redirects")

    async def _answer(self, reply: aiohttp.ClientResponse, room: Room, *, asked: bool) -> Answer:
        now = datetime.now(UTC)
        headers = reply.headers
        body, received_bytes = b"", 0
        if reply.status == _OK:
            body = await self._body(reply, room)
            received_bytes = len(body)
            body = await self._decoded(body, headers.get("Content-Encoding", ""), room)
        elif not (asked and reply.status == _NOT_MODIFIED):
            words = f"{reply.url.host} answers {reply.status} {reply.reason or ''}".rstrip()
            wait_s = _retry_after_s(headers.get("Retry-After", ""))
            raise FetchError(Failure.STATUS, words, retry_after_s=wait_s)
        return Answer(
            at=now.replace(microsecond=now.microsecond // 1000 * 1000),
            url=_shown(reply.url),
            status=reply.status,
            content_type=headers.get("Content-Type", ""),
            validators=Validators(
                etag=headers.get("ETag", ""), last_modified=headers.get("Last-Modified", "")
            ),
            body=body,
            received_bytes=received_bytes,
        )

    async def _body(self, reply: aiohttp.ClientResponse, room: Room) -> bytes:
        """Read a body as it was sent."""
        # The length may be absent or wrong, so what arrives is counted as well.
        if (reply.content_length or 0) > self._most_bytes:
            raise too_big(self._most_bytes)
        parts: list[bytes] = []
        size = 0
        async for part in reply.content.iter_any():
            size += len(part)
            if size > self._most_bytes:
                raise too_big(self._most_bytes)
            if size > SMALL_BYTES:
                await room.grow()
            parts.append(part)
        return b"".join(parts)

    async def _decoded(self, body: bytes, encoding: str, room: Room) -> bytes:
        """Decompress a body."""
        kind = encoding.strip().lower()
        if kind in {"", "identity"}:
            return body
        if kind not in {"gzip", "x-gzip"}:
            words = f"the body is encoded as {encoding[:40]!r}, which was not asked for"
            raise FetchError(Failure.ENCODING, words)
        if not room.is_big and self._most_bytes > SMALL_BYTES:
            try:
                return inflate(body, SMALL_BYTES)
            except FetchError as exc:
                if exc.failure is not Failure.TOO_BIG:
                    raise
            await room.grow()
        return inflate(body, self._most_bytes)


def _conditions(validators: Validators) -> dict[str, str]:
    found = {"If-None-Match": validators.etag, "If-Modified-Since": validators.last_modified}
    return {name: value for name, value in found.items() if value}


def _target(reply: aiohttp.ClientResponse) -> URL:
    """Return where a redirect leads.

    Raises:
        FetchError: nowhere, or to something that is not fetched.
    """
    try:
        target = reply.url.join(URL(reply.headers.get("Location", "")))
    except ValueError as exc:
        raise FetchError(Failure.REDIRECT, "a redirect leads to no URL") from exc
    if not reply.headers.get("Location") or not target.host:
        raise FetchError(Failure.REDIRECT, "a redirect leads nowhere")
    if target.scheme != "https" and (reply.url.scheme == "https" or target.scheme != "http"):
        words = f"a redirect leads from {reply.url.scheme} to {target.scheme}"
        raise FetchError(Failure.REDIRECT, words)
    return target.with_fragment(None)


def _retry_after_s(text: str) -> float:
    """Read Retry-After in seconds; its other form, a date, counts as absent."""
    return min(float(text), RETRY_AFTER_MAX_S) if text.isascii() and text.isdigit() else 0.0


def _shown(url: URL) -> str:
    return shown_url(str(url))
