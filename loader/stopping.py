"""Ending a run before it is done: Ctrl-C, and SIGTERM as a node or a deadline sends it.

**Invariant:** after the first signal no new day is begun; load jobs that run are awaited and told
to the ledger, for `GRACE_S` at the most.  A second signal ends the process at once, as does the end
of the grace time: the next run finds what was done, by the ids of the load jobs.

A handler runs in the middle of whatever the main thread does, and may take no lock: it writes a
byte to a pipe, and a thread reads it.
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
    """Knows whether a run is to end; a context in which signals say so.

    Args:
        tell: where to say what happens now.

    Attributes:
        requested: set by the first signal.
        loading: counts the days whose load jobs run or are to be told to the ledger.
        cancel: ends the work that need not be awaited.
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
        """Take the signals; again after Spark has started, which takes Ctrl-C for itself."""
        for number in self._before:
            signal.signal(number, self._called)

    def _called(self, _number: int, _frame: object) -> None:
        interrupt = not self._called_before and not self.loading()
        self._called_before = True
        os.write(self._writer, _INTERRUPT if interrupt else _STOP)
        if interrupt:  # nothing needs to be awaited
            raise KeyboardInterrupt

    def _work(self) -> None:
        """Do what the signals ask for."""
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
        """End the process: threads that wait for BigQuery could not be ended otherwise."""
        self._console.event(
            "run.stopped",
            "warning",
            why=why,
            loading=self.loading(),
            next="the next run finds what these load jobs have done",
        )
        sys.stdout.flush()
        os._exit(STATUS)
