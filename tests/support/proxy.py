"""A reverse proxy that makes a real server fail: before the work, after it, or slowly."""

from __future__ import annotations

import http.client
import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

WAIT_S = 120.0
HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Fault:
    """A fault: what fails, how often, and for which requests.

    Attributes:
        status: the status of the reply; 0 closes the connection instead.
        after: forward the request, then drop the real reply.
        times: the number of requests that fail.
        method: only requests of this method.
        path: only requests whose path contains this.
        delay_s: the time to wait first, in seconds.
        until: set to forward the request, which waits for that.
        reason: the error's reason in the reply.
    """

    status: int = 0
    after: bool = False
    times: int = 1
    method: str = ""
    path: str = ""
    delay_s: float = 0.0
    until: threading.Event | None = None
    reason: str = "backendError"


@dataclass
class FaultyServer:
    """A proxy on loopback before a real server; `faults` may be changed while it runs.

    Attributes:
        upstream_port: the TCP port of the real server.
        port: the TCP port of the proxy.
        faults: the faults; the first that matches a request happens and counts down.
        seen: the requests so far, as `METHOD path`.
        bodies: their bodies, in the same order.
        answered_bytes: bytes of the real server's answers so far.
    """

    upstream_port: int
    port: int = field(init=False)
    faults: list[Fault] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    answered_bytes: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def fault_for(self, method: str, path: str, body: bytes) -> Fault | None:
        """Return the fault for a request and count it down; None if no fault matches."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            self.bodies.append(body)
            for fault in self.faults:
                meant = fault.method in {"", method} and fault.path in path
                if fault.times and meant:
                    fault.times -= 1
                    return fault
        return None

    def forward(self, handler: _Handler, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Forward a request to the real server."""
        upstream = http.client.HTTPConnection("127.0.0.1", self.upstream_port, timeout=100)
        headers = {k: v for k, v in handler.headers.items() if k.lower() != "host"}
        upstream.request(handler.command, handler.path, body, headers)
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        with self._lock:
            self.answered_bytes += len(content)
        return answer.status, answer.getheaders(), content

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client; `proxy` is set by the server."""

    protocol_version = "HTTP/1.1"
    proxy: FaultyServer

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.proxy.fault_for(self.command, self.path, body)
        if fault and fault.delay_s:
            time.sleep(fault.delay_s)
        if fault and fault.until:
            fault.until.wait(WAIT_S)
        passes = fault and (fault.delay_s or fault.until) and not fault.status
        if fault and not fault.after and not passes:
            self.fail(fault)
            return
        status, headers, content = self.proxy.forward(self, body)
        if fault and fault.after:
            self.fail(fault)
            return
        self.answer(status, headers, content)

    def fail(self, fault: Fault) -> None:
        if not fault.status:
            self.close_connection = True
            self.connection.close()
            return
        error = {"code": fault.status, "message": "made to fail"}
        content = json.dumps({"error": {**error, "errors": [{"reason": fault.reason}]}})
        self.answer(fault.status, [("Content-Type", "application/json")], content.encode())

    def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):  # the connection was dropped on purpose
            self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()

    def log_message(self, *args: object) -> None:
        """Do not log requests."""


for _method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"):
    setattr(_Handler, f"do_{_method}", _Handler.handle_any)
