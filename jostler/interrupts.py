"""Ctrl-C while a program is still being imported, which takes it some tenths of a second.

**Invariant:** a signal that the program's starter ignores (`nohup`, a shell's `&`) stays ignored.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def end_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process without a trace; a shell shows the status 130.

    By default Python raises KeyboardInterrupt, which no `main` that is not imported yet can catch.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
