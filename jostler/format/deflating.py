"""The thread that compresses blocks, one after another, for all writers of the process.

**Invariant:** blocks are compressed in the order in which they were handed in.

An executor would do as well, but each submission takes locks that its thread has just then; in a
profile of an agent with small files it was a quarter of what the thread that reads did.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Packed:
    """The compressed bytes of a block, or the promise of them; its writer's thread takes them."""

    def __init__(self) -> None:
        self._outcome: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()

    @property
    def is_done(self) -> bool:
        """Whether `take` need not wait."""
        return not self._outcome.empty()

    def take(self) -> bytes:
        """Wait for the bytes and return them, once.

        Raises:
            BaseException: whatever compressing raised.
        """
        outcome = self._outcome.get()
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def make(self, pack: Callable[[bytes], bytes], plain: bytes) -> None:
        """Compress a block; in the thread."""
        try:
            self._outcome.put(pack(plain))
        except BaseException as exc:  # noqa: BLE001 - raised again by the thread that waits
            self._outcome.put(exc)


class Deflating:
    """The thread, which begins with the first block."""

    def __init__(self) -> None:
        self._blocks: queue.SimpleQueue[tuple[Packed, Callable[[bytes], bytes], bytes]]
        self._blocks = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def put(self, pack: Callable[[bytes], bytes], plain: bytes) -> Packed:
        """Hand in a block; any thread may do so."""
        # A process that was forked has no threads but the one that forked it.
        if self._thread is None or not self._thread.is_alive():
            self._start()
        packed = Packed()
        self._blocks.put((packed, pack, plain))
        return packed

    def _start(self) -> None:
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                # A daemon: whoever ends without waiting for a block does not want it.
                self._thread = threading.Thread(target=self._run, name="deflate", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            # No variable of the loop holds a block until the next one comes.
            _make(*self._blocks.get())


def _make(packed: Packed, pack: Callable[[bytes], bytes], plain: bytes) -> None:
    packed.make(pack, plain)
