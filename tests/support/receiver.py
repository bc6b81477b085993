"""An HTTP server that is told of days: it keeps each request, and answers as a test says."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its path, its headers by lower-case names, its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class ReceivingServer:
    """A receiver on loopback.

    Attributes:
        status: the status of the answers.
        hold: while it is clear, no answer comes.
        got: the requests so far.
    """

    status: int = 204
    hold: threading.Event = field(default_factory=threading.Event)
    got: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hold.set()
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [request.event for request in self.got]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    receiver: ReceivingServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        named = {name.lower(): value for name, value in self.headers.items()}
        self.receiver.got.append(Request(self.path, named, body))
        self.receiver.hold.wait(600)
        try:
            self.send_response(self.receiver.status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        except OSError:  # the sender has given up
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Do not log requests."""
