"""The days that a run considers.

**Invariant:** a window is [start, end).  The windows of the periods are adjacent, as in m-lab's
autoloader: days older than `daily` are in `monthly`, and older ones in `annually`.

Pure: the current day is an argument.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum

FIRST = date(2000, 1, 1)
LAST = date(2100, 1, 1)
GIVEN = "given"
"""Used instead of a period if --start and --end are given."""


class Period(StrEnum):
    """How many past days a run considers."""

    DAILY = "daily"
    MONTHLY = "monthly"
    ANNUALLY = "annually"
    EVERYTHING = "everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The days from `start` to before `end`."""

    start: date = FIRST
    end: date = LAST

    @property
    def last(self) -> date:
        """The last day in it."""
        return self.end - timedelta(days=1)

    def __contains__(self, day: date) -> bool:
        return self.start <= day < self.end


EVERYTHING = Window()


def of_day(day: date) -> Window:
    """Return the window of one day."""
    return Window(start=day, end=day + timedelta(days=1))


def of_period(period: Period, today: date) -> Window:
    """Return the window of a period on the day `today` (UTC)."""
    yesterday = today - timedelta(days=1)
    match period:
        case Period.DAILY:
            return Window(start=yesterday, end=today + timedelta(days=1))
        case Period.MONTHLY:
            return Window(start=months_before(today, 1), end=yesterday)
        case Period.ANNUALLY:
            return Window(start=months_before(today, 12), end=months_before(today, 1))
        case _:
            return EVERYTHING


def months_before(day: date, months: int) -> date:
    """Go back by calendar months; if the month is too short, return its last day."""
    whole = day.year * 12 + day.month - 1 - months
    year, month = whole // 12, whole % 12 + 1
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))
