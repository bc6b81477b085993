"""List the bundles of past days, each with its index, for compaction.

**Invariant:** it lists data before indexes, so a bundle that an agent stores meanwhile is seen
without an index at worst, and is then left alone.  It reads no object.
"""

from __future__ import annotations

from datetime import date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from jostler.archive.audit.scope import places_of
from jostler.archive.compact_plan import Member, member
from jostler.format.names import INDEX, BundleName, Day, Kind, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.storage import ObjectInfo, Storage

FIRST, LAST = date(2000, 1, 1), date(2100, 1, 1)


def last_settled(today: date, settled_days: float) -> date:
    """Return the last day that ended at least so many days before the given one began."""
    return today - timedelta(days=1) - timedelta(days=settled_days)


def places_in(
    storage: Storage,
    versions: Sequence[str] = ("v1", "v2"),
    experiments: frozenset[str] = frozenset(),
) -> list[Place]:
    """Return the places of a bucket.

    Args:
        storage: the bucket.
        versions: of the layout.
        experiments: only these; all if there are none.

    Raises:
        TransientError: a request to the bucket fails.
    """
    return places_of(storage, [f"autoload/{version}" for version in versions], experiments)


def datatypes_in(storage: Storage, place: Place) -> list[str]:
    """Return the datatypes of a place that have data bundles, rejected1 included."""
    return [name for name in storage.folders(f"{place.root}/") if name != INDEX]


def days(
    storage: Storage, place: Place, datatype: str, first: date, last: date, *, least: int = 2
) -> Iterator[tuple[Day, list[Member], list[str]]]:
    """Yield each day with its bundles, and the names of objects that are no bundles.

    Args:
        storage: the bucket.
        place: the experiment's place.
        datatype: of the bundles.
        first: the first day.
        last: the last day.
        least: of a day that has fewer bundles none is listed.

    Raises:
        TransientError: a request to the bucket fails.
    """
    folder = f"{place.root}/{datatype}/"
    start, end = (
        f"{folder}{day:%Y/%m/%d}/"
        for day in (first, min(last, LAST - timedelta(days=1)) + timedelta(days=1))
    )
    length = len(folder) + len("yyyy/mm/dd")
    listed = storage.list(folder, start, end, metadata=True)
    for prefix, objects in groupby(listed, key=lambda info: info.name[:length]):
        infos = list(objects)
        try:
            day = Day.parse(prefix[len(folder) :])
        except ValueError:
            yield Day(first), [], [info.name for info in infos]
            continue
        yield day, *_members(storage, place, day, infos, least)


def _members(
    storage: Storage, place: Place, day: Day, infos: list[ObjectInfo], least: int
) -> tuple[list[Member], list[str]]:
    names: dict[str, BundleName] = {}
    others = []
    for info in infos:
        try:
            name = BundleName.parse(info.name)
        except ValueError:
            others.append(info.name)
            continue
        if name.kind is Kind.DATA:
            names[info.name] = name
    if len(names) < least:  # one alone is not merged: do not list the indexes
        return [], others
    # After the data objects: a bundle that an agent or a compactor stores meanwhile is not among
    # them, and its index is passed over.
    listed = storage.list(f"{place.root}/{INDEX}/{day.path}/", metadata=True)
    indexes = {info.name: info for info in listed}
    found = []
    for info in infos:
        if info.name in names:
            index_name = member(names[info.name], info, None).index_name
            found.append(member(names[info.name], info, indexes.get(index_name)))
    return found, others
