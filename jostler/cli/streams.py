"""Protection against standard streams that are closed or whose reader is gone.

**Invariant:** output that cannot be written changes neither what the program does nor its exit
status, except for a command whose only purpose is that output.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jostler.errors import JostlerError

if TYPE_CHECKING:
    from collections.abc import Iterator


def complete() -> None:
    """Open each closed standard stream on the null device.

    Otherwise the next file that the program opens, such as a journal record, would get descriptor
    1, and everything written to standard output would corrupt it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def write(text: str) -> None:
    """Write results, the purpose of a command, to standard output; `finish` ends them.

    Raises:
        BrokenPipeError: nobody reads them any more.
        JostlerError: they cannot be written.
    """
    with _told():
        sys.stdout.write(text)


def write_bytes(data: bytes) -> None:
    """Write results as they are, at once.

    Raises:
        BrokenPipeError: nobody reads them any more.
        JostlerError: they cannot be written.
    """
    with _told():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def finish() -> None:
    """Write what is buffered of the results.

    Raises:
        BrokenPipeError: nobody reads them any more.
        JostlerError: they cannot be written.
    """
    with _told():
        sys.stdout.flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise JostlerError(f"standard output: {exc.strerror or exc}") from exc


def flush() -> bool:
    """Write buffered standard output; return whether that succeeds.

    If it fails, drop the buffer: the interpreter would otherwise try again at exit, print a trace
    and exit with status 120.
    """
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return False
    return True
