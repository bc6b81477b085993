"""A bell that a thread or a signal handler can ring and that `poll` can hear.

**Invariant:** a ring is heard by the wait that runs or by the next one.  A signal alone does not
end a wait (PEP 475 takes it up again), which is why handlers ring.  It never blocks.
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
        """Give the descriptor that is readable from a ring until `hush`."""
        return self._reader

    def ring(self) -> None:
        """Make the descriptor readable."""
        writer = self._writer
        if writer >= 0:  # a signal may come after close, and the number may be another file's
            with suppress(BlockingIOError):  # rung so often that it is certainly heard
                os.write(writer, (1).to_bytes(8, "little"))

    def hush(self) -> bool:
        """Make the descriptor unreadable; tell whether it was rung."""
        try:
            return bool(os.read(self._reader, 65_536))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close the descriptors; later rings are heard by nobody."""
        ends = {self._reader, self._writer} - {-1}
        self._reader = self._writer = -1
        for end in ends:
            os.close(end)
