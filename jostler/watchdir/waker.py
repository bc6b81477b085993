"""A descriptor by which a thread or a signal handler ends a `poll` of another thread.

**Invariant:** `ring` ends the running wait, or the next one, and never blocks.  Signal handlers
need it, because a signal alone does not end a wait: Python repeats the system call (PEP 475).
"""

from __future__ import annotations

import os
from contextlib import suppress


class Waker:
    """An eventfd where there is one, a pipe elsewhere."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self._reader = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._writer = self._reader
        else:  # pragma: no cover - not Linux
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)

    def fileno(self) -> int:
        """Return the descriptor; it is readable from `ring` until `hush`."""
        return self._reader

    def ring(self) -> None:
        """Make the descriptor readable."""
        writer = self._writer
        if writer >= 0:  # after close, the number may belong to another file
            with suppress(BlockingIOError):  # the counter or pipe is full, so it is readable
                os.write(writer, (1).to_bytes(8, "little"))

    def hush(self) -> bool:
        """Make the descriptor unreadable; return whether `ring` was called."""
        try:
            return bool(os.read(self._reader, 65_536))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close the descriptors; later calls of `ring` do nothing."""
        ends = {self._reader, self._writer} - {-1}
        self._reader = self._writer = -1
        for end in ends:
            os.close(end)
