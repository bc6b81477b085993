"""Which days, datatypes and nodes to look at, and what the bucket lists of them, day by day.

**Invariant:** only names are listed, no object is read.  At most one day of each place is in
memory.  A half that came while the listing ran is looked for again before it is called missing.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from jostler.archive.pairs import other_half
from jostler.format.names import (
    INDEX,
    OWN_FOLDERS,
    BundleName,
    Day,
    Kind,
    Place,
    check_archived_datatype,
    check_experiment,
    check_organization,
    parse_token_filters,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jostler.storage import ObjectInfo, Storage

_DAY_FOLDERS = 3
_CHECKS = ".check"
"""The folder of trial objects, which an agent without the right to delete leaves behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What to look at.

    Attributes:
        datatypes: only these; all if empty.
        nodes: only these; all if empty.
        first: the first day; None for no bound.
        last: the last day; None for no bound.
    """

    datatypes: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    first: date | None = None
    last: date | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is about all objects of a place."""
        return not (self.datatypes or self.nodes or self.first or self.last)

    def has(self, day: date) -> bool:
        """Return whether a day is looked at."""
        return (self.first or day) <= day <= (self.last or day)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle as it is listed.

    Attributes:
        name: of the data object.
        data: the data object.
        index: the index object; None if there is none.
    """

    name: BundleName
    data: ObjectInfo
    index: ObjectInfo | None

    @property
    def index_name(self) -> BundleName:
        """The name of its index, whether it is there or not."""
        return replace(self.name, kind=Kind.INDEX)

    @property
    def size_bytes(self) -> int:
        """The size of both objects."""
        return self.data.size_bytes + (self.index.size_bytes if self.index else 0)


@dataclass(slots=True, kw_only=True)
class ListedDay:
    """What a bucket has of one day of one datatype.

    Attributes:
        place: the experiment's place.
        datatype: the datatype; `index1` for what lies in the indexes' folder and has no bundle.
        day: the day.
        bundles: the bundles, the earliest first.
        orphans: index objects without a data object.
        others: names of objects that are no bundles, each with the reason.
        filters: token filters of the bundles.
        lost_filters: token filters whose bundle is gone.
    """

    place: Place
    datatype: str
    day: date
    bundles: list[Bundle] = field(default_factory=list)
    orphans: list[tuple[BundleName, ObjectInfo]] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    filters: list[ObjectInfo] = field(default_factory=list)
    lost_filters: list[ObjectInfo] = field(default_factory=list)

    @property
    def folder(self) -> str:
        """The folder of its data objects."""
        return f"{self.place.root}/{self.datatype}/{Day(self.day).path}/"


def places_of(
    storage: Storage, data_dirs: Iterable[str], experiments: Iterable[str] = ()
) -> list[Place]:
    """Return the places of experiments that a bucket has.

    Args:
        storage: the bucket.
        data_dirs: such as `autoload/v1`.
        experiments: only these; all if empty.

    Raises:
        TransientError: a request to the bucket fails.
    """
    found = []
    wanted = set(experiments)
    for data_dir in data_dirs:
        organizations = [""]
        if data_dir.endswith("v2"):
            organizations = _folders(storage, f"{data_dir}/")
        for organization in organizations:
            root = "/".join(part for part in (data_dir, organization) if part)
            for experiment in _folders(storage, f"{root}/"):
                if not wanted or experiment in wanted:
                    try:
                        place = Place(
                            data_dir=data_dir, organization=organization, experiment=experiment
                        )
                    except ValueError:
                        continue  # a folder that no agent makes, and no loader reads
                    found.append(place)
    return found


def _folders(storage: Storage, prefix: str) -> list[str]:
    return [name for name in storage.folders(prefix) if name not in OWN_FOLDERS]


def strays(
    storage: Storage, data_dirs: Iterable[str], places: Iterable[Place]
) -> Iterator[tuple[str, str]]:
    """Yield what lies beside the experiments and their datatypes, name and reason: it is nobody's.

    These are objects beside the folders of experiments, organizations and datatypes, and folders
    that no experiment or organization can have.  Tables, schemas, assets and token filters are
    passed over.

    Args:
        storage: the bucket.
        data_dirs: such as `autoload/v1`.
        places: those whose datatypes are looked at.

    Raises:
        TransientError: a request to the bucket fails.
    """
    for above in sorted({data_dir.rpartition("/")[0] for data_dir in data_dirs}):
        yield from _beside(storage, f"{above}/")
    for data_dir in data_dirs:
        roots = [f"{data_dir}/"]
        if data_dir.endswith("v2"):
            good, strange = _checked(storage, roots[0], check_organization)
            yield from strange
            roots = [f"{roots[0]}{name}/" for name in good]
        for root in roots:
            yield from _checked(storage, root, check_experiment)[1]
    for place in places:
        yield from _beside(storage, f"{place.root}/")


def _checked(
    storage: Storage, root: str, check: Callable[[str], str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the folders whose names are allowed; and what else is there, with the reasons."""
    good, strange = [], list(_beside(storage, root))
    for folder in _folders(storage, root):
        if why := _why_not(folder, check):
            strange.append((f"{root}{folder}/", f"what is in it is not looked at: {why}"))
        else:
            good.append(folder)
    return good, strange


def _why_not(name: str, check: Callable[[str], str]) -> str:
    try:
        check(name)
    except ValueError as exc:
        return str(exc)
    return ""


def _beside(storage: Storage, root: str) -> Iterator[tuple[str, str]]:
    # An empty object with the name of a folder is how programs with a file tree make one.
    yield from ((name, "lies beside the folders") for name in storage.beside(root) if name != root)


def datatypes_of(storage: Storage, place: Place, scope: Scope) -> list[str]:
    """Return the datatypes of a place that are looked at, if only to see that all of it is gone.

    Raises:
        TransientError: a request to the bucket fails.
    """
    if scope.datatypes:
        return sorted(scope.datatypes - {INDEX})
    folders = storage.folders(f"{place.root}/")
    # Other folders have no table; their objects are reported.
    return [one for one in folders if one != INDEX and not _why_not(one, check_archived_datatype)]


def days(
    storage: Storage, place: Place, scope: Scope, *, metadata: bool = False
) -> Iterator[ListedDay]:
    """Yield the days of a place that hold anything, in order of days, then of datatypes.

    Args:
        storage: the bucket.
        place: of the experiment.
        scope: what to look at.
        metadata: whether the objects are listed with theirs.

    Raises:
        TransientError: a request to the bucket fails.
    """
    streams = [
        _by_day(storage, f"{place.root}/{folder}/", scope, metadata=metadata)
        for folder in storage.folders(f"{place.root}/")
        if folder != _CHECKS
        and (not scope.datatypes or folder in scope.datatypes or folder == INDEX)
    ]
    streams += [
        _by_day(storage, place.token_filters(datatype), scope)
        for datatype in storage.folders(place.token_filters(""))
        if not scope.datatypes or datatype in scope.datatypes
    ]
    merged = heapq.merge(*streams, key=lambda one: one[0])
    for day, folders in groupby(merged, key=lambda one: one[0]):
        listed = [info for _, objects in folders for info in objects]
        yield from _paired(storage, place, day, listed, scope)


def _by_day(
    storage: Storage, folder: str, scope: Scope, *, metadata: bool = False
) -> Iterator[tuple[date, list[ObjectInfo]]]:
    start = f"{folder}{Day(scope.first).path}/" if scope.first else ""
    # The character behind the slash: all of the last day comes before it.
    end = f"{folder}{Day(scope.last).path}0" if scope.last else ""

    def day_of(info: ObjectInfo) -> date:
        path = info.name.removeprefix(folder).split("/")[:_DAY_FOLDERS]
        try:
            return Day.parse("/".join(path)).date
        except ValueError:
            return date.min  # lies beside the days

    # A name beside the days may stand among them; it makes a group of its own.
    groups = groupby(storage.list(folder, start, end, metadata=metadata), key=day_of)
    held: list[ObjectInfo] = []
    for day, objects in groups:
        if day == date.min:
            held += objects
        else:
            yield day, list(objects)
    if held and not (scope.first or scope.last):
        yield date.max, held


def _paired(
    storage: Storage, place: Place, day: date, listed: list[ObjectInfo], scope: Scope
) -> Iterator[ListedDay]:
    """Yield the datatypes of one day."""
    found: dict[str, ListedDay] = {}

    def of(datatype: str) -> ListedDay:
        if datatype not in found:
            found[datatype] = ListedDay(place=place, datatype=datatype, day=day)
        return found[datatype]

    all_filters = place.token_filters("")
    filters = [info for info in listed if info.name.startswith(all_filters)]
    data, index, others = _sorted_out(
        [info for info in listed if not info.name.startswith(all_filters)]
    )
    _sort_filters(storage, filters, data, others, of, scope)
    for object_name, why in others:
        root = all_filters if object_name.startswith(all_filters) else f"{place.root}/"
        folder = object_name.removeprefix(root).partition("/")[0]
        if not scope.nodes and (folder != INDEX or not scope.datatypes):
            of(folder).others.append((object_name, why))
    for pair, (name, info) in sorted(data.items(), key=lambda item: item[1][0].created):
        _, its = index.pop(pair, (None, None))
        if not scope.nodes or name.node in scope.nodes:
            of(name.datatype).bundles.append(Bundle(name, info, its or _came(storage, name)))
    for name, info in index.values():
        if lacking := _lacking(storage, name, scope):
            of(lacking.datatype).orphans.append((name, info))
    for datatype in sorted(found):
        yield found[datatype]


def _sort_filters(  # noqa: PLR0917 - what `_paired` has found out
    storage: Storage,
    filters: list[ObjectInfo],
    data: _Halves,
    others: list[tuple[str, str]],
    of: Callable[[str], ListedDay],
    scope: Scope,
) -> None:
    """Say of token filters whether their bundle is there."""
    for info in filters:
        try:
            name = parse_token_filters(info.name)
        except ValueError as exc:
            others.append((info.name, str(exc)))
            continue
        if scope.nodes and name.node not in scope.nodes:
            continue
        # Bundle and filters may have been stored since the bundles were listed.
        is_there = name.pair in data or _is_listed(storage, str(name))
        day = of(name.datatype)
        (day.filters if is_there else day.lost_filters).append(info)


def _is_listed(storage: Storage, name: str) -> bool:
    return any(info.name == name for info in storage.list(name))


_Halves = dict[str, tuple[BundleName, "ObjectInfo"]]


def _sorted_out(listed: list[ObjectInfo]) -> tuple[_Halves, _Halves, list[tuple[str, str]]]:
    """Return data objects and index objects by pair, and what is neither, with the reason."""
    data: _Halves = {}
    index: _Halves = {}
    others = []
    for info in listed:
        try:
            name = BundleName.parse(info.name)
        except ValueError as exc:
            others.append((info.name, str(exc)))
            continue
        (index if name.kind is Kind.INDEX else data)[name.pair] = name, info
    return data, index, others


def _came(storage: Storage, name: BundleName) -> ObjectInfo | None:
    """Look once more for the index of a bundle: an agent may have stored it meanwhile."""
    wanted = str(replace(name, kind=Kind.INDEX))
    return next((info for info in storage.list(wanted) if info.name == wanted), None)


def _lacking(storage: Storage, index_name: BundleName, scope: Scope) -> BundleName | None:
    """Return the data object that an index lacks; None if it is there, or not in the scope."""
    names = other_half(index_name)
    if scope.datatypes:
        names = [name for name in names if name.datatype in scope.datatypes]
    if scope.nodes:
        names = [name for name in names if name.node in scope.nodes]
    for name in names:
        if _is_listed(storage, str(name)):
            return None
    return names[0] if names else None
