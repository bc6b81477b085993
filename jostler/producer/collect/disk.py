"""Whether the spool has room for more files.

**Invariant:** a lack begins below the limit and ends when a quarter more than it is free, so that
space that wavers around the limit changes nothing.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

log = Log("jostler.collect")

LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Space:
    """The space of the spool's disk in bytes, and whether fetching stops for lack of it."""

    free_bytes: int = 0
    limit_bytes: int = 0
    lacks: bool = False
    why: str = ""


class Disk:
    """Looks at the spool's disk, at most once a second; the event loop alone asks.

    Args:
        spool: the experiment's directory.
        limit: returns how many bytes of a disk of some size are to stay free.
        is_full: returns whether an agent asks services to write no more files into this spool.
        look_every_s: the time between two looks.
    """

    def __init__(
        self,
        spool: Path,
        limit: Callable[[int], int],
        is_full: Callable[[Path], bool],
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._spool = spool
        self._limit = limit
        self._is_full = is_full
        self._look_every_s = look_every_s
        self._due_s = 0.0
        self.space = Space()

    def lacks(self) -> bool:
        """Return whether nothing is to be fetched now; log a change."""
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + self._look_every_s
            before, self.space = self.space, self._look()
            if self.space.lacks != before.lacks:
                self._say()
        return self.space.lacks

    def _look(self) -> Space:
        try:
            disk = os.statvfs(self._spool)
        except OSError as exc:
            return Space(0, 0, lacks=True, why=f"{self._spool}: {exc.strerror}")
        free = disk.f_bavail * disk.f_frsize
        limit = self._limit(disk.f_blocks * disk.f_frsize)
        enough = limit + limit // 4 if self.space.lacks else limit
        if free < enough:
            return Space(free, limit, lacks=True, why="the spool's disk is nearly full")
        if self._is_full(self._spool):
            return Space(free, limit, lacks=True, why="the agent asks for no more files")
        return Space(free, limit)

    def _say(self) -> None:
        facts = {"free": self.space.free_bytes, "min_free": self.space.limit_bytes}
        if self.space.lacks:
            log.warning("collect.paused", why=self.space.why, **facts)
        else:
            log.info("collect.resumed", **facts)
