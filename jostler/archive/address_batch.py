"""Find the files of many addresses with few searches.

**Invariant:** an address names what `address.find` finds for it alone.

Addresses that name a bundle are not for this module: they need no search by day.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from jostler.archive.address import Address, AddressError, find, the_one
from jostler.archive.query import DAY, AnyOf, Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.archive.catalogue import Catalogue
    from jostler.archive.files import File, Tally

BATCH_ADDRESSES = 4000
BATCH_CHARS = 1_000_000
"""Of the texts of one search: a request to BigQuery takes 10 MB with its parameters."""


class Asked(NamedTuple):
    """An address and the files among which it is looked for."""

    address: Address
    query: Query


class _Key(NamedTuple):
    """What a file is compared with: a field of `AnyOf` and a value."""

    field: str
    value: str


@dataclass(slots=True)
class _Sought:
    """The files found for one key, at most as many as an address needs."""

    first: date
    last: date
    most: int
    files: list[File] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.files) == self.most

    def add(self, file: File) -> bool:
        """Take a file of the days that are searched for this key; return whether it was taken."""
        if self.is_full or not self.first <= file.origin.day <= self.last:
            return False
        self.files.append(file)
        return True


def batches(addresses: Iterable[Address]) -> Iterator[list[Address]]:
    """Yield the addresses in order, as many at a time as one search takes."""
    batch: list[Address] = []
    chars = 0
    for address in addresses:
        if batch and (len(batch) == BATCH_ADDRESSES or chars + len(address.text) > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(address)
        chars += len(address.text)
    if batch:
        yield batch


def find_all(
    asked: Sequence[Asked], catalogue: Catalogue, tally: Tally | None = None
) -> list[File | AddressError]:
    """Return for each address, in order, the one file that it names, or why there is none.

    Addresses whose days overlap or adjoin share one search; days of no address are not searched.

    Args:
        asked: addresses without a bundle; their queries differ in `first_day` and `last_day` alone.
        catalogue: where.
        tally: what the searches do.
    """
    if len(asked) == 1:  # its limit is a part of the search
        address, query = asked[0]
        try:
            return [find(address, catalogue, query, tally)]
        except AddressError as exc:
            return [exc]
    sought: dict[_Key, _Sought] = {}
    for address, query in asked:
        first, last = address.narrow(query).days()
        sought[_key(address)] = _Sought(first, last, address.most)
    for together in _overlapping(sought):
        query = replace(
            asked[0].query,
            first_day=min(one.first for one in together.values()),
            last_day=max(one.last for one in together.values()),
            any_of=_any_of(together),
        )
        _search(catalogue, query, together, tally)
    return [_outcome(one, sought[_key(one.address)].files) for one in asked]


def _outcome(asked: Asked, files: list[File]) -> File | AddressError:
    try:
        return the_one(asked.address, files, asked.query)
    except AddressError as exc:
        return exc


def _search(
    catalogue: Catalogue, query: Query, sought: dict[_Key, _Sought], tally: Tally | None
) -> None:
    """Search until each key has as many files as it needs."""
    left = len(sought)
    with closing(catalogue.files(query, tally)) as files:  # type: ignore[type-var]
        for file in files:
            for key in _keys(file):
                if (one := sought.get(key)) and one.add(file):
                    left -= one.is_full
            if not left:
                return


def _overlapping(sought: dict[_Key, _Sought]) -> Iterator[dict[_Key, _Sought]]:
    """Divide keys into groups, between whose days lies at least one that none of them names."""
    together: dict[_Key, _Sought] = {}
    last = date.min
    for key, one in sorted(sought.items(), key=lambda item: (item[1].first, item[1].last)):
        if one.first > one.last:
            continue  # its own day is not among those that were asked for
        if together and one.first > last + DAY:
            yield together
            together = {}
        together[key] = one
        last = max(last, one.last)
    if together:
        yield together


def _key(address: Address) -> _Key:
    """Return what files are compared with, as `Query.identity_matcher` does for one address."""
    if address.hash:
        return _Key("hashes", address.hash)
    name = address.filename
    if name.startswith("/"):
        return _Key("filenames", name)
    return _Key("paths" if "/" in name else "names", name)


def _keys(file: File) -> tuple[_Key, ...]:
    return (
        _Key("hashes", file.hash),
        _Key("filenames", file.filename),
        _Key("paths", file.path),
        _Key("names", file.name),
    )


def _any_of(keys: Iterable[_Key]) -> AnyOf:
    values: dict[str, set[str]] = {}
    for key in keys:
        values.setdefault(key.field, set()).add(key.value)
    return AnyOf(**{name: frozenset(members) for name, members in values.items()})
