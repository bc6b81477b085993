"""A jostler process that dies by SIGKILL before the n-th thing it does to a disk.

usage: killed.py N PREFIX jostler-arguments…

An audit hook sees each rename, link and unlink below PREFIX before it is carried out
(docs.python.org/3/library/audit_events.html); nothing of jostler is patched.
"""

from __future__ import annotations

import os
import signal
import sys

WATCHED = {"os.rename", "os.link", "os.remove", "os.mkdir"}


def is_in_spool(event: str, args: tuple[object, ...]) -> bool:
    """Say whether a name is given relative to a directory, as only the spool's files are."""
    return event == "os.remove" and args[1] != -1


def main() -> int:
    """Install the hook, then run jostler in this process."""
    left, prefix = int(sys.argv[1]), sys.argv[2]

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in WATCHED and (str(args[0]).startswith(prefix) or is_in_spool(event, args)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    from jostler.cli.main import main as jostler  # noqa: PLC0415 - imports touch no spool

    sys.addaudithook(hook)
    return jostler(sys.argv[3:])


if __name__ == "__main__":
    sys.exit(main())
