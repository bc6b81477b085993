"""What commands say on standard error, and the exit statuses that they share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jostler.errors import ConfigError, JostlerError
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Callable

DONE, FAILED, MISUSED = 0, 1, 2


def say(command: str, text: str) -> None:
    """Write lines to standard error, safe on a terminal, each with the name of the command."""
    for line in text.splitlines():
        sys.stderr.write(f"jostler {command}: {shown(line)}\n")


def say_error(command: str, error: JostlerError) -> None:
    """Say what went wrong, and what to do if that is known."""
    say(command, with_hint(error))


def with_hint(error: JostlerError) -> str:
    """Write what went wrong, and what to do if that is known."""
    return f"{error}" + (f" ({error.hint})" if error.hint else "")


def run(command: str, body: Callable[[], int]) -> int:
    """Run the body of a command that writes into the spool; return the exit status.

    Its errors end here: each is said with file, field and reason.
    """
    try:
        return body()
    except ConfigError as exc:
        for problem in exc.problems:
            say(command, problem)
        say(command, "-help shows the usage")
        return MISUSED
    except JostlerError as exc:
        say_error(command, exc)
    except OSError as exc:
        say(command, f"{exc.filename or 'the spool'}: {exc.strerror or exc}")
    return FAILED
