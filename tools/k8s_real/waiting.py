"""Wait for a condition that another process makes true."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 180.0
POLL_S = 0.5


def wait_until(what: str, condition: Callable[[], bool]) -> None:
    """Poll every half second until a condition is true, for at most three minutes.

    Args:
        what: the condition in words, for the error.
        condition: returns whether it is true.

    Raises:
        RuntimeError: it did not become true in time.
    """
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited {WAIT_S:g} s until: {what}")
        time.sleep(POLL_S)
