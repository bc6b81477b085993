"""One embedded BigQuery, started as a process, and the official client that talks to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from tests.support.gcs import GcsServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_S = 60.0


class Server:
    """The program as a user starts it: `python -m embedded`."""

    def __init__(self, data_dir: Path, gcs_url: str = "", port: int = 0) -> None:
        self.data_dir = data_dir
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "embedded"),
                *("--data-dir", str(data_dir), "--port", str(port)),
            ],
            env={**os.environ, "STORAGE_EMULATOR_HOST": gcs_url},
            stdout=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(START_S, self.process.kill)
        watchdog.start()
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        watchdog.cancel()
        assert "listens on " in self.line, f"the server did not start: {self.line!r}"
        self.url = self.line.split("listens on ")[1].split(",")[0]

    def client(self, project: str = "proj") -> bigquery.Client:
        return bigquery.Client(
            project, AnonymousCredentials(), client_options={"api_endpoint": self.url}
        )

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        self.process.kill()
        self._ended()

    def _ended(self) -> int:
        code = self.process.wait(timeout=100)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def serving(data_dir: Path, gcs_url: str = "") -> Iterator[Server]:
    server = Server(data_dir, gcs_url)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    with GcsServer() as server:
        server.create_bucket("bundles")
        yield server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, gcs: GcsServer) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("bigquery"), gcs.url) as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Server) -> Iterator[bigquery.Client]:
    client = server.client()
    yield client
    client.close()


@pytest.fixture
def dataset(client: bigquery.Client) -> str:
    """A fresh dataset's name."""
    name = f"ds_{uuid.uuid4().hex[:12]}"
    client.create_dataset(name)
    return name
