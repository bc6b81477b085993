"""A reverse proxy that makes a real server fail: before the work, after it, or slowly."""

from __future__ import annotations

import http.client
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from tests.support.gcs import free_port

if TYPE_CHECKING:
    from types import TracebackType

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Fault:
    """What goes wrong, how often, and for which requests.

    Attributes:
        status: answer with this status instead; 0 drops the connection.
        after: do the work first and lose the reply.
        times: how many requests it hits.
        method: only requests of this method.
        path: only requests whose path contains this.
        delay_s: wait before anything.
        reason: the error's reason in the answer.
    """

    status: int = 0
    after: bool = False
    times: int = 1
    method: str = ""
    path: str = ""
    delay_s: float = 0.0
    reason: str = "backendError"


@dataclass
class FaultyServer:
    """A proxy on loopback before a server; `faults` may be changed while it runs.

    Attributes:
        upstream_port: of the real server on loopback.
        port: where the proxy listens.
        faults: tried in order; the first that fits is used up by one.
        seen: requests so far as `METHOD path`.
    """

    upstream_port: int
    port: int = field(default_factory=free_port)
    faults: list[Fault] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.url = f"http://127.0.0.1:{self.port}"
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def fault_for(self, method: str, path: str) -> Fault | None:
        """Take the fault that a request meets, if any."""
        with self._lock:
            self.seen.append(f"{method} {path}")
            for fault in self.faults:
                if fault.times and method in {fault.method, method * (not fault.method)}:
                    if fault.path in path:
                        fault.times -= 1
                        return fault
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = proxy.fault_for(self.command, self.path)
                if fault and fault.delay_s:
                    time.sleep(fault.delay_s)
                if fault and not fault.after and (fault.status or not fault.delay_s):
                    self.fail(fault)
                    return
                upstream = http.client.HTTPConnection("127.0.0.1", proxy.upstream_port, timeout=30)
                headers = {k: v for k, v in self.headers.items() if k.lower() != "host"}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                content = answer.read()
                upstream.close()
                if fault and fault.after:
                    self.fail(fault)
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in HOP_BY_HOP:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def fail(self, fault: Fault) -> None:
                if not fault.status:
                    self.close_connection = True
                    self.connection.close()
                    return
                content = (
                    b'{"error":{"code":%d,"message":"made to fail","errors":[{"reason":"%b"}]}}'
                    % (fault.status, fault.reason.encode())
                )
                self.send_response(fault.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = handle_any

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ValueError):  # the connection was dropped on purpose
                    self.close_connection = True

            def finish(self) -> None:
                try:
                    super().finish()
                except (OSError, ValueError):
                    return

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        return Handler

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
