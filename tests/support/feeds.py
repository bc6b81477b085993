"""A server of feeds on loopback, whose answers are bytes, so that every fault can be had."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class Asked:
    """A request: its path with the query, and its headers by lower-case name."""

    path: str
    headers: dict[str, str]


Answer = "Callable[[Asked], bytes | None]"


def reply(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer with its length; `_` in a header's name becomes `-`."""
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    if not {"Content_Length", "Transfer_Encoding"} & headers.keys():
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n", **headers: str) -> bytes:
    """Return an answer in chunks."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return reply(body + end, Transfer_Encoding="chunked", **headers)


@dataclass
class FeedServer:
    """Answers by path, without the query; use it with `async with`, or `with` for a thread.

    Attributes:
        answers: by path, a function of the request that returns the raw answer, after which the
            connection is closed unless `keep`; None to hang.  A path without one is not found.
        keep: keep connections open for further requests.
        tls: serve TLS.
        asked: the requests so far.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    keep: bool = False
    tls: ssl.SSLContext | None = None
    asked: list[Asked] = field(default_factory=list)
    port: int = 0

    def always(self, path: str, answer: bytes | None) -> str:
        """Answer a path always with the same; return its URL."""
        return self.by(path, lambda _: answer)

    def by(self, path: str, answer: Answer) -> str:
        """Answer a path by a function; return its URL."""
        self.answers[path] = answer
        return f"{self.url}{path}"

    @property
    def url(self) -> str:
        """The server's URL, without a slash at its end."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", 0, ssl=self.tls, backlog=1000
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._connections: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    def __enter__(self) -> Self:
        started = threading.Event()

        async def serve() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            async with self:
                started.set()
                await self._ended.wait()

        self._thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
        self._thread.start()
        assert started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(60)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer) and self.keep:
                pass
        self._connections.discard(task)
        writer.close()
        with suppress(OSError, asyncio.CancelledError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return False if the client has gone."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        asked = Asked(first.split(" ")[1], headers)
        self.asked.append(asked)
        answer = self.answers.get(asked.path.partition("?")[0])
        raw = answer(asked) if answer else reply(b"not here", "404 Not Found")
        if raw is None:
            await reader.read(1)  # until the client hangs up
            return False
        writer.write(raw)
        await writer.drain()
        return True
