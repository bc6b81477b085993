"""Paths below the spool: the day that a file belongs to, or why its path is against the rules.

**Invariant:** the path alone decides; no file is looked at.
"""

from __future__ import annotations

from jostler.format import names
from jostler.format.names import Day, display
from jostler.format.row import Rejection

DAYS_MOST = 10_000
"""How many directories are remembered; a spool rarely has more days than this at a time."""


class Paths:
    """The days of directories, each parsed once; for one thread."""

    def __init__(self) -> None:
        self._days: dict[str, Day] = {}

    def day(self, datatype: str, folder: str) -> Day | None:
        """Return the day of a directory of a datatype, `yyyy/mm/dd`; None if it is not a day's."""
        return self._days.get(folder) or self.placed(datatype, f"{folder}/x")[0]

    def placed(self, datatype: str, filename: str) -> tuple[Day | None, Rejection | None]:
        """Return the day of a path, or why the path is against the rules."""
        directory, _, name = filename.rpartition("/")
        day = self._days.get(directory)
        if day:
            return day, misnamed(datatype, name)
        day, rejection = placed(datatype, filename)
        if day:
            if len(self._days) > DAYS_MOST:
                self._days.clear()
            self._days[directory] = day
        return day, rejection


def placed(datatype: str, filename: str) -> tuple[Day | None, Rejection | None]:
    """Return the day of a path below its datatype's directory, or why it is against the rules."""
    directory, _, name = filename.rpartition("/")
    try:
        day = Day.parse(directory)
    except ValueError as exc:
        return None, Rejection(datatype=datatype, reason="path", detail=display(str(exc)))
    return day, misnamed(datatype, name)


def misnamed(datatype: str, name: str) -> Rejection | None:
    """Return why a file name is not allowed; None if it is."""
    try:
        names.check_file_name(name)
    except ValueError as exc:
        return Rejection(datatype=datatype, reason="name", detail=display(str(exc)))
    return None
