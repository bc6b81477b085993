"""Standard streams that are closed, or whose reader has gone away.

**Invariant:** nothing that is lost on standard output changes what the program does or its status,
but for a command whose whole purpose was that output.
"""

from __future__ import annotations

import os
import sys


def complete() -> None:
    """Open the standard streams that whoever started us has closed, on the null device.

    Otherwise the next file that is opened, such as one of the journal, gets the descriptor of
    standard output, and whatever writes there spoils it.
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
    """Write out what is left on standard output; return whether anybody takes it.

    What nobody takes is dropped here: the interpreter would complain of it at its end, with a
    trace and a status of its own.
    """
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
        return False
    return True
