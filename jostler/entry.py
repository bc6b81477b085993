"""Where the command `jostler` begins: it is imported, then run."""

from __future__ import annotations

from jostler.interrupts import end_at_once


def main() -> int:
    """Run `jostler`; return its exit status."""
    with end_at_once():
        from jostler.cli.main import main as run  # noqa: PLC0415 - Ctrl-C may come while it lasts
    return run()
