"""What a real server does wrong, and what each of it ends in: a class, words, and no file."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from yarl import URL

from jostler.producer.collect.answers import Failure, FetchError
from jostler.producer.collect.feeds import Header, Shape
from jostler.producer.collect.fetching import _target
from jostler.producer.collect.runner import Runner
from tests.collect.collecting import attempts, feed, files, means
from tests.support.feeds import FeedServer, chunked, reply
from tests.support.misbehaving import Misbehaving

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import ClientResponse

    from jostler.producer.collect.tally import Error
    from tests.support.feeds import Asked

GOOD = b'{"bus": [1, 2, 3], "text": "' + b"abc" * 100 + b'"}'
ZIPPED = gzip.compress(GOOD)
MOST_BYTES = 4000


def failure(spool: Path, server: FeedServer, path: str = "/feed", **other: object) -> Error:
    """Fetch once; return the failure, of which nothing is left in the spool."""

    async def run() -> Error:
        async with server, means(spool, most_bytes=MOST_BYTES) as shared:
            runner = Runner(feed(f"{server.url}{path}", **other), shared)
            await attempts(runner)
            tally = runner.tally
            assert tally.attempts == sum(tally.failures.values()) == 1
            assert (tally.saved, tally.unchanged, tally.success_s) == (0, 0, 0)
            assert tally.error
            assert tally.failures[tally.error.failure] == 1
            return tally.error

    error = asyncio.run(run())
    assert [path for path in spool.rglob("*") if path.is_file()] == []
    return error


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (b"", Failure.CONNECT, "closes the connection without an answer"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", Failure.HTTP, "does not speak HTTP"),
        (reply(b"sorry", "502 Bad Gateway"), Failure.STATUS, "127.0.0.1 answers 502 Bad Gateway"),
        (reply(status="304 Not Modified"), Failure.STATUS, "answers 304 Not Modified"),
        (reply(status="204 No Content"), Failure.STATUS, "answers 204 No Content"),
        (reply(GOOD, Content_Length=str(len(GOOD) + 1)), Failure.CUT_OFF, "breaks off the body"),
        (chunked(GOOD[:50], GOOD[50:], end=b""), Failure.CUT_OFF, "breaks off the body"),
        (chunked(GOOD, end=b"zz\r\n"), Failure.HTTP, "does not speak HTTP"),
        (reply(ZIPPED[:-9], Content_Encoding="gzip"), Failure.CUT_OFF, "gzip body ends before"),
        (reply(b"{}" * 9, Content_Encoding="gzip"), Failure.ENCODING, "is not gzip"),
        (reply(GOOD, Content_Encoding="br"), Failure.ENCODING, "'br', which was not asked for"),
        (reply(b"<html>"), Failure.NOT_JSON, "the body is not one JSON object"),
        (reply(b"[1]"), Failure.NOT_JSON, "the body is not one JSON object"),
        (reply(GOOD * 2), Failure.NOT_JSON, "the body is not one JSON object"),
        (reply(b""), Failure.NOT_JSON, "the file has no bytes"),
        (reply(b"{}" * MOST_BYTES), Failure.TOO_BIG, "larger than a bundle of 4000 bytes"),
        (chunked(*[b" " * 1000] * 5), Failure.TOO_BIG, "larger than a bundle"),
        (chunked(b'{"a": "' + b"x" * 3950 + b'"}'), Failure.TOO_BIG, "larger than a bundle"),
        (
            reply(gzip.compress(b" " * 1_000_000), Content_Encoding="gzip"),
            Failure.TOO_BIG,
            "larger than a bundle",
        ),
    ],
)
def test_a_bad_answer_is_told_and_leaves_nothing(
    tmp_path: Path, answer: bytes, expected: Failure, words: str
) -> None:
    """Whatever is sent: a class that is counted, a sentence, and no file."""
    server = FeedServer({"/feed": lambda _: answer})

    error = failure(tmp_path / "spool", server)

    assert error.failure is expected, error
    assert words in error.words


def test_a_body_that_only_its_wrapping_makes_too_big_is_refused(tmp_path: Path) -> None:
    """Base64 makes four bytes of three."""
    server = FeedServer({"/feed": lambda _: reply(b"x" * 3500)})

    error = failure(tmp_path / "spool", server, shape=Shape.WRAPPED)

    assert error.failure is Failure.TOO_BIG


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """Its port is closed; the sentence says so."""
    with socket.create_server(("127.0.0.1", 0)) as once:
        port = once.getsockname()[1]

    async def run() -> Error | None:
        async with means(tmp_path) as shared:
            runner = Runner(feed(f"http://127.0.0.1:{port}/"), shared)
            await attempts(runner)
            return runner.tally.error

    error = asyncio.run(run())

    assert error
    assert error.failure is Failure.CONNECT
    assert error.words == f"127.0.0.1:{port} refuses connections"


def test_a_name_that_does_not_exist(tmp_path: Path) -> None:
    """The sentence has the name."""

    async def run() -> Error | None:
        async with means(tmp_path) as shared:
            runner = Runner(feed("http://nowhere.invalid/"), shared)
            await attempts(runner)
            return runner.tally.error

    error = asyncio.run(run())

    assert error
    assert error.failure is Failure.CONNECT
    assert "nowhere.invalid" in error.words


@pytest.mark.parametrize("sent", [None, reply(b"{", Content_Length="100"), b"HTTP/1.1 200"])
def test_a_server_that_hangs(tmp_path: Path, sent: bytes | None) -> None:
    """Before, during and after its headers: the feed's own time ends it."""
    server = FeedServer()

    def answer(_: Asked) -> bytes | None:
        return sent

    server.answers["/feed"] = answer
    server.keep = True

    error = failure(tmp_path / "spool", server, timeout_s=0.15)

    assert error.failure is Failure.TIMEOUT
    assert error.words.endswith("has not answered within 0.15 s")


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("/feed", "redirects lead back to http://127.0.0.1"),
        ("/b", "redirects lead back to http://127.0.0.1"),
        ("ftp://127.0.0.1/", "a redirect leads from http to ftp"),
        ("http://[", "a redirect leads to no URL"),
        ("/more0", "more than 5 redirects"),
    ],
)
def test_a_redirect_that_leads_nowhere(tmp_path: Path, to: str, words: str) -> None:
    """In circles, on and on, or to what is not fetched."""
    server = FeedServer()
    server.answers["/feed"] = lambda _: reply(status="302 Found", Location=to)
    server.answers["/b"] = lambda _: reply(status="307 Temporary Redirect", Location="/feed")
    for number in range(9):
        target = f"/more{number + 1}"
        server.answers[f"/more{number}"] = lambda _, target=target: reply(  # type: ignore[misc]
            status="301 Moved Permanently", Location=target
        )

    error = failure(tmp_path / "spool", server)

    assert error.failure is Failure.REDIRECT
    assert words in error.words


def test_a_redirect_does_not_lead_out_of_tls() -> None:
    """What was asked for by https is not taken from who is not proved to be the server."""
    reply = SimpleNamespace(url=URL("https://h/a"), headers={"Location": "http://h/a"})

    with pytest.raises(FetchError, match="a redirect leads from https to http"):
        _target(cast("ClientResponse", reply))


def test_a_redirect_without_a_target(tmp_path: Path) -> None:
    """A header Location is missing."""
    server = FeedServer({"/feed": lambda _: reply(status="302 Found")})

    error = failure(tmp_path / "spool", server)

    assert (error.failure, error.words) == (Failure.REDIRECT, "a redirect leads nowhere")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    """A certificate that nobody has signed but itself."""
    home = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-subj", "/CN=localhost", "-keyout", home / "key", "-out", home / "cert"),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(home / "cert", home / "key")
    return context


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path, certificate: ssl.SSLContext) -> None:
    """Nothing is sent to such a server, and the sentence says why."""
    server = FeedServer({"/feed": lambda _: reply(GOOD)}, tls=certificate)

    error = failure(tmp_path / "spool", server)

    assert error.failure is Failure.TLS
    assert "self-signed certificate" in error.words
    assert server.asked == []


def test_https_where_nobody_speaks_tls(tmp_path: Path) -> None:
    """The same class: the connection is there, and TLS is not."""
    with Misbehaving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:

        async def run() -> Error | None:
            async with means(tmp_path) as shared:
                runner = Runner(feed(f"https://{server.host}/"), shared)
                await attempts(runner)
                return runner.tally.error

        error = asyncio.run(run())

    assert error
    assert error.failure is Failure.TLS


def test_a_redirect_gets_no_secret_of_another_server(tmp_path: Path) -> None:
    """The feed's headers go to its own origin only, whatever their names."""

    async def run() -> list[Asked]:
        async with FeedServer() as first, FeedServer() as other, means(tmp_path) as shared:
            there = other.always("/feed", reply(GOOD))
            url = first.always("/feed", reply(status="302 Found", Location=there))
            secret = (Header(name="X-Key", value="hidden"),)
            runner = Runner(feed(url, headers=secret), shared)
            await attempts(runner)
            assert runner.tally.saved == 1
            return [*first.asked, *other.asked]

    own, foreign = asyncio.run(run())

    assert own.headers["x-key"] == "hidden"
    assert "x-key" not in foreign.headers
    assert files(tmp_path)[0].read_bytes() == GOOD
