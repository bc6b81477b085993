"""Files that were examined and left on the disk, with the reason and when to examine them again.

**Invariant:** a file is remembered with its state, so a file that changes is examined again.  Files
that were rejected and stay are remembered on disk, too, so that a restart does not reject them
again.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import orjson
from msgspec.structs import replace

from jostler.agent.ages import Clock, Sightings
from jostler.bundle import FileState
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from jostler.agent.ages import Ages
    from jostler.bundle import Rejection

log = Log("jostler.intake")

REMEMBERED_MOST = 100_000


class LeftFiles:
    """The files left on the disk; used by the agent's thread, others may call `stays`.

    Args:
        ages: when a file that a scan met is taken.
        kept_file: where to remember the files that were rejected and stay.

    Attributes:
        ages: when a file that a scan found is taken, corrected for steps of the clock.
        finished: bad files that stay, until they change.
        unreadable: files that were rejected because they cannot be read, until they change or can.
        doubtful: files that are bad now and may still become good.
        failed_reads: how often in a row a file could not be read.
        overdue: paths of files that are old enough and cannot be archived: they grow, cannot be
            read, or are bad and too big to be stored whole.
        waiting: how many files a scan found too early, since the caller last set it to 0.
        of_age_s: when the first bad file found only by scans reaches -missed-age, monotonic
            seconds; reset to None by the caller.
    """

    def __init__(self, ages: Ages, kept_file: Path) -> None:
        self.ages = ages
        self._clock = Clock()
        self._sightings = Sightings()
        self._kept_file = kept_file
        self.finished: dict[str, FileState] = {}
        self.unreadable: dict[str, FileState] = {}
        self.doubtful: dict[str, FileState] = {}
        self.failed_reads: dict[str, int] = {}
        self.overdue: set[str] = set()
        self.waiting = 0
        self.of_age_s: float | None = None

    def stays(self, path: str) -> bool:
        """Return whether a file is bad and stays; any thread may call this."""
        return path in self.finished or path in self.unreadable

    def settled_ns(self) -> int:
        """Return the instant since which a file must be unchanged to be taken, if it is good.

        After a step of the clock it is the beginning of 1970: then each file's age is looked at.
        """
        ages = self.ages
        return 0 if ages.others_ns else time.time_ns() - round(ages.settle_s * 1e9)

    def is_missed(self, state: FileState) -> bool:
        """Return whether a file found by a scan has reached -missed-age."""
        return self.ages.until_missed_s(state, time.time_ns()) <= 0

    def is_unchanged(self, path: str, state: FileState) -> bool:
        """Return whether a file has been seen in this state for at least -settle-age.

        The file's times alone do not prove it: the clock may have been set before this process
        began.
        """
        seen_s = self._sightings.unchanged_s(path, state, time.monotonic())
        if seen_s < self.ages.settle_s:
            return False
        self._sightings.forget(path)
        return True

    def look_at_clock(self) -> None:
        """Notice a step of the clock, which makes no file older."""
        if others_ns := self._clock.others_ns():
            self.ages = replace(self.ages, others_ns=others_ns)

    def wait(self, path: str, state: FileState, *, late: bool) -> None:
        """Leave a file for the next scan; `late` if it was old enough to be taken now."""
        self.waiting += 1
        if late and self.is_missed(state):
            self.overdue.add(path)

    def doubt(self, path: str, state: FileState) -> None:
        """Leave a bad file that may be half-written until it changes or reaches -missed-age."""
        _remember(self.doubtful, path, state)
        left_s = self.ages.until_missed_s(state, time.time_ns())
        due_s = time.monotonic() + (left_s if left_s > 0 else self.ages.settle_s)
        self.of_age_s = due_s if self.of_age_s is None else min(self.of_age_s, due_s)

    def written(self, path: str, state: FileState) -> None:
        """Leave a file that a process writes; its close gives an event, so no scan is needed."""
        if self.is_missed(state):
            self.overdue.add(path)

    def gone(self, path: str) -> None:
        """Forget a file that is gone."""
        self.overdue.discard(path)

    def finish(self, path: str, state: FileState, *, unreadable: bool = False) -> None:
        """Leave a bad file until it changes or, if it is bad because unreadable, can be read."""
        _remember(self.unreadable if unreadable else self.finished, path, state)

    def taken(self, path: str) -> None:
        """Forget a file that is now in a bundle."""
        if self.overdue:
            self.overdue.discard(path)
        if self.failed_reads:
            self.failed_reads.pop(path, None)
        if self.unreadable:
            self.unreadable.pop(path, None)
        self.doubtful.pop(path, None)

    def taken_many(self, paths: Iterable[str]) -> None:
        """Forget files that are now in a bundle."""
        if self.overdue or self.failed_reads or self.unreadable or self.doubtful:
            for path in paths:
                self.taken(path)

    def keep(self, kept: Mapping[str, FileState], rejections: Mapping[str, Rejection]) -> None:
        """Remember on disk which files were stored as rejected and stay.

        If the disk cannot be written, they are remembered only until the process ends.

        Args:
            kept: the state in which each file was rejected, by path.
            rejections: why each was rejected, by path.
        """
        lines = []
        for path, state in kept.items():
            unreadable = rejections[path].reason == "unreadable"
            self._keep(path, state, unreadable=unreadable)
            lines.append(_line(path, state, unreadable=unreadable))
        if not lines:
            return
        try:
            with self._kept_file.open("ab") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as exc:
            log.warning(
                "kept.not_remembered", error=str(exc), next="rejected again after a restart"
            )

    def load(self, status: Callable[[str], FileState]) -> None:
        """Read which files an earlier process rejected and left.

        Args:
            status: returns the state of a path below the spool; raises OSError without one.
        """
        lines = {}
        with suppress(FileNotFoundError):
            for line in self._kept_file.read_bytes().splitlines()[-REMEMBERED_MOST:]:
                with suppress(ValueError, TypeError, OSError):
                    path, unreadable, *numbers = orjson.loads(line)
                    if status(path) == (state := FileState(*numbers)):
                        lines[path] = _line(path, state, unreadable=unreadable)
                        self._keep(path, state, unreadable=unreadable)
            with suppress(OSError):  # then files that are gone stay listed, which is harmless
                # In place and without sync: if a crash loses lines, these files are rejected once
                # more.
                if lines:
                    self._kept_file.write_bytes(b"".join(lines.values()))
                else:
                    self._kept_file.unlink()

    def _keep(self, path: str, state: FileState, *, unreadable: bool) -> None:
        self.finish(path, state, unreadable=unreadable)
        self.overdue.add(path)


def _line(path: str, state: FileState, *, unreadable: bool) -> bytes:
    with suppress(TypeError):  # a name that is no UTF-8 is forgotten with the process
        return orjson.dumps([path, unreadable, *state]) + b"\n"
    return b""


def _remember(states: dict[str, FileState], path: str, state: FileState) -> None:
    """Remember a file's state, of so many files at the most."""
    while len(states) >= REMEMBERED_MOST:
        del states[next(iter(states))]
    states[path] = state
