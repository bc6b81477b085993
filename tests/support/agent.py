"""Run the agent as a real process."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Self

from tests.support.spool import EXPERIMENT

if TYPE_CHECKING:
    from tests.support.spool import Spool

WAIT_S = 60.0


def arguments(spool: Spool, bucket: str, *more: str) -> list[str]:
    """Return a command line for the spool and bucket; later flags win over these."""
    argv = [
        *("-gcs-bucket", bucket, "-node-name", "node1", "-experiment", EXPERIMENT),
        *("-local-data-dir", str(spool.root), "-log-format", "json"),
        *("-prometheusx.listen-address", ""),
    ]
    given = " ".join(more)
    if "-datatype " not in given:
        argv += ["-datatype", ",".join(spool.datatypes)]
    return [*argv, *more]


def environment(gcs_url: str = "") -> dict[str, str]:
    """Return the environment of an agent, with the emulator's URL if there is one."""
    environ = dict(os.environ)
    if gcs_url:
        environ["STORAGE_EMULATOR_HOST"] = gcs_url
    return environ


def run(*argv: str, gcs_url: str = "", cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run `jostler` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "jostler", *argv],
        capture_output=True,
        text=True,
        timeout=WAIT_S * 2,
        check=False,
        env=environment(gcs_url),
        cwd=cwd,
    )


def once(
    spool: Spool, bucket: str, *more: str, gcs_url: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the agent once (`-once`) on all files in the spool."""
    argv = arguments(spool, bucket, "-once", "-missed-age", "0s", *more)
    return run(*argv, gcs_url=gcs_url)


class RunningAgent:
    """An agent that runs until it is stopped; `wait_for` waits for lines of its log."""

    def __init__(self, *argv: str, gcs_url: str = "") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jostler", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(gcs_url),
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.log: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as out:
            for line in out:
                self._lines.put(line)
        self._lines.put("")  # the end

    def wait_for(self, event: str, timeout_s: float = WAIT_S, **facts: object) -> dict[str, Any]:
        """Return the next log line of an event with these facts."""
        until = time.monotonic() + timeout_s
        while True:
            line = self._lines.get(timeout=max(0.01, until - time.monotonic()))
            assert line, f"the agent ended before {event}: {self.log}"
            entry = json.loads(line) if line.startswith("{") else {"event": "?", "text": line}
            self.log.append(entry)
            if entry["event"] == event and all(entry.get(k) == v for k, v in facts.items()):
                return entry

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = WAIT_S) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        status = self._process.wait(timeout_s)
        self._reader.join(timeout_s)
        while not self._lines.empty():
            if line := self._lines.get():
                self.log.append(json.loads(line) if line.startswith("{") else {"event": "?"})
        return status

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        self.stop(signal.SIGKILL)

    def wait(self, timeout_s: float = WAIT_S) -> int:
        """Wait for the agent to end by itself."""
        return self._process.wait(timeout_s)

    def peak_rss_bytes(self) -> int:
        """Return the process's largest resident memory so far, in bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:  # noqa: PTH123 - proc
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
        self._reader.join(5)
