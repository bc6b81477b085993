"""The command line: `python -m loader`, `jostler-load`, and `spark-submit loader/job.py`.

**Invariant:** Spark and BigQuery are imported only after the options have been checked.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING

from jostler.errors import ConfigError, JostlerError
from loader.cli import extras
from loader.cli.options import parse
from loader.errors import LoaderError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, SOME_FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130
COMMANDS = {
    "audit": "loader.cli.audit",
    "compact": "loader.cli.compact",
    "index": "loader.cli.index",
    "query": "loader.cli.query",
    "request": "loader.cli.request",
    "status": "loader.cli.status",
}
"""The module of each command; its `main` takes the words behind the command's name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the loader; return its exit status."""
    try:
        return _run(argv)
    except BrokenPipeError:  # the reader of the output, such as head, has seen enough
        return SOME_FAILED
    finally:
        _flush()


def _flush() -> None:
    """Flush standard output; drop what cannot be written, or the interpreter fails at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in COMMANDS:
            return _command(words[0], words[1:])
        return _load(words)
    except UsageError as exc:
        print("jostler-load: wrong options (see --help):", file=sys.stderr)
        for problem in exc.problems:
            print(f"  {problem}", file=sys.stderr)
        return WRONG_USE
    except (LoaderError, JostlerError) as exc:
        print(f"jostler-load: {exc}", file=sys.stderr)
        return SOME_FAILED
    except KeyboardInterrupt:
        print("jostler-load: interrupted; the next run finds what was done", file=sys.stderr)
        return INTERRUPTED


def _command(name: str, words: list[str]) -> int:
    """Run a command besides the load."""
    if missing := extras.missing(*extras.PACKAGES):
        print(f"jostler-load: {missing}", file=sys.stderr)
        return SOME_FAILED
    status: int = import_module(COMMANDS[name]).main(words)
    return status


def _load(words: list[str]) -> int:
    options = parse(words, os.environ, datetime.now(UTC).date())
    if missing := extras.missing(*extras.PACKAGES):
        print(f"jostler-load: {missing}", file=sys.stderr)
        return SOME_FAILED
    from jostler.schema.native import find  # noqa: PLC0415 - see the module's invariant
    from loader.cli.command import command  # noqa: PLC0415 - as above

    try:
        find(options.native)
    except ConfigError as exc:
        print(f"jostler-load: -{exc}", file=sys.stderr)
        return WRONG_USE
    if options.every_s:
        from loader.cli.console import Console  # noqa: PLC0415 - as above
        from loader.cli.daemon import Daemon  # noqa: PLC0415 - as above

        return Daemon(options, Console()).run()
    return command(options)
