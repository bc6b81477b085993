"""End a run early on a signal: SIGINT (Ctrl-C), or SIGTERM from Kubernetes.

**Invariant:** after the first signal no further day is begun.  Running load jobs are awaited and
recorded in the ledger, for at most `GRACE_S`.  A second signal, or the end of that time, ends the
process at once; the next run finds the load jobs by their ids.

A signal handler interrupts the main thread at any point, possibly while it holds a lock, so it may
not take one: it writes a byte to a pipe, and a thread reads it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from loader.cli.console import Console

GRACE_S = 45.0
"""Less than `terminationGracePeriodSeconds` of the loader's pods."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
STATUS = 1
_END = b"e"
_INTERRUPT = b"i"
_STOP = b"s"


class Stopping:
    """Whether a run is to end early; handles signals while its context is active.

    Args:
        console: shows events.

    Attributes:
        requested: set by the first signal.
        loading: returns the number of days that are being loaded or recorded.
        cancel: cancels the work that need not be awaited.
    """

    def __init__(self, console: Console) -> None:
        self.requested = threading.Event()
        self.loading: Callable[[], int] = lambda: 0
        self.cancel: Callable[[], None] = lambda: None
        self._console = console
        self._called_before = False
        self._before: dict[int, Any] = {}
        self._thread = threading.Thread(target=self._work, name="stopping", daemon=True)
        self._reader = self._writer = -1

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe()
        self._thread.start()
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in SIGNALS}
            self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.write(self._writer, _END)
        self._thread.join()
        os.close(self._reader)
        os.close(self._writer)

    def listen(self) -> None:
        """Install the signal handlers; call again after Spark has started and replaced one."""
        if threading.current_thread() is not threading.main_thread():
            return  # where Spark replaces none, and none could be installed
        for number in self._before:
            signal.signal(number, self._called)

    def _called(self, _number: int, _frame: object) -> None:
        interrupt = not self._called_before and not self.loading()
        self._called_before = True
        os.write(self._writer, _INTERRUPT if interrupt else _STOP)
        if interrupt:  # nothing needs to be awaited
            raise KeyboardInterrupt

    def _work(self) -> None:
        """Carry out what the signals request."""
        asked = os.read(self._reader, 1)
        if asked == _END:
            return
        self.requested.set()
        if asked == _STOP:
            self._console.event(
                "run.stopping",
                "warning",
                loading=self.loading(),
                grace_s=GRACE_S,
                next="no new day is begun, running load jobs are awaited; once more ends at once",
            )
        threading.Thread(target=self.cancel, name="cancel", daemon=True).start()
        if not select.select([self._reader], [], [], GRACE_S)[0]:
            self._end("the time for that is over")
        elif os.read(self._reader, 1) != _END:
            self._end("asked for again")

    def _end(self, why: str) -> None:
        """End the process at once: threads that wait for BigQuery cannot be interrupted."""
        self._console.event(
            "run.stopped",
            "warning",
            why=why,
            loading=self.loading(),
            next="the next run finds what these load jobs have done",
        )
        sys.stdout.flush()
        os._exit(STATUS)
