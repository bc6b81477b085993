"""The survey: count the files that wait on the disk, and find the age of the oldest.

**Invariant:** it reads the disk, and uses nothing of the agent's state except which files are
already in a bundle; so a file that the agent missed is counted.  It runs at most 1/50 of the time.
"""

from __future__ import annotations

import math
import os
import threading
import time
from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.agent.observe.trend import Trend
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

log = Log("jostler.observe")

PAUSE_S = 5.0
SHARE = 50
"""The pause after a survey, as a multiple of its duration."""


class Waiting(Struct):
    """The waiting files of one datatype: those in no bundle; `oldest_s` is Unix time, 0 if none."""

    files: int = 0
    bytes: int = 0
    oldest_s: float = 0.0


class Surveyed(Struct, frozen=True):
    """The result of a survey.

    Attributes:
        at_s: the time of the survey, Unix time; 0 before the first one.
        full_in_s: in how many seconds the file system is full, by the trend of the last hour.
    """

    at_s: float = 0.0
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    free_bytes: int = 0
    size_bytes: int = 0
    full_in_s: float = math.inf


class Survey:
    """Surveys the spool repeatedly in its own thread.

    Args:
        spool: the experiment's directory.
        datatypes: the directories below it.
        wanted: returns whether a file of this name is archived.
        is_held: returns whether a path below the spool is in a bundle, or kept permanently.
    """

    def __init__(
        self,
        spool: str,
        datatypes: Sequence[str],
        wanted: Callable[[str], bool],
        is_held: Callable[[str], bool],
    ) -> None:
        self._spool = spool
        self._datatypes = datatypes
        self._wanted = wanted
        self._is_held = is_held
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="survey", daemon=True)
        self._trend = Trend()
        self.last = Surveyed()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(1.0)

    def look(self) -> Surveyed:
        """Look once."""
        waiting = {name: self._look_below(name) for name in self._datatypes}
        free, size = self._disk()
        full_in_s = self._trend.full_in_s(time.monotonic(), free) if size else math.inf
        self.last = Surveyed(time.time(), waiting, free, size, full_in_s)
        return self.last

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            begun_s = time.monotonic()
            try:
                self.look()
            except Exception:  # if the thread ended, the last numbers would stay for ever
                log.exception("survey.crashed")
            pause_s = max(PAUSE_S, SHARE * (time.monotonic() - begun_s))

    def _look_below(self, datatype: str) -> Waiting:
        waiting = Waiting()
        directories = [f"{self._spool}/{datatype}"]
        while directories and not self._stop.is_set():
            try:
                with os.scandir(directories.pop()) as entries:
                    for entry in entries:
                        if entry.name.startswith("."):
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            directories.append(entry.path)
                        elif self._wanted(entry.name):
                            self._count(entry, waiting)
            except OSError:
                continue  # the directory is gone, or unreadable, which the watcher reports
        return waiting

    def _count(self, entry: os.DirEntry[str], waiting: Waiting) -> None:
        if self._is_held(entry.path[len(self._spool) + 1 :]):
            return
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:
            return  # gone
        # A rename changes only ctime: a file that was moved into the spool waits since that time.
        since_s = max(found.st_mtime, found.st_ctime)
        waiting.files += 1
        waiting.bytes += found.st_size
        waiting.oldest_s = min(waiting.oldest_s or since_s, since_s)

    def _disk(self) -> tuple[int, int]:
        try:
            disk = os.statvfs(self._spool)
        except OSError:
            return 0, 0
        return disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
