"""The totals of each datatype's day, added up from a catalogue.

**Invariant:** at most one day is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date, datetime

    from jostler.archive.catalogue import Catalogue
    from jostler.archive.files import NodeDay, Rejects, Tally
    from jostler.archive.query import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotal:
    """The files of one datatype and day.

    Attributes:
        day: the day of the folders.
        datatype: the datatype.
        files: the number of files; one that is stored twice counts twice.
        size_bytes: bytes of these files.
        nodes: the number of nodes that stored them.
        bundles: the number of bundles.
        rejected: the number of files of this datatype that agents rejected.
        first: the earliest instant of these files; None if all were rejected.
        last: the latest instant of these files; None if all were rejected.
    """

    day: date
    datatype: str
    files: int
    size_bytes: int
    nodes: int
    bundles: int
    rejected: int
    first: datetime | None
    last: datetime | None


def day_totals(
    catalogue: Catalogue, query: Query, tally: Tally | None = None
) -> Iterator[DayTotal]:
    """Yield the totals by day and datatype; of the query the same is used as by `days`."""
    stored = groupby(catalogue.days(query, tally), key=lambda one: one.day)
    rejected = groupby(catalogue.rejects(query, tally), key=lambda one: one.day)
    late = max if query.newest_first else min
    left, right = next(stored, None), next(rejected, None)
    while left or right:
        day = late(pair[0] for pair in (left, right) if pair)
        nodes: list[NodeDay] = []
        rejects: list[Rejects] = []
        if left and left[0] == day:
            nodes = list(left[1])
            left = next(stored, None)
        if right and right[0] == day:
            rejects = list(right[1])
            right = next(rejected, None)
        yield from _of_day(day, nodes, rejects)


def _of_day(day: date, nodes: Iterable[NodeDay], rejects: Iterable[Rejects]) -> Iterator[DayTotal]:
    parts: dict[str, list[NodeDay]] = {}
    for one in nodes:
        parts.setdefault(one.datatype, []).append(one)
    bad: dict[str, int] = {}
    for reject in rejects:
        bad[reject.datatype] = bad.get(reject.datatype, 0) + reject.files
    for datatype in sorted({*parts, *bad}):
        of = parts.get(datatype, [])
        yield DayTotal(
            day=day,
            datatype=datatype,
            files=sum(one.files for one in of),
            size_bytes=sum(one.size_bytes for one in of),
            nodes=len(of),
            bundles=sum(one.bundles for one in of),
            rejected=bad.get(datatype, 0),
            first=min((one.first for one in of), default=None),
            last=max((one.last for one in of), default=None),
        )
