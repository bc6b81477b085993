"""Processes of jostler that die by SIGKILL before the n-th thing they do to a disk.

usage: killed.py, then on standard input a JSON line for each process: {"steps", "prefix", "argv",
"output"}.  Its exit status (negative: the signal) is written to standard output.

Each is a process of its own, forked from this one, which has imported jostler and nothing else, has
one thread and runs none of it; so hundreds of them do not pay for an interpreter's start.

An audit hook sees each rename, link and unlink below PREFIX before it is carried out
(docs.python.org/3/library/audit_events.html); nothing of jostler is patched.  With steps -1 nothing
is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from jostler.cli.main import main as jostler_main

WATCHED = {"os.rename", "os.link", "os.remove", "os.mkdir"}


def is_in_spool(event: str, args: tuple[object, ...]) -> bool:
    """Say whether a name is given relative to a directory, as only the spool's files are."""
    return event == "os.remove" and args[1] != -1


def run(steps: int, prefix: str, argv: list[str], output: str) -> int:
    """Install the hook, then run jostler in this process, with its output in a file."""
    left = steps

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal left
        if event in WATCHED and (str(args[0]).startswith(prefix) or is_in_spool(event, args)):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.addaudithook(hook)
    return jostler_main(argv)


def main() -> None:
    """Fork a process for each line."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            status = 99
            try:
                status = run(**asked)
            except SystemExit as exc:
                status = int(exc.code or 0)
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
