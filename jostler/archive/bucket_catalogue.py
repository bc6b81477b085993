"""The catalogue made of the index objects of a bucket.

**Invariant:** an index object is read once and then comes from the cache, because it never changes.
Which ones are read is decided by their names: day, datatype and node.  The data object's name
follows from the index object's, never from the content of a row.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import msgspec
from isal import isal_zlib

from jostler.archive.cache import IndexCache
from jostler.archive.files import Bundle, File, NodeDay, Position, Rejects, Tally
from jostler.archive.indexes import IndexReader
from jostler.archive.listing import Folder, Wanted, folders, one
from jostler.archive.seen import Seen
from jostler.errors import StorageError
from jostler.format.names import REJECTED, BundleName
from jostler.format.nodes import is_merged_ending

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from datetime import date

    from jostler.archive.indexes import Found, Index
    from jostler.archive.query import Query
    from jostler.format.names import Place
    from jostler.storage import Storage


T = TypeVar("T")


class _Reason(msgspec.Struct):
    Datatype: str
    Reason: str
    Node: str = ""


class _RejectedRow(msgspec.Struct):
    raw: _Reason


_KEY = attrgetter("filename", "hash")
_REJECTED_ROWS = msgspec.json.Decoder(_RejectedRow)
_COUNTS = msgspec.msgpack.Decoder(list[tuple[str, str, int]])


class BucketCatalogue:
    """The catalogue of one bucket; see `jostler.archive.catalogue.Catalogue`.

    Args:
        storage: the bucket.
        places: the experiment's places in it, at least one.
        cache: where parsed index objects are kept; None for nowhere.
    """

    def __init__(
        self, storage: Storage, places: Sequence[Place], cache: IndexCache | None = None
    ) -> None:
        self._storage = storage
        self._places = tuple(places)
        self._cache = cache or IndexCache(None, 0)
        self._reader = IndexReader(storage, self._cache)

    def close(self) -> None:
        """Stop reading ahead, and close the cache."""
        self._reader.close()
        self._cache.close()

    def files(self, query: Query, tally: Tally | None = None) -> Iterator[File]:
        """Read the index objects of each day, in parallel, and yield what matches."""
        found = self._files(query, tally or Tally())
        return _limited(found, query.limit)

    def _files(self, query: Query, tally: Tally) -> Generator[File]:
        matches = query.matcher()
        for _folder, wanted in self._searched(query, query.days(), tally):
            with (
                closing(_Once(wanted, query, tally)) as once,
                closing(self._reader.read(wanted, query, tally, rows=True)) as indexes,
            ):
                for index in indexes:
                    files = once.of(index)
                    if matches:
                        files = filter(matches, files)
                    if query.after:
                        files = (file for file in files if query.comes_later(file.position))
                    yield from files

    def bundles(self, query: Query, tally: Tally | None = None) -> Iterator[Bundle]:
        """Yield sums from the cache; read rows only if some files of a bundle are not wanted."""
        return _limited(self._bundles(query, tally or Tally()), query.limit)

    def _bundles(self, query: Query, tally: Tally) -> Generator[Bundle]:
        checks = [check for check in (query.identity_matcher(), query.matcher()) if check]
        for _folder, wanted in self._searched(query, query.days(), tally):
            found = self._reader.read(wanted, query, tally, rows=bool(checks))
            with closing(found) as indexes:
                for index in indexes:
                    origin = index.origin
                    if not index.kept.files or not query.comes_later(
                        Position(origin.day, origin.index, 0)
                    ):
                        continue
                    if not checks or any(all(is_so(f) for is_so in checks) for f in index.files):
                        yield index.bundle

    def nodes(self, query: Query) -> tuple[str, ...]:
        """List, and take the nodes out of the names; those of merged bundles are in their index."""
        found: set[str] = set()
        first, last = query.days()
        for folder in self._folders(query, first, last):
            wanted = Wanted(query)
            for name in wanted.names(folder):
                if not name.is_merged:
                    found.update(_nodes(name, query.datatypes))
            merged = [
                one
                for one in self._reader.wanted(query, folder, Tally())
                if is_merged_ending(one.ending)
            ]
            for index in self._reader.read(merged, query, Tally(), rows=False):
                found.add(index.origin.node)
        return tuple(sorted(node for node in found if not query.nodes or node in query.nodes))

    def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
        """Add up the sums of each day's bundles."""
        tally = tally or Tally()
        found = self._searched(query, query.folders(), tally)
        for _day, same_day in groupby(found, key=lambda pair: pair[0].day):
            sums: dict[tuple[str, str], NodeDay] = {}
            for _folder, wanted in same_day:
                for index in self._reader.read(wanted, query, tally, rows=False):
                    if index.kept.files:
                        _add(sums, index.bundle)
            yield from (sums[key] for key in sorted(sums))

    def rejects(self, query: Query, tally: Tally | None = None) -> Iterator[Rejects]:
        """Read the rows of rejected1: its index has neither their datatypes nor their reasons."""
        tally = tally or Tally()
        asked = replace(query, datatypes=(REJECTED,))
        found = self._searched(asked, query.folders(), tally)
        for day, same_day in groupby(found, key=lambda pair: pair[0].day):
            counts: Counter[tuple[str, str, str]] = Counter()
            for folder, wanted in same_day:
                indexes = list(self._reader.read(wanted, asked, tally, rows=False))
                for index, reasons in self._reasons(folder, indexes, tally):
                    for datatype, reason, files in reasons:
                        if not query.datatypes or datatype in query.datatypes:
                            counts[datatype, index.origin.node, reason] += files
            for (datatype, node, reason), files in sorted(counts.items()):
                yield Rejects(day=day, datatype=datatype, node=node, reason=reason, files=files)

    def _searched(
        self, query: Query, days: tuple[date, date], tally: Tally
    ) -> Iterator[tuple[Folder, list[Found]]]:
        """Yield each folder with the index objects that may hold wanted files."""
        before = None
        for folder in self._folders(query, *days):
            tally.days += folder.day != before
            before = folder.day
            yield folder, self._reader.wanted(query, folder, tally)

    def _folders(self, query: Query, first: date, last: date) -> Iterator[Folder]:
        if query.bundle:
            return one(self._storage, query.index_name)
        newest_first = query.newest_first
        return folders(self._storage, self._places, first, last, newest_first=newest_first)

    def _reasons(
        self, folder: Folder, indexes: Sequence[Index], tally: Tally
    ) -> Iterator[tuple[Index, list[tuple[str, str, int]]]]:
        """Yield datatype, reason and number of the rejected files of each bundle."""
        known = self._cache.known(self._reader.url(folder)) if indexes else {}
        counts: dict[str, Counter[tuple[str, str, str]]] = {}
        for index in indexes:
            if index.whole:
                yield from self._reasons_of_merged(index, counts, tally)
                continue
            kept = known.get(index.kept.name, index.kept)
            packed = self._cache.rejects(kept)
            try:
                if packed is None:
                    packed = _counted(self._storage.read(index.origin.data).data)
                    self._cache.put_rejects(kept, packed)
                yield index, _COUNTS.decode(packed)
            except (StorageError, ValueError, isal_zlib.error) as exc:  # type: ignore[misc]
                tally.problems.append(f"{index.origin.url}: {exc}")

    def _reasons_of_merged(
        self, index: Index, counts: dict[str, Counter[tuple[str, str, str]]], tally: Tally
    ) -> Iterator[tuple[Index, list[tuple[str, str, int]]]]:
        """Yield the same for one node's part of a merged bundle, which is read once."""
        name, node = index.origin.data, index.origin.node
        try:
            if name not in counts:
                counts[name] = Counter()
                plain = isal_zlib.decompress(self._storage.read(name).data, wbits=31)
                counts[name].update(
                    (row.raw.Node, row.raw.Datatype, row.raw.Reason)
                    for row in _REJECTED_ROWS.decode_lines(plain)
                )
        except (StorageError, ValueError, isal_zlib.error) as exc:  # type: ignore[misc]
            tally.problems.append(f"{index.origin.url}: {exc}")
        found = counts[name].items()
        yield index, [(one[1], one[2], n) for one, n in found if one[0] == node]


class _Once:
    """Leaves out the rows of files that an earlier bundle of the same day has.

    Only bundles of one datatype and node can have the same file; what is the only one of a day is
    passed on as it is.
    """

    def __init__(self, found: Iterable[Found], query: Query, tally: Tally) -> None:
        self._matches = query.identity_matcher()
        self._tally = tally
        bundles = Counter(one.ending for one in found)
        self._several = {ending for ending, count in bundles.items() if count > 1}
        # Any node may have rows in a merged bundle.
        self._has_merged = any(map(is_merged_ending, bundles))
        self._seen = Seen()

    def close(self) -> None:
        """Forget the day."""
        self._seen.close()

    def of(self, index: Index) -> Iterable[File]:
        """Return the files of an index that match and that no earlier index has.

        Raises:
            StorageError: there is no room for a temporary file.
        """
        files = index.files
        if self._matches:
            files = list(filter(self._matches, files))
        if not files or not (self._has_merged or index.ending in self._several):
            return files
        keys = [hash(_KEY(file)) for file in files if file.hash]
        earlier = self._seen.add(index.ending, keys)
        # As nearly always: nothing came twice.
        return files if earlier is None else self._new(files, earlier)

    def _new(self, files: Iterable[File], seen: set[int]) -> Iterator[File]:
        for file in files:
            key = hash(_KEY(file))
            if not file.hash:
                yield file
            elif key in seen:
                self._tally.repeats += 1
            else:
                seen.add(key)
                yield file


def _nodes(name: BundleName, datatypes: Iterable[str]) -> Iterator[str]:
    """Yield the node in the name of an index, which begins after one of the asked datatypes."""
    both = f"{name.datatype}-{name.node}"
    starts = [f"{datatype}-" for datatype in datatypes] or [f"{name.datatype}-"]
    for start in starts:
        if both.startswith(start):
            yield both.removeprefix(start)


def _add(sums: dict[tuple[str, str], NodeDay], bundle: Bundle) -> None:
    origin = bundle.origin
    key = (origin.datatype, origin.node)
    known = sums.get(key)
    sums[key] = NodeDay(
        day=origin.day,
        datatype=origin.datatype,
        node=origin.node,
        bundles=1 + (known.bundles if known else 0),
        files=bundle.files + (known.files if known else 0),
        size_bytes=bundle.size_bytes + (known.size_bytes if known else 0),
        first=min(bundle.first, known.first) if known else bundle.first,
        last=max(bundle.last, known.last) if known else bundle.last,
    )


def _counted(packed: bytes) -> bytes:
    """Count the rows of a bundle of rejected1 by datatype and reason."""
    rows = _REJECTED_ROWS.decode_lines(isal_zlib.decompress(packed, wbits=31))
    counts = Counter((row.raw.Datatype, row.raw.Reason) for row in rows)
    return msgspec.msgpack.encode([(*key, count) for key, count in sorted(counts.items())])


def _limited(found: Generator[T], limit: int) -> Iterator[T]:
    """Yield the first results, and end the search as soon as they are there; 0 for all."""
    return _first(found, limit) if limit else found


def _first(found: Generator[T], limit: int) -> Iterator[T]:
    with closing(found):
        for number, one in enumerate(found, 1):
            yield one
            if number == limit:
                return
