"""What is wrong with a day as a whole: what its listing and the keys of its rows say.

**Invariant:** whoever checks the bundles, threads or Spark, the problems of a day are made here.

Pure, but for the reader of table schemas.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.archive.audit.bundle import missing_data
from jostler.archive.audit.problem import NO_DATA_OF_FILTERS, Kind, Problem
from jostler.errors import MissingError, StorageError
from jostler.format.names import INDEX
from jostler.schema import fields_from_api

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from jostler.archive.audit.scope import Bundle, ListedDay
    from jostler.format.names import Place
    from jostler.storage import Storage

SMALL_BYTES = 1024 * 1024
MANY = 100
SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From when on a day has too many small bundles.

    Attributes:
        small_bytes: a data object is small if it is smaller.
        many: so many small bundles are well; 0 for any number.
        today: the current day, UTC; only days before it are looked at.
    """

    small_bytes: int = SMALL_BYTES
    many: int = MANY
    today: date


def of_listing(day: ListedDay, limits: Limits) -> Iterator[Problem]:
    """Yield what the names and sizes of a day's objects say."""
    for index_name, _ in day.orphans:
        yield missing_data(index_name)
    for info in day.lost_filters:
        yield Problem(info.name, 0, Kind.NO_DATA, NO_DATA_OF_FILTERS)
    for name, why in day.others:
        yield Problem(name, 0, Kind.FOREIGN, why.removeprefix(f"{name!r} "))
    small = sum(one.data.size_bytes < limits.small_bytes for one in day.bundles)
    is_past = day.day <= limits.today - timedelta(days=2)
    if is_past and limits.many and small > limits.many:
        detail = f"{small} of its {len(day.bundles)} bundles are smaller than {limits.small_bytes}"
        yield Problem(day.folder, 0, Kind.SMALL, f"{detail} bytes")


def repeated(
    bundles: Sequence[Bundle], places: Iterable[Sequence[tuple[int, int]]]
) -> Iterator[Problem]:
    """Yield the rows that more than one place of a day has.

    Args:
        bundles: of the day, the earliest first.
        places: for each repeated key, the numbers of bundle and line of each row that has it.
    """
    for same in places:
        (first, line), *more = sorted(same)
        where = f"{bundles[first].name}, line {line}"
        for bundle, again in more:
            detail = f"the same row as that of {where}"
            yield Problem(str(bundles[bundle].name), again, Kind.REPEATED, detail)


@dataclass(slots=True)
class Keys:
    """Finds keys that occur more than once; 16 bytes for each row are held."""

    _first: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    _more: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, bundle: int, keys: Iterable[bytes]) -> None:
        """Take the keys of a bundle's lines, in order; an empty one is passed over."""
        for line, key in enumerate(keys, 1):
            if key and (before := self._first.setdefault(key, (bundle, line))) != (bundle, line):
                self._more.setdefault(key, [before]).append((bundle, line))

    def repeated(self) -> Iterable[list[tuple[int, int]]]:
        """Return the places of each key that occurs more than once."""
        return self._more.values()


@dataclass(slots=True)
class Schemas:
    """Looks at the table schema of each datatype once."""

    storage: Storage
    _asked: set[str] = field(default_factory=set)

    def of(self, place: Place, datatype: str) -> Iterator[Problem]:
        """Yield what is wrong with a datatype's table schema, when it is asked for first."""
        try:
            name = place.table_schema(datatype)
        except ValueError:  # the folder is none of a datatype: its objects are reported
            return
        if name in self._asked or datatype == INDEX:  # the Go agent has no schema of its indexes
            return
        self._asked.add(name)
        try:
            fields = fields_from_api(json.loads(self.storage.read(name).data))
            if not any(one.key == "date" and one.type == "DATE" for one in fields):
                yield Problem(name, 0, Kind.SCHEMA, "has no column `date` of type DATE")
        except MissingError:
            yield Problem(name, 0, Kind.SCHEMA, "there are bundles, and no such table schema")
        except StorageError as exc:
            yield Problem(name, 0, Kind.UNREADABLE, str(exc))
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as exc:
            detail = f"is not a table schema: {type(exc).__name__}: {exc}"
            yield Problem(name, 0, Kind.SCHEMA, detail)
