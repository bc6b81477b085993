"""Where the commands `jostler-load`, `jostler-query` and `jostler-sql` begin.

Each is imported, then run.
"""

from __future__ import annotations

from jostler.interrupts import end_at_once


def load() -> int:
    """Run `jostler-load`; return its exit status."""
    with end_at_once():
        from loader.cli.main import main  # noqa: PLC0415 - Ctrl-C may come while it lasts
    return main()


def query() -> int:
    """Run `jostler-query`; return its exit status."""
    with end_at_once():
        from loader.cli.query import main  # noqa: PLC0415 - as above
    return main()


def sql() -> int:
    """Run `jostler-sql`; return its exit status."""
    with end_at_once():
        from loader.cli.sql import main  # noqa: PLC0415 - as above
    return main()
