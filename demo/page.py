"""What a reader of the demo sees: headings, sentences and tables of at most 100 columns.

**Invariant:** every line is written after the event that it describes.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

WIDTH = 100


class Page:
    """Writes the demo's page.

    Args:
        out: where to; standard output if not given.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._began = time.monotonic()
        self._step = 0

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def step(self, title: str) -> None:
        """Begin a numbered step."""
        self._step += 1
        head = f"{self._step}. {title} "
        self._write(f"\n{head}{'─' * (WIDTH - 12 - len(head))} {self.spent_s:5.1f} s\n")

    def say(self, text: str) -> None:
        """Write one line."""
        self._write(f"   {text}".rstrip() + "\n")

    def block(self, text: str, *, cut: bool = True) -> None:
        """Write lines that stand apart, by default cut to the width of the page."""
        room = WIDTH - 6 if cut else sys.maxsize
        lines = (x if len(x) <= room else x[: room - 1] + "…" for x in text.splitlines())
        self._write("".join(f"      {line}".rstrip() + "\n" for line in lines))

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
