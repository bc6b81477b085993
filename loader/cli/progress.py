"""The progress of a question, on standard error while no row has been printed.

**Invariant:** nothing is written unless standard error is a terminal; the line is gone before the
first row is.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from loader.cli.console import size

if TYPE_CHECKING:
    from loader.query.answer import Answer, Notes

TICK_S = 0.5


class Following:
    """Follows one answer from a thread of its own."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._answer: Answer | None = None
        self._began_s = time.monotonic()
        self._thread = threading.Thread(target=self._follow, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def of(self, answer: Answer) -> None:
        """Follow this answer."""
        self._answer = answer

    def stop(self) -> None:
        """Remove the line; write no more."""
        if not self._end.is_set():
            self._end.set()
            if self._thread.is_alive():
                self._thread.join()
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def _follow(self) -> None:
        while not self._end.wait(TICK_S):
            spent_s = time.monotonic() - self._began_s
            text = line(self._answer.notes, spent_s) if self._answer else "starting"
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def line(notes: Notes, spent_s: float) -> str:
    """Return the line: bytes, rows and bytes a second, time left."""
    part = min(1.0, notes.done_bytes / max(1, notes.size_bytes))
    speed = f"{notes.read_rows / spent_s:,.0f} rows/s, {size(notes.read_bytes / spent_s)}/s"
    left = f", {spent_s / part * (1 - part):.0f} s left" if 0 < part < 1 else ""
    return f"{size(notes.done_bytes)} of {size(notes.size_bytes)}, {part:.0%}, {speed}{left}"
