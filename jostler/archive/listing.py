"""List the index objects of an archive by day, from names alone.

**Invariant:** days come in order, and in each day the objects in the order of their names; folders
outside of the asked days are not listed.
"""

from __future__ import annotations

import heapq
from datetime import date, timedelta
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from jostler.format.names import INDEX, REJECTED, BundleName, Day

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.archive.query import Query
    from jostler.format.names import Place
    from jostler.storage import ObjectInfo, Storage

_STAMP = len("20220929T010203.000004Z")
_DAY_LENGTH = len("2022/09/29")


class Folder(NamedTuple):
    """The index objects of one day and place.

    Attributes:
        day: the day.
        prefix: the folder's name, with a slash at its end.
        objects: what it holds, in order; also what is no index.
    """

    day: date
    prefix: str
    objects: list[ObjectInfo]


def folders(
    storage: Storage, places: Sequence[Place], first: date, last: date, *, newest_first: bool
) -> Iterator[Folder]:
    """Yield the folders with objects by day, and inside of a day by place.

    Raises:
        TransientError: a request to the bucket fails.
    """
    roots = sorted(f"{place.root}/{INDEX}/" for place in places)
    per_place = [_of_place(storage, root, first, last, newest_first) for root in roots]
    if len(per_place) == 1:
        yield from per_place[0]
    else:
        yield from heapq.merge(*per_place, key=itemgetter(0), reverse=newest_first)


def one(storage: Storage, index_name: str) -> Iterator[Folder]:
    """Yield the folder of one index object with that object alone, if it exists.

    Raises:
        TransientError: a request to the bucket fails.
    """
    prefix = f"{index_name.rpartition('/')[0]}/"
    found = [info for info in storage.list(index_name) if info.name == index_name]
    day = _day(prefix[-_DAY_LENGTH - 1 : -1])
    if found and day:
        yield Folder(day, prefix, found)


def _of_place(
    storage: Storage, root: str, first: date, last: date, newest_first: bool
) -> Iterator[Folder]:
    months = list(_months(storage, root, first, last))
    for month in reversed(months) if newest_first else months:
        if newest_first:
            yield from _days_backwards(storage, root, month, first, last)
        else:
            yield from _days(storage, root, month, first, last)


def _days(storage: Storage, root: str, month: str, first: date, last: date) -> Iterator[Folder]:
    """List a month's days with one listing: a thousand names a request, whatever their days."""
    start, end = f"{root}{first:%Y/%m/%d}/", f"{root}{last + timedelta(days=1):%Y/%m/%d}/"
    found = storage.list(f"{root}{month}/", start, end)
    length = len(root) + _DAY_LENGTH
    for prefix, objects in groupby(found, key=lambda info: info.name[:length]):
        if day := _day(prefix[len(root) :]):
            yield Folder(day, f"{prefix}/", list(objects))


def _days_backwards(
    storage: Storage, root: str, month: str, first: date, last: date
) -> Iterator[Folder]:
    day = min(last, _last_of(month))
    while day >= first and f"{day:%Y/%m}" == month:
        prefix = f"{root}{day:%Y/%m/%d}/"
        if objects := list(storage.list(prefix)):
            yield Folder(day, prefix, objects)
        day -= timedelta(days=1)


def _months(storage: Storage, root: str, first: date, last: date) -> Iterator[str]:
    """Yield the months `yyyy/mm` from first to last; of more than three, those with objects."""
    if (last - first).days <= 62:  # noqa: PLR2004 - three months at most, not worth asking for
        day = first.replace(day=1)
        while day <= last:
            yield f"{day:%Y/%m}"
            day = (day + timedelta(days=31)).replace(day=1)
        return
    for year in storage.folders(root):
        if f"{first:%Y}" <= year <= f"{last:%Y}":
            for month in storage.folders(f"{root}{year}/"):
                if f"{first:%Y/%m}" <= f"{year}/{month}" <= f"{last:%Y/%m}":
                    yield f"{year}/{month}"


def _last_of(month: str) -> date:
    try:
        first = date(int(month[:4]), int(month[5:]), 1)
    except ValueError:
        return date.min
    return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def _day(path: str) -> date | None:
    try:
        return Day.parse(path).date
    except ValueError:
        return None


class Wanted:
    """Says from the name alone whether an index object may hold files that a query wants.

    Bundles of one datatype and node have names that differ in the time alone, so each such ending
    is parsed once.
    """

    def __init__(self, query: Query) -> None:
        self._query = query
        self._known: dict[str, BundleName] = {}

    def ending(self, base: str) -> str:
        """Return the part of a name that has datatype and node."""
        return base[_STAMP:]

    def name(self, prefix: str, base: str) -> BundleName | None:
        """Return a name with the datatype and node of this object; None if it is no index.

        Args:
            prefix: the folder.
            base: the object's name without it.
        """
        ending = self.ending(base)
        if ending not in self._known:
            try:
                self._known[ending] = BundleName.parse(prefix + base)
            except ValueError:
                return None
        return self._known[ending]

    def names(self, folder: Folder) -> Iterator[BundleName]:
        """Yield a name for each datatype and node whose index objects may hold wanted files."""
        length = len(folder.prefix)
        seen = set()
        for info in folder.objects:
            base = info.name[length:]
            if (ending := self.ending(base)) not in seen:
                name = self.name(folder.prefix, base)
                if name:
                    seen.add(ending)
                    if self.may_have(name):
                        yield name

    def may_have(self, name: BundleName) -> bool:
        """Return whether the index may hold wanted files.

        In the name of an index, nothing shows where a datatype with dashes ends and the node
        begins.
        """
        query, both = self._query, f"{name.datatype}-{name.node}"
        if query.datatypes:
            fits = any(both.startswith(f"{datatype}-") for datatype in query.datatypes)
        else:
            fits = name.datatype != REJECTED or query.takes_rejected
        of_node = not query.nodes or any(both.endswith(f"-{n}") for n in query.nodes)
        return fits and (of_node or name.is_merged)
