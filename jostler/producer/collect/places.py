"""How many fetches run at once, so that slow feeds cannot take all places from the others.

**Invariant:** at most `most` fetches run; of those of feeds that were slow the last time, at most
half as many.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SLOW_S = 1.0
"""A feed whose last fetch took longer, or had no answer, is slow."""


class Places:
    """The places for fetches; belongs to one event loop.

    Args:
        most: the value of `-connections`.
    """

    def __init__(self, most: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._slow = asyncio.Semaphore(max(1, most // 2))

    @asynccontextmanager
    async def one(self, *, slow: bool) -> AsyncIterator[None]:
        """Wait for a place and keep it."""
        if not slow:
            async with self._all:
                yield
            return
        # In this order: a slow feed that waits for its turn must not hold one of the common places.
        async with self._slow, self._all:
            yield
