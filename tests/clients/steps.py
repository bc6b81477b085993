"""Run the ten steps of a client; print for each `ok` or why it failed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable

TOLD = 300


def run(client: str, steps: list[tuple[str, Callable[[], object]]]) -> None:
    """Run the steps in order; exit with status 1 if one failed."""
    failed = 0
    for name, step in steps:
        try:
            step()
        except Exception as exc:
            failed += 1
            if "-v" in sys.argv:
                traceback.print_exc()
            said = " ".join(f"{type(exc).__name__}: {exc}".split())
            print(f"{client}: {name}: FAILED {said[:TOLD]}", flush=True)
        else:
            print(f"{client}: {name}: ok", flush=True)
    sys.exit(1 if failed else 0)
