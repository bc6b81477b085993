"""Load again and again, in one process: `--every`.

**Invariant:** each round is a run like any other, with its own RunID; nothing but Spark's session
is kept from one to the next.  A round that fails as a whole is reported, and the next one begins at
its time.  A request that somebody makes ends the waiting at once, and a round at its next wave.

SIGTERM and SIGINT end the waiting, or a round after the days that are being loaded.
"""

from __future__ import annotations

import signal
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.bigquery.ledger import Ledger
from loader.bigquery.requests import REQUESTS
from loader.bigquery.warehouse import Warehouse
from loader.cli.command import command
from loader.errors import LoaderError, UsageError
from loader.plan.window import GIVEN, Period, of_period
from loader.run import Loader
from loader.stopping import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loader.cli.console import Console
    from loader.cli.options import Options

    Make = Callable[[Options, ExitStack], Loader]

LOOK_S = 10.0
"""How often the table of requests is looked at, by a call that costs nothing."""


class Daemon:
    """Runs the loader at intervals.

    Args:
        options: what each round does; its window moves with the days.
        console: shows events and results.
        make: makes the loader of a round; its Spark session is to be kept in the given stack.
    """

    def __init__(self, options: Options, console: Console, make: Make | None = None) -> None:
        self._options = options
        self._console = console
        self._make = make or (lambda options, keep: Loader(options, console, keep=keep))
        self._ended = threading.Event()
        self._warehouse = Warehouse(options.project, options.location, options.patience_s)
        self._table = Ledger(self._warehouse, options.meta_dataset).name(REQUESTS)

    def run(self) -> int:
        """Run rounds until a signal; return the exit status of the last one.

        Raises:
            UsageError: a file that the options name is wrong.
        """
        status = 0
        with ExitStack() as keep, self._signals():
            keep.callback(self._warehouse.close)
            self._console.event("daemon.begun", every_s=self._options.every_s)
            while not self._ended.is_set():
                began_s = time.monotonic()
                before = self._look()
                status = self._round(keep, before)
                left_s = self._options.every_s - (time.monotonic() - began_s)
                self._wait(left_s, before)
            self._console.event("daemon.ended", status=status)
        return status

    def _round(self, keep: ExitStack, before: str) -> int:
        """Run the loader once; look for new requests meanwhile."""
        options = self._options
        if options.period != GIVEN:
            window = of_period(Period(options.period), datetime.now(UTC).date())
            options = replace(options, window=window)
        loader = self._make(options, keep)
        over = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(loader, before, over), name="requests", daemon=True
        )
        watcher.start()
        try:
            return command(options, loader, self._console)
        except UsageError:
            raise
        except LoaderError as exc:
            self._console.event("run.failed", "error", error=str(exc))
            return 1
        except KeyboardInterrupt:  # a signal when nothing was being loaded
            self._ended.set()
            return 1
        finally:
            over.set()
            watcher.join()
            if loader.stopping.requested.is_set():
                self._ended.set()

    def _watch(self, loader: Loader, before: str, over: threading.Event) -> None:
        while not over.wait(LOOK_S):
            if self._look() != before:
                loader.enough.set()
                return

    def _wait(self, left_s: float, before: str) -> None:
        """Wait until the next round, or until a request is made."""
        until_s = time.monotonic() + left_s
        while (left_s := until_s - time.monotonic()) > 0:
            if self._look() != before or self._ended.wait(min(LOOK_S, left_s)):
                return

    def _look(self) -> str:
        """Return a text that changes whenever a request is made; empty while there is none."""
        try:
            found = self._warehouse.get_table(self._table)
        except LoaderError:  # the round itself says so
            return ""
        # The first round makes the table, which is no request: hence empty without rows.
        if found is None or not (found.num_rows or found.streaming_buffer):
            return ""
        return f"{found.created} {found.modified}"

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Let a signal end the waiting; while a round runs, `Stopping` takes them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in SIGNALS}
        for number in SIGNALS:
            # An Event's lock may be held by the thread that is interrupted: a plain attribute of
            # the main thread is not enough for `wait`, so another thread sets it.
            signal.signal(number, lambda *_: threading.Thread(target=self._ended.set).start())
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
