"""The outermost layer of the server: who may ask, the length of addresses, headers of all answers.

**Invariant:** it answers only requests whose Host header is an address or a known name, for the
reason given in `jostler.web.hosts`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from jostler.archive.serve.replies import failed
from jostler.web.hosts import is_known

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

URL_MAX = 8192


class Guard:
    """Refuses requests that are too long or meant for another host; adds headers to all answers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower() for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:  # noqa: ANN401 - ASGI's
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_headers(message["headers"])]
            await send(message)

        refused = self._refused(Request(scope))
        await (refused or self._app)(scope, receive, send_with_headers)

    def _refused(self, request: Request) -> Response | None:
        if len(request.scope["path"]) + len(request.scope["query_string"]) > URL_MAX:
            return failed(request, "TooLong", "the address is too long", 414)
        if not is_known(request.headers.getlist("host"), self._hosts):
            hint = "ask by address, or give the server this name by -allowed-hosts"
            return failed(request, "Misdirected", hint, HTTPStatus.MISDIRECTED_REQUEST)
        return None


def _headers(given: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in given}
    wanted = (
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
    )
    return [(name, value) for name, value in wanted if name not in there]
