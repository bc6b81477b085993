"""Do something in a process of its own, which is killed (SIGKILL) before a change of the disk."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WATCHED = {"os.rename", "os.link", "os.remove"}


def forked(work: Callable[[], int], said: Path, *, steps: int, below: Path) -> int:
    """Fork a process; return its id.  It ends with the status that `work` returns.

    Args:
        work: what it does.
        said: file that gets what it prints, in place of what was there.
        steps: before which change of the disk it is killed; negative: before none.
        below: the directory in which changes are counted.
    """
    child = os.fork()
    if child:
        return child
    left = steps

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in WATCHED and str(args[0]).startswith(str(below)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    status = 99
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.addaudithook(hook)
        status = work()
    finally:
        os._exit(status)
