"""The HTTP server of metrics and status: GET and HEAD, one route each, nothing to change anything.

**Invariant:** it can neither stop nor slow the agent: it has few threads, each request has a
deadline, and a failing route answers 500 and is logged.  It answers only requests whose Host header
is an address or a known name.  This prevents DNS rebinding: a foreign web page whose name was made
to resolve to this machine must not be able to read the status.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from jostler.log import Log
from jostler.web.hosts import is_known, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

log = Log("jostler.observe")

REQUESTS_MAX = 16
IDLE_S = 10.0
DEADLINE_S = 30.0
HANG_UP_S = 1.0
DENY_ALL = "default-src 'none'; frame-ancestors 'none'"
TEXT = "text/plain; charset=utf-8"


class Reply(Struct, frozen=True):
    """A route's answer."""

    body: bytes
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    policy: str = DENY_ALL
    """Content-Security-Policy, for what a browser shows."""


Routes = dict[str, "Callable[[Mapping[str, str]], Reply]"]
"""Functions by path; each gets the request's parameters, with their first values."""


class StatusServer:
    """Serves routes in threads of its own until it is closed.

    Args:
        host: the name or address to listen on; empty for all.
        port: the port; 0 for any free one.
        routes: the routes by path.
        names: the names accepted in the Host header, beside localhost and any address.

    Raises:
        OSError: the server cannot listen on the address.
    """

    def __init__(self, host: str, port: int, routes: Routes, names: Collection[str] = ()) -> None:
        known = frozenset(name.lower() for name in ("localhost", socket.gethostname(), *names))
        handler = type("Handler", (_Handler,), {"routes": routes, "names": known})
        self._server = _Server(listen(host, port), handler)
        self._thread = threading.Thread(target=self._server.serve, name="status", daemon=True)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering; running requests end by themselves."""
        self._server.end()
        if self._thread.is_alive():
            self._thread.join(HANG_UP_S)
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """An HTTP server with few threads and short timeouts."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_address = listening.getsockname()[:2]
        self._places = threading.BoundedSemaphore(REQUESTS_MAX)
        # Connections without a request yet, oldest first.  Several threads change it: each single
        # operation on a dict is atomic under the interpreter lock.
        self._silent: dict[socket.socket, None] = {}
        self._ended = threading.Event()

    def serve(self) -> None:
        """Answer requests until `end` is called; without any, the thread sleeps."""
        while not self._ended.is_set():
            self.handle_request()

    def end(self) -> None:
        """Let `serve` return; any thread may call it."""
        self._ended.set()
        with suppress(OSError):  # it is closed
            self.socket.shutdown(socket.SHUT_RDWR)  # makes it readable

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - stdlib's
        """Start a thread for a request; if none is free, close connections without a request.

        So clients that connect and send nothing cannot block the probes.
        """
        if not self._places.acquire(blocking=False):
            for silent in list(self._silent)[:1]:
                _hang_up(silent)
            if not self._places.acquire(timeout=HANG_UP_S):
                self.shutdown_request(request)
                return
        self._silent[request] = None
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.heard(request)
            self._places.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer one request; close the connection when the deadline is over."""
        cut_off = threading.Timer(DEADLINE_S, _hang_up, (request,))
        cut_off.daemon = True
        cut_off.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut_off.cancel()
            self.heard(request)
            self._places.release()

    def heard(self, request: socket.socket) -> None:
        """Record that a client has sent its request, or has gone."""
        self._silent.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - stdlib's
        """Do nothing: a client that disconnects is no error."""


MISDIRECTED = Reply(
    b"ask by address or by this machine's name, or give the agent the name by -allowed-hosts\n",
    status=HTTPStatus.MISDIRECTED_REQUEST,
)


def _hang_up(request: socket.socket) -> None:
    try:  # shutdown, unlike close, also wakes the thread that waits in recv
        request.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended meanwhile


class _Handler(BaseHTTPRequestHandler):
    """Answers requests by the table of routes."""

    routes: ClassVar[Routes]
    names: ClassVar[frozenset[str]]
    timeout = IDLE_S
    server_version = "jostler"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with headers and body."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer with the headers only."""
        self._answer(body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - stdlib's
        """Do nothing: requests are not logged, as they may contain anything."""

    def send_error(
        self,
        code: int,
        message: str | None = None,  # noqa: ARG002 - the base class's
        explain: str | None = None,  # noqa: ARG002 - as above
    ) -> None:
        """Refuse a malformed request or another method, with the usual headers."""
        self.close_connection = True
        self._send(Reply(b"refused\n", status=HTTPStatus(code)), body=True)

    def _answer(self, *, body: bool) -> None:
        assert isinstance(self.server, _Server)
        self.server.heard(self.connection)
        try:
            url = urlsplit(self.path)
            values = parse_qs(url.query, errors="surrogateescape", max_num_fields=10)
            query = {key: found[0] for key, found in values.items()}
        except ValueError:
            self._send(Reply(b"bad request\n", status=HTTPStatus.BAD_REQUEST), body=body)
            return
        hosts = self.headers.get_all("Host", [])
        if hosts and not is_known(hosts, self.names):  # a browser always sends one
            self._send(MISDIRECTED, body=body)
            return
        route = self.routes.get(url.path)
        if not route:
            self._send(Reply(b"there is no such page\n", status=HTTPStatus.NOT_FOUND), body=body)
            return
        try:
            reply = route(query)
        except Exception:  # a failing page is logged and must not end the thread silently
            log.exception("status.crashed", route=url.path)
            reply = Reply(b"failed; see the log\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(reply, body=body)

    def _send(self, reply: Reply, *, body: bool) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", reply.policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if body:
            self.wfile.write(reply.body)
