"""The web server of `jostler serve` on loopback, with an archive that each test makes."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

import uvicorn

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.serve.app import application
from jostler.archive.serve.served import Archive
from jostler.archive.serve.summary import Summary
from jostler.storage import open_storage
from tests.support.archive import PLACE, MadeArchive

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from jostler.archive.catalogue import Catalogue, File
    from jostler.archive.serve.limits import Workers
    from jostler.archive.serve.served import Contents, LedgerRows
    from jostler.why.finding import Finding

TODAY = date(2026, 1, 4)
NOW = datetime(2026, 1, 4, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def get(
    port: int, path: str, *, method: str = "GET", host: str | None = None, **parameters: object
) -> Answer:
    """Ask a server on this machine for a path."""
    asked = f"?{urlencode(parameters)}" if parameters else ""
    headers = {"Host": host} if host else {}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=100)) as connection:
        connection.request(method, path + asked, headers=headers)
        answer = connection.getresponse()
        found = {key.lower(): value for key, value in answer.getheaders()}
        return Answer(answer.status, found, answer.read())


class NoContents:
    """An archive whose index is all that there is."""

    def raw(self, file: File) -> bytes:
        return json.dumps({"name": file.name}).encode()

    def findings(self, _file: File) -> list[Finding]:
        return []


class Serving:
    """One server for all tests of a module; `show` chooses what it serves."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        config = uvicorn.Config(
            self._serve, port=0, interface="asgi3", log_level="warning", lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._app
        await self._app(scope, receive, send)

    @property
    def port(self) -> int:
        port: int = self._server.servers[0].sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def show(
        self,
        catalogue: Catalogue,
        *,
        contents: Contents | None = None,
        ledger: LedgerRows | None = None,
        workers: Workers | None = None,
        summary: Summary | None = None,
    ) -> Archive:
        """Serve an archive, with its sums already read."""
        summary = summary or Summary(catalogue, lambda: TODAY)
        while summary.refresh(0.0):
            pass
        archive = Archive(
            name="gs://archive/exp",
            catalogue=catalogue,
            contents=contents or NoContents(),
            summary=summary,
            ledger=ledger,
            hosts=frozenset({"archive.example.org"}),
            clock=lambda: NOW,
        )
        self._app = application(archive, workers)
        return archive

    def show_made(self, made: MadeArchive, **more: Any) -> Archive:  # noqa: ANN401 - as `show`
        """Serve what is in a made archive."""
        return self.show(BucketCatalogue(open_storage(made.url), [PLACE]), **more)

    def get(
        self, path: str, *, method: str = "GET", host: str | None = None, **parameters: object
    ) -> Answer:
        """Ask for a path."""
        return get(self.port, path, method=method, host=host, **parameters)

    def __enter__(self) -> Self:
        self._thread.start()
        until = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < until
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()


def made_archive(directory: Path) -> MadeArchive:
    """Return an empty archive in a directory."""
    return MadeArchive(directory / "bucket")
