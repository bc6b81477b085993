"""Protection against standard streams that are closed or whose reader is gone.

**Invariant:** output that cannot be written changes neither what the program does nor its exit
status, except for a command whose only purpose is that output.
"""

from __future__ import annotations

import os
import sys


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
