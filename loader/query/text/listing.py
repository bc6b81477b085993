"""Which bundles of a datatype lack token filters, and which filters have lost their bundle.

**Invariant:** filters are listed before bundles: a filter is made after its bundle, so one whose
bundle is not listed has none any more.  Only names and metadata are listed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.format.names import INDEX, BundleName, Day, Kind, Place
from loader.query.text.indexing import IndexTask, metadata_of

if TYPE_CHECKING:
    from datetime import date

    from jostler.storage import ObjectInfo, Storage


@dataclass(slots=True)
class Due:
    """What is to be done for a datatype.

    Attributes:
        tasks: bundles without filters, or with those of another object.
        fresh: how many bundles have filters.
        lost: filters without bundle.
        others: names of objects that are neither.
    """

    tasks: list[IndexTask] = field(default_factory=list)
    fresh: int = 0
    lost: list[ObjectInfo] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def due(storage: Storage, place: Place, datatype: str, first: date, last: date) -> Due:
    """List what is to be done for the days from first to last.

    Raises:
        TransientError: the bucket cannot be listed.
    """
    found = Due()
    filters = _listed(storage, place.token_filters(datatype), first, last)
    data = _listed(storage, f"{place.root}/{datatype}/", first, last)
    indexes = _listed(storage, f"{place.root}/{INDEX}/", first, last) if data else {}
    for info in data.values():
        try:
            name = BundleName.parse(info.name)
        except ValueError:
            found.others.append(info.name)
            continue
        there = filters.pop(name.token_filters, None)
        if there and there.metadata.items() >= metadata_of(info.version, info.size_bytes).items():
            found.fresh += 1
            continue
        index = indexes.get(str(replace(name, kind=Kind.INDEX)))
        found.tasks.append(
            IndexTask(
                bucket=storage.url,
                name=info.name,
                generation=info.version,
                size_bytes=info.size_bytes,
                index=index.name if index else "",
                index_generation=index.version if index else "",
                replaces=there.version if there else "",
            )
        )
    found.lost += filters.values()
    return found


def _listed(storage: Storage, prefix: str, first: date, last: date) -> dict[str, ObjectInfo]:
    start, end = (f"{prefix}{Day(day).path}" for day in (first, last + timedelta(days=1)))
    return {info.name: info for info in storage.list(prefix, start, end, metadata=True)}
