"""Separate the standard error of Spark's JVM from the loader's own events.

**Invariant:** a process that is started within `kept_apart` writes its standard error to our pipe
for its whole life; no line is lost, and the loader's own lines do not go there.

This replaces file descriptor 2 for a moment, because pyspark starts the JVM with the loader's
standard error and has no setting for that.
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
    """Passes on the JVM's lines, as soon as our standard error is restored."""

    def __init__(self, said: Callable[[str], None]) -> None:
        self._said = said
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
                self._said(line.rstrip())
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
                    self._said(line.rstrip())


@contextmanager
def kept_apart(said: Callable[[str], None]) -> Iterator[None]:
    """Pass the standard error of processes started in this context to `said`, line by line."""
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
