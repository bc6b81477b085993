"""Spark's JVM as a process: its standard error, and its end when it was started in vain.

**Invariant:** a process that is started within `kept_apart` writes its standard error to our pipe
for its whole life; no line is lost, and the loader's own lines do not go there.  A process that is
started within `not_left_behind` does not outlive an error or an interrupt there.

This replaces file descriptor 2 and pyspark's `Popen` for a moment, because pyspark starts the JVM
with the loader's standard error, has no setting for that, and does not return the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

STDERR = 2
_OURS = ('{"time"', "\r\x1b[K")


class _Lines:
    """Passes on the JVM's lines, as soon as our standard error is restored."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._lock = threading.Lock()
        self._waiting: list[str] | None = []

    def follow(self, pipe: int) -> None:
        """Read lines until all writers have closed the pipe."""
        with os.fdopen(pipe, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._take(line)

    def _take(self, line: str) -> None:
        with self._lock:
            if self._waiting is None:
                self._on_line(line.rstrip())
            else:
                self._waiting.append(line)

    def begin(self) -> None:
        """Pass on all waiting lines, and from now on each line as it arrives."""
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            for line in waiting:
                if line.startswith(_OURS):  # another thread of ours wrote an event meanwhile
                    sys.stderr.write(line)
                else:
                    self._on_line(line.rstrip())


@contextmanager
def kept_apart(on_line: Callable[[str], None]) -> Iterator[None]:
    """Pass the standard error of processes started in this context to `on_line`, line by line."""
    lines = _Lines(on_line)
    read, write = os.pipe()
    # What Python still buffers would otherwise go into the pipe, and appear as the JVM's.
    sys.stderr.flush()
    ours = os.dup(STDERR)
    os.dup2(write, STDERR)
    os.close(write)
    threading.Thread(target=lines.follow, args=(read,), name="spark-says", daemon=True).start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, STDERR)
        os.close(ours)
        lines.begin()


@contextmanager
def not_left_behind() -> Iterator[None]:
    """Kill the JVM that pyspark starts in this context if the context ends by an exception.

    The JVM ends when its standard input does, but not while it starts: an interrupted pyspark
    removes the directory that the JVM is to write its port into, the JVM's main thread fails, and
    the thread that waits for connections keeps it alive for ever.
    """
    from pyspark import java_gateway  # noqa: PLC0415 - Spark is imported only when it is needed

    started: list[subprocess.Popen[bytes]] = []

    class Started(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as Popen's
            started.append(self)  # first: an interrupt may come before this method ends
            super().__init__(*args, **kwargs)

    theirs = vars(java_gateway)["Popen"]
    vars(java_gateway)["Popen"] = Started
    try:
        yield
    except BaseException:
        for process in started:
            if process.pid:
                process.kill()
        raise
    finally:
        vars(java_gateway)["Popen"] = theirs


def end(wait_s: float = 20.0) -> None:
    """End the JVM that this process has started, once Spark is stopped; wait until it is gone.

    It would end with this process, some moments after it; until then it is there, and so are its
    temporary directories.  A JVM of spark-submit, and one whose session goes on, stay.
    """
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    gateway = SparkContext._gateway  # noqa: SLF001 - no public question
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or SparkContext._active_spark_context is not None:  # noqa: SLF001 - as above
        return
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - the next session starts one
    gateway.shutdown()  # type: ignore[no-untyped-call]
    process.stdin.close()
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
