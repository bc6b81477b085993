"""Run the embedded BigQuery as a server in this process.

**Invariant:** while the context is active, the server answers at `url`; after it, everything is on
disk.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Self

import uvicorn

from embedded.api.app import Service, application
from embedded.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

START_S = 10.0
GRACE_S = 5  # how long open connections may finish their requests when the server stops
BACKLOG = 128


class EmbeddedBigQuery:
    """A server, by default on the loopback address; use it as a context, or call `serve`.

    Args:
        data_dir: the directory of the data; created if it does not exist.
        port: TCP port; 0 for a free one.
        host: address to listen on.
        storage_port: TCP port of the Storage Read API, 0 for a free one; None for no such API.
        storage_certificate: PEM file with key and certificate, for clients that need TLS.

    Raises:
        InUseError: another process serves the directory.
        OSError: the port is taken.
        ImportError: `storage_port` is given and the packages of that API are not installed.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        storage_port: int | None = None,
        storage_certificate: Path | None = None,
    ) -> None:
        self._service = Service(Store(data_dir))
        try:
            self._storage = self._service.storage_read((host, storage_port), storage_certificate)
            self._socket = socket.create_server((host, port), backlog=BACKLOG)
        except (OSError, ImportError):
            self._service.close()
            raise
        # Accepted connections inherit it; without it each reply waits for a delayed ACK of 40 ms.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port = int(self._socket.getsockname()[1])
        self.url = f"http://{host}:{self.port}"
        self.storage_address = f"{host}:{self._storage.port}" if self._storage else ""
        config = uvicorn.Config(
            application(self._service),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_S,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="embedded-bigquery")

    def serve(self, stop: threading.Event) -> None:
        """Serve until `stop` is set."""
        with self:
            while not stop.wait(timeout=60):
                pass

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def __enter__(self) -> Self:
        self._thread.start()
        if self._storage:
            self._storage.start()
        until = time.monotonic() + START_S
        while not self._server.started:
            if time.monotonic() > until or not self._thread.is_alive():
                raise RuntimeError(f"no answer on {self.url} after {START_S} s")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        if self._storage:
            self._storage.stop()
        self._service.close()
