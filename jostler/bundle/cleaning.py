"""Who carries out clean-ups: the agent's own thread, or one beside it where that is faster.

**Invariant:** a clean-up is in one thread at a time, and its result is looked at by the agent's
thread alone, after that part of it has ended.

In Python a second thread would make both slower: they would compete for the interpreter lock (GIL)
at every system call.  The native module unlinks many files in one call without the lock; then the
agent's thread reads new files meanwhile.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.cleanup import Cleanup

FILES = 1000
"""Files that are looked at in one go: twice as many as are read, so that stored bundles do not pile
up."""
FILES_AT_ONCE = 32
"""So few are sooner done than handed over."""
FILES_BESIDE = 10_000
"""As `FILES`, in a thread of its own: so many take some 50 ms in memory, seconds on a network."""


class Cleaning(Protocol):
    """Carries out clean-ups, one after another, in parts."""

    @property
    def is_at_work(self) -> bool:
        """Whether a part goes on beside the caller, who is woken when it ends."""
        ...

    def step(self, cleanup: Cleanup) -> bool:
        """Go on with a clean-up; return whether none of its files is left.

        Raises:
            Exception: an unforeseen error with the file looked at last.
        """
        ...


class InTurn:
    """Cleans up in the thread of its caller."""

    is_at_work = False

    def step(self, cleanup: Cleanup) -> bool:
        """Go on with a clean-up; return whether none of its files is left."""
        return cleanup.step(FILES)


class Beside:
    """Cleans up in a thread of its own, but for the few files of small bundles.

    Args:
        wake: called after each part, from the thread.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._parts: queue.SimpleQueue[Cleanup] = queue.SimpleQueue()
        self._outcome: bool | BaseException | None = None
        self._is_at_work = False
        # A daemon: an unlink that hangs must not keep the process; the journal has the bundle.
        threading.Thread(target=self._run, name="cleanup", daemon=True).start()

    @property
    def is_at_work(self) -> bool:
        """Whether a part goes on in the thread."""
        return self._is_at_work and self._outcome is None

    def step(self, cleanup: Cleanup) -> bool:
        """Go on with a clean-up, the same one until it has ended; return whether it has."""
        if not self._is_at_work:
            if cleanup.left <= FILES_AT_ONCE:
                return cleanup.step(FILES_AT_ONCE)
            self._is_at_work = True
            self._parts.put(cleanup)
            return False
        outcome = self._outcome
        if outcome is None:
            return False
        self._outcome, self._is_at_work = None, False
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _run(self) -> None:
        while True:
            self._outcome = _ended(self._parts.get())
            # The outcome first, then the wake: the other way round, the owner could look too early
            # and sleep.
            self._wake()


def _ended(cleanup: Cleanup) -> bool | BaseException:
    """Do a part of a clean-up; return whether it has ended, or what was raised."""
    try:
        return cleanup.step(FILES_BESIDE)
    except BaseException as exc:  # noqa: BLE001 - raised again by the thread that waits
        return exc
