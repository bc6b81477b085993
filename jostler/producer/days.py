"""The folder of a document: the day given by the caller, else that of its Start, else today.

**Invariant:** the result is a day that the agent accepts, 2000 to 2099.

Pure: the current time is an argument.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.bundle.index_fields import Column
from jostler.format.names import Day

if TYPE_CHECKING:
    from jostler.bundle.index_fields import IndexFields

_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def day_of(
    document: bytes, name: str, fields: IndexFields, given: date | None, now: datetime
) -> Day:
    """Return the folder of a document.

    Args:
        document: one JSON object.
        name: of its file.
        fields: what fills its index columns; a translation sees the folder of today.
        given: the day that was asked for.
        now: the current time, in UTC.

    Raises:
        ValueError: the given day is outside of 2000 to 2099.
    """
    if given is not None:
        return Day.parse(f"{given:%Y/%m/%d}")
    today = Day(now.date())
    if Column.START in fields.columns:
        facts = fields.facts(f"{today.path}/{name}", document, 0)
        if facts.start_us is not None:
            start = _1970 + timedelta(microseconds=facts.start_us)
            try:
                return Day.parse(f"{start:%Y/%m/%d}")
            except ValueError:
                return today
    return today
