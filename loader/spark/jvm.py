"""What Spark's JVM writes to standard error: taken apart from our own events.

**Invariant:** a process that is started within `kept_apart` writes its standard error into a pipe
of ours as long as it lives; no line is lost, and none of ours is among them.

pyspark starts the JVM with our standard error and offers no way to say otherwise.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STDERR = 2
_OURS = ('{"time"', "\r\x1b[K")


class _Lines:
    """Hands lines on as soon as our standard error is in its place again."""

    def __init__(self, said: Callable[[str], None]) -> None:
        self._said = said
        self._lock = threading.Lock()
        self._waiting: list[str] | None = []

    def follow(self, pipe: int) -> None:
        """Read lines until nobody can write any more."""
        with os.fdopen(pipe, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._take(line)

    def _take(self, line: str) -> None:
        with self._lock:
            if self._waiting is None:
                self._said(line.rstrip())
            else:
                self._waiting.append(line)

    def begin(self) -> None:
        """Hand on what waits, and from now on each line as it comes."""
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            for line in waiting:
                if line.startswith(_OURS):  # another thread told of something meanwhile
                    sys.stderr.write(line)
                else:
                    self._said(line.rstrip())


@contextmanager
def kept_apart(said: Callable[[str], None]) -> Iterator[None]:
    """Give processes that are started in this context a standard error that leads to `said`."""
    lines = _Lines(said)
    read, write = os.pipe()
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
