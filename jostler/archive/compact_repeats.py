"""Compact a day without the repeats of its feeds: A A B A becomes A B A, whichever node saved it.

**Invariant:** a row is left out only if every bundle of the day was read whole, agreed with its
index, and was still there when all were read; and if the feed's row before it, in the order of the
times in the names, has an equal body.  So an earlier row with that body is in a whole bundle.
Where this is not so, the day is merged with its repeats, and the reason is returned.

A row that is stored after the day was read is not seen: if it lies between two equal bodies, the
second one is gone already.  A day must be over, and its agents idle, before repeats are left out.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.archive.compact import THREADS, Compacted, compact
from jostler.archive.compact_days import days
from jostler.archive.compact_input import read_input
from jostler.archive.compact_plan import Group, groups
from jostler.archive.compact_rows import InputError
from jostler.archive.repeats import repeated
from jostler.errors import MissingError, StorageError
from jostler.format.names import REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.archive.compact_plan import Member
    from jostler.archive.repeats import Identity
    from jostler.format.compression import Compression
    from jostler.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeDay(Group):
    """All bundles of a datatype's day, of any schema: groups follow when the repeats are known.

    Attributes:
        small_bytes: data objects of this size or larger are left alone if they have no repeats.
    """

    small_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Divided:
    """What is to be done with a day.

    Attributes:
        groups: the bundles to merge.
        repeats: the rows to leave out.
        kept: why repeats are kept; empty if they are not.
    """

    groups: list[Group]
    repeats: frozenset[Identity] = field(default_factory=frozenset)
    kept: str = ""


class _UncertainError(Exception):
    """It is not known what is a repeat; the message says why."""


def compact_day(
    storage: Storage,
    day: WholeDay,
    *,
    target_bytes: int,
    version: str,
    threads: int = THREADS,
    compression: Compression | None = None,
) -> Compacted:
    """Compact a day; arguments and result are those of `compact`."""
    plan = divided(storage, day, target_bytes=target_bytes, threads=threads)
    result, repeats = Compacted(kept=plan.kept), plan.repeats
    for group in plan.groups:
        found = compact(
            storage,
            group,
            target_bytes=target_bytes,
            version=version,
            threads=threads,
            repeats=repeats,
            compression=compression,
        )
        result.done += found.done
        result.left += found.left
        result.kept = result.kept or found.kept
        if found.left or found.kept:  # what repeats of other groups rely on may be missing
            repeats = frozenset()
    return result


def divided(
    storage: Storage, day: WholeDay, *, target_bytes: int, threads: int = THREADS
) -> Divided:
    """Find the repeats of a day, and return which bundles are to be merged.

    Args:
        storage: the bucket.
        day: the bundles as they were listed.
        target_bytes: as for `compact`.
        threads: how many bundles are read at once.
    """
    repeats: frozenset[Identity] = frozenset()
    shares, kept = None, ""
    if day.datatype != REJECTED:  # its rows are about files, and have their names
        try:
            rows = _rows(storage, day.members, threads)
            repeats = _repeats(storage, day, rows)
            if repeats:
                shares = {
                    one.name: sum(row not in repeats for row in found) / len(found)
                    for one, found in zip(day.members, rows, strict=True)
                    if found
                }
        except _UncertainError as exc:
            kept = str(exc)
    found = groups(
        day.members, small_bytes=day.small_bytes, target_bytes=target_bytes, shares=shares
    )
    return Divided(groups=found, repeats=repeats, kept=kept)


def _repeats(
    storage: Storage, day: WholeDay, rows: Iterable[list[Identity]]
) -> frozenset[Identity]:
    """Return the repeats among a day's rows.

    Raises:
        _UncertainError: a row that others may rely on, or that lies between them, is not known.
    """
    of_bundles = list(zip(day.members, rows, strict=True))
    repeats = repeated(row for _, found in of_bundles for row in found)
    if not repeats:
        return repeats
    whole = {row for one, found in of_bundles if one.index_version for row in found}
    for one, found in of_bundles:
        if not one.index_version and not repeats.union(whole).issuperset(found):
            raise _UncertainError(f"{one.name} has no index: `jostler audit -fix` makes one")
    # A compactor may have moved rows from a place of the listing that was to come to one that was
    # passed.  It stores before it removes, so a second listing shows what the first one has missed.
    if _listed(storage, day) != {_version(one) for one in day.members}:
        raise _UncertainError("bundles of the day were stored or removed meanwhile")
    return repeats


def _rows(storage: Storage, members: tuple[Member, ...], threads: int) -> list[list[Identity]]:
    """Return the identities of each bundle's rows, after reading all of them."""
    if threads == 1:
        return [_rows_of(storage, one) for one in members]
    with ThreadPoolExecutor(threads, thread_name_prefix="repeats") as pool:
        return list(pool.map(lambda one: _rows_of(storage, one), members))


def _rows_of(storage: Storage, member: Member) -> list[Identity]:
    try:
        data = storage.read(str(member.name), member.version).data
        index = b""
        if member.index_version:
            index = storage.read(member.index_name, member.index_version).data
        one = read_input(member, data, index)
        one.read_all()
    except MissingError as exc:
        raise _UncertainError(f"{member.name} was removed meanwhile") from exc
    except (StorageError, InputError) as exc:
        raise _UncertainError(f"{member.name} cannot be read whole: {exc}") from exc
    return list(one.keys())


def _listed(storage: Storage, day: WholeDay) -> set[tuple[str, str, str]]:
    date = day.day.date
    try:
        listed = days(storage, day.place, day.datatype, date, date, least=1)
        return {_version(one) for _, members, _ in listed for one in members}
    except StorageError as exc:
        raise _UncertainError(f"the day cannot be listed: {exc}") from exc


def _version(one: Member) -> tuple[str, str, str]:
    return str(one.name), one.version, one.index_version
