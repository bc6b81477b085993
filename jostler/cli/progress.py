"""Progress of a command on standard error, once it takes longer than a second.

**Invariant:** nothing is written in the first second; on a terminal the line is wiped before
anything else is written and at the end.  It never changes what the command does.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from jostler.words import counted, size

if TYPE_CHECKING:
    from jostler.archive.files import Tally

FIRST_S = 1.0
TERMINAL_S = 0.25
LOG_S = 10.0
_WIPE = "\r\x1b[K"


class Progress:
    """Shows what a search has done, from a thread of its own.

    Attributes:
        files: files that were written or shown so far; the command counts them.
        size_bytes: their bytes.
    """

    def __init__(self, tally: Tally) -> None:
        self.files = 0
        self.size_bytes = 0
        self._tally = tally
        self._began_s = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_shown = False
        self._is_terminal = sys.stderr.isatty()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def spent_s(self) -> float:
        """Seconds since the command began."""
        return time.monotonic() - self._began_s

    def stop(self) -> None:
        """Show nothing more."""
        self._ended.set()
        self._thread.join()
        self.clear()

    def clear(self) -> None:
        """Wipe the line from the terminal."""
        with self._lock:
            if self._is_shown:
                self._write(_WIPE)
            self._is_shown = False

    def _show(self) -> None:
        pause_s = FIRST_S
        while not self._ended.wait(pause_s):
            pause_s = TERMINAL_S if self._is_terminal else LOG_S
            with self._lock:
                if self._is_terminal:
                    self._write(_WIPE + self.text())
                    self._is_shown = True
                elif self.files or self._tally.days:
                    self._write(self.text() + "\n")

    def text(self) -> str:
        """Say in one line what was done."""
        tally = self._tally
        parts = [counted(tally.days, "day"), counted(tally.rows, "index row")]
        if tally.indexes:
            read = f"{counted(tally.indexes, 'index object')}, {tally.read} of them from the bucket"
            parts.append(read)
        if self.size_bytes:
            parts.append(f"{counted(self.files, 'file')} of {size(self.size_bytes)}")
        elif self.files:
            parts.append(counted(self.files, "result"))
        return f"searched: {'; '.join(parts)}"

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # closed, or nobody reads
            sys.stderr.write(text)
            sys.stderr.flush()
