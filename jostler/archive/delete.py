"""Delete whole days of a datatype.

**Invariant:** of each bundle the index goes first, then the data.  So an interruption leaves data
without index: no catalogue lists it, `audit` reports it, and deleting again ends the work.  The
other order would leave an index that lists files which nobody can read any more.  Of BigQuery
nothing goes before the objects: a partition without its objects could not be loaded again.

A day is deleted as a whole, and not at all if it is younger than asked, or if an object of it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from jostler.archive.audit.remake import known_files
from jostler.archive.audit.scope import Scope, days
from jostler.archive.keeping import Looked, store_then_remove
from jostler.errors import ConflictError, MissingError
from jostler.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jostler.archive.audit.scope import Bundle, ListedDay
    from jostler.format.names import Place
    from jostler.storage import ObjectInfo, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class OldDay:
    """A day that is to be deleted, or is too young for it.

    Attributes:
        listed: what the bucket has of it.
        kept: why it is left; empty if it may go.
    """

    listed: ListedDay
    kept: str

    @property
    def objects(self) -> list[Looked]:
        """Its objects in the order in which they go: of each bundle the index first."""
        found = [Looked(info.name, info.version) for _, info in self.listed.orphans]
        for bundle in self.listed.bundles:
            if bundle.index:
                found.append(Looked(bundle.index.name, bundle.index.version))
            found.append(Looked(bundle.data.name, bundle.data.version))
        # The text index of a bundle that is gone does no harm: an interruption may leave it.
        found += [Looked(info.name, info.version) for info in self._filters]
        return found

    @property
    def _filters(self) -> list[ObjectInfo]:
        return [*self.listed.filters, *self.listed.lost_filters]

    @property
    def size_bytes(self) -> int:
        """The size of its objects."""
        orphans = sum(info.size_bytes for _, info in self.listed.orphans)
        filters = sum(info.size_bytes for info in self._filters)
        return orphans + filters + sum(bundle.size_bytes for bundle in self.listed.bundles)


def old_days(
    storage: Storage,
    places: Iterable[Place],
    scope: Scope,
    *,
    min_age: timedelta,
    now: datetime,
) -> Iterator[OldDay]:
    """Yield the days of some datatypes that have objects.

    Args:
        storage: the bucket.
        places: of the experiments.
        scope: the datatypes and days.
        min_age: what is younger is kept.
        now: the current time.

    Raises:
        TransientError: the bucket cannot be listed.
    """
    for place in places:
        for listed in days(storage, place, scope, metadata=True):  # which says how many rows
            there = listed.bundles or listed.orphans or listed.lost_filters
            if listed.datatype in scope.datatypes and there:
                yield OldDay(listed=listed, kept=_too_young(listed, min_age, now))


def _too_young(listed: ListedDay, min_age: timedelta, now: datetime) -> str:
    """Return why a day is kept; empty if it may go."""
    ends = datetime.combine(listed.day + timedelta(days=1), time(tzinfo=UTC))
    if now - ends < min_age:
        return f"the day is younger than -min-age {duration(min_age.total_seconds())}"
    # A bundle of an old day that was stored lately shows that a node still sends files of that day.
    newest = max((bundle.name.created for bundle in listed.bundles), default=ends)
    if now - newest < min_age:
        old = duration(min_age.total_seconds())
        return f"a bundle of {newest:%Y-%m-%dT%H:%M:%SZ} is younger than -min-age {old}"
    if listed.others:
        return f"{listed.others[0][0]} is no bundle: find out who stored it"
    return ""


def rows_of(storage: Storage, day: OldDay) -> int | None:
    """Return how many rows a day has, by metadata or else indexes; None if neither says it.

    Raises:
        TransientError: an index cannot be read.
    """
    found = [_rows_of(storage, bundle) for bundle in day.listed.bundles]
    known = [rows for rows in found if rows is not None]
    return sum(known) if len(known) == len(found) else None


def _rows_of(storage: Storage, bundle: Bundle) -> int | None:
    """Return how many rows a bundle has: by its metadata, else by its index."""
    rows = bundle.data.metadata.get("rows", "")
    if rows.isdecimal():
        return int(rows)
    if not bundle.index:
        return None
    try:
        index = storage.read(bundle.index.name, bundle.index.version).data
    except MissingError:  # it went away meanwhile
        return 0
    return len(known_files(bundle.index_name, storage.url, index)) or None


def delete_day(storage: Storage, day: OldDay) -> int:
    """Delete the objects of a day; return how many.

    Raises:
        ConflictError: an object has changed or was stored since the day was looked at.
        TransientError: a request fails; what is left can be deleted again.
    """
    assert not day.kept
    store_then_remove(storage, [], day.objects)
    # An agent, a compaction or a mend may have stored a bundle since, or an index: then the day's
    # rows are not gone, or files are listed that are.
    listed = day.listed
    of_day = Scope(datatypes=frozenset({listed.datatype}), first=listed.day, last=listed.day)
    for again in days(storage, listed.place, of_day):
        new = [str(bundle.name) for bundle in again.bundles]
        new += [name for name, _ in again.others] + [str(name) for name, _ in again.orphans]
        for name in new:
            raise ConflictError(f"{name} was stored since the day was listed")
    return len(day.objects)


def retained(retain: dict[str, int], today: date) -> dict[str, Scope]:
    """Return for each datatype the days that are older than they are to be kept.

    Args:
        retain: how many days each datatype is kept.
        today: the current day, UTC.
    """
    return {
        datatype: Scope(datatypes=frozenset({datatype}), last=today - timedelta(days=kept_days + 1))
        for datatype, kept_days in retain.items()
    }
