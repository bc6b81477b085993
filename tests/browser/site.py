"""The agent's HTTP server with the page of whatever document a test puts there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from jostler.agent.observe import page
from jostler.web.server import Reply, StatusServer
from tests.browser import documents

if TYPE_CHECKING:
    from tests.browser.documents import Document


class Site:
    """Serves the page of `document`, which may be changed at any time."""

    def __init__(self) -> None:
        self.document: Document = documents.well()
        self.requests = 0
        self._server = self._start(0)
        self._port = self._server.port

    def _start(self, port: int) -> StatusServer:
        server = StatusServer("127.0.0.1", port, {"/": lambda _: self._page()})
        server.start()
        return server

    def _page(self) -> Reply:
        self.requests += 1
        body = page.render(self.document)
        return Reply(body, page.CONTENT_TYPE, policy=page.CONTENT_SECURITY_POLICY)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/"

    def go_away(self) -> None:
        """Stop answering."""
        self._server.close()

    def come_back(self) -> None:
        """Answer again, at the same address."""
        self._server = self._start(self._port)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
