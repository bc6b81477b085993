"""Read the index objects of a folder, each from the cache or else from the bucket.

**Invariant:** they come in the order of their names, although several are read at once; at most
`AHEAD` of them are in memory.  An index object that cannot be read, or has a line that is no index
row, is listed in the tally and not kept in the cache.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from jostler.archive import index_rows
from jostler.archive.cache import IndexCache, Kept
from jostler.archive.files import Bundle, File, Origin, Tally
from jostler.archive.listing import Folder, Wanted
from jostler.errors import StorageError, TransientError
from jostler.format.names import BUNDLE_SUFFIX, INDEX, BundleName, Kind
from jostler.format.nodes import MERGED, is_merged_node

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from jostler.archive.query import Query
    from jostler.storage import Storage

READERS = 8
AHEAD = 24
STORE_BYTES = 4 * 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_INDEX_END, _DATA_END = (f"{kind}{BUNDLE_SUFFIX}" for kind in (Kind.INDEX, Kind.DATA))


class Found(NamedTuple):
    """An index object that may hold wanted files.

    Attributes:
        folder: the folder that it lies in.
        base: its name without the folder.
        version: its version.
        ending: the part of its name that tells datatype and node.
        kept: what the cache has of it; None if nothing.
    """

    folder: Folder
    base: str
    version: str
    ending: str
    kept: Kept | None


@dataclass(slots=True)
class Index:
    """An index object that was read, or that the cache has.

    Attributes:
        ending: the part of its name that tells datatype and node.
        kept: its sums.
        origin: the bundle.
        files: its files; empty if only its sums were asked for and the cache has them.
        packed: its files as the cache takes them; empty if they are not to be stored.
        problems: what could not be read.
        whole: what the cache is to have of a merged bundle, of which this is one node's part.
    """

    ending: str
    kept: Kept
    origin: Origin
    files: list[File]
    packed: bytes = b""
    problems: tuple[str, ...] = ()
    whole: Kept | None = None

    @property
    def bundle(self) -> Bundle:
        """The sums of the index."""
        kept = self.kept
        return Bundle(
            origin=self.origin,
            files=kept.files,
            size_bytes=kept.size_bytes,
            packed_bytes=kept.packed_bytes,
            first=_EPOCH + kept.first_us * _MICROSECOND,
            last=_EPOCH + kept.last_us * _MICROSECOND,
        )


class IndexReader:
    """Reads index objects.

    Args:
        storage: the bucket.
        cache: where parsed index objects are kept.
    """

    def __init__(self, storage: Storage, cache: IndexCache) -> None:
        self._storage = storage
        self._cache = cache
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="index")

    def close(self) -> None:
        """Read nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def wanted(self, query: Query, folder: Folder, tally: Tally) -> list[Found]:
        """Return the index objects of a folder that may hold wanted files, in order."""
        known = self._cache.known(self.url(folder))
        wanted, found = Wanted(query), []
        length = len(folder.prefix)
        for info in folder.objects:
            base = info.name[length:]
            kept = known.get(base)
            if kept and kept.version != info.version:
                # An audit has made this index again since it was read.
                kept = None
            if kept:
                node = kept.node
                if query.nodes and is_merged_node(node):
                    node = query.nodes[0]  # which nodes it has rows of is not known yet
                is_wanted = query.wants(kept.datatype, node)
            elif name := wanted.name(folder.prefix, base):
                is_wanted = wanted.may_have(name)
            else:
                tally.others += 1
                continue
            if is_wanted:
                found.append(Found(folder, base, info.version, wanted.ending(base), kept))
        return found

    def read(
        self, found: Iterable[Found], query: Query, tally: Tally, *, rows: bool
    ) -> Generator[Index]:
        """Yield the index objects in order, but those of other datatypes and nodes.

        Args:
            found: which ones.
            query: what is wanted.
            tally: is added to.
            rows: whether the files are wanted, or only their sums.
        """
        storing = _Storing(self._cache, self.url)
        with closing(self._in_order(found, tally, rows=rows)) as indexes:
            try:
                for folder, index in indexes:
                    storing.add(folder, index)
                    tally.problems += index.problems
                    if query.wants(index.origin.datatype, index.origin.node):
                        tally.indexes += 1
                        tally.rows += len(index.files)
                        yield index
            finally:
                storing.flush()

    def _in_order(
        self, found: Iterable[Found], tally: Tally, *, rows: bool
    ) -> Generator[tuple[Folder, Index]]:
        ahead: deque[tuple[Found, Future[list[Index]] | None]] = deque()
        try:
            for one in found:
                # Read at the same time, yielded in order: results do not depend on which answer
                # comes first.
                future = None if one.kept else self._pool.submit(self._from_bucket, one)
                ahead.append((one, future))
                if len(ahead) > AHEAD:
                    yield from self._taken(*ahead.popleft(), tally, rows=rows)
            while ahead:
                yield from self._taken(*ahead.popleft(), tally, rows=rows)
        finally:
            for _one, future in ahead:
                if future:
                    future.cancel()

    def url(self, folder: Folder) -> str:
        """Return the key of a folder in the cache."""
        return f"{self._storage.url}/{folder.prefix}"

    def _taken(
        self, one: Found, future: Future[list[Index]] | None, tally: Tally, *, rows: bool
    ) -> Iterator[tuple[Folder, Index]]:
        found = self._from_cache(one, rows=rows) if future is None else None
        if found is None:
            try:
                found = future.result() if future else self._from_bucket(one)
            except (StorageError, ValueError) as exc:
                tally.problems.append(str(exc))
                return
            tally.read += 1
        for index in found:
            yield one.folder, index

    def _from_cache(self, one: Found, *, rows: bool) -> list[Index] | None:
        kept = one.kept
        assert kept
        is_merged = is_merged_node(kept.node)
        origin = _origin(self._storage.url, one, kept)
        if not rows and not is_merged:
            return [Index(one.ending, kept, origin, [])]
        packed = self._cache.rows(kept)
        if packed is None:
            return None
        try:
            if not is_merged:
                return [Index(one.ending, kept, origin, index_rows.unpack(packed, origin))]
            name = BundleName.parse(one.folder.prefix + one.base)
            url = self._storage.url
            return _by_node(one, index_rows.unpack_merged(packed, name, url, kept.datatype), kept)
        except ValueError:  # written by another version of this program
            return None

    def _from_bucket(self, one: Found) -> list[Index]:
        """Read an index object; that of a merged bundle becomes one for each of its nodes.

        Raises:
            StorageError: it cannot be read.
            ValueError: it is no index.
        """
        name = BundleName.parse(one.folder.prefix + one.base)
        try:
            data = self._storage.read(str(name), one.version).data
        except TransientError:
            data = self._storage.read(str(name), one.version).data  # one failure ends no search
        files, problems = index_rows.parse(data, name, self._storage.url)
        kept = Kept(
            name=one.base,
            version=one.version,
            datatype=name.datatype,
            node=name.node,
            files=0,
            size_bytes=0,
            packed_bytes=0,
            first_us=0,
            last_us=0,
        )
        if not files:
            origin = index_rows.origin_of(name, self._storage.url, name.datatype, name.node)
            packed = b"" if problems else index_rows.pack([])
            return [Index(one.ending, kept, origin, [], packed, tuple(problems))]
        if name.is_merged:
            datatype = files[0].datatype
            kept = replace(
                kept, datatype=datatype, node=f"{MERGED}{name.node.rpartition(MERGED)[2]}"
            )
            found = _by_node(one, files, kept)
            is_whole = not problems and all(file.datatype == datatype for file in files)
            found[0].packed = index_rows.pack_merged(files) if is_whole else b""
            found[0].problems = tuple(problems)
            return found
        bundle = index_rows.bundle_of(files)
        is_whole = not problems and all(file.origin == bundle.origin for file in files)
        packed = index_rows.pack(files) if is_whole else b""
        kept = _summed(kept, bundle)
        return [Index(one.ending, kept, bundle.origin, files, packed, tuple(problems))]


def _summed(kept: Kept, bundle: Bundle) -> Kept:
    return replace(
        kept,
        datatype=bundle.origin.datatype,
        node=bundle.origin.node,
        files=bundle.files,
        size_bytes=bundle.size_bytes,
        packed_bytes=bundle.packed_bytes,
        first_us=(bundle.first - _EPOCH) // _MICROSECOND,
        last_us=(bundle.last - _EPOCH) // _MICROSECOND,
    )


def _by_node(one: Found, files: list[File], kept: Kept) -> list[Index]:
    """Divide the index of a merged bundle: as if each node had stored its rows there.

    Args:
        one: the index object.
        files: its files, which stand in the order of their nodes.
        kept: what the cache has, or is to have, of the whole.
    """
    found = []
    for origin, same in groupby(files, key=attrgetter("origin")):
        part = list(same)
        sums = _summed(kept, index_rows.bundle_of(part))
        # The ending of a merged bundle has the hash of its rows, 32 characters, where others have a
        # node.
        end = one.ending.rpartition(MERGED)[2][len("-") + 32 :]
        ending = f"-{origin.datatype}-{origin.node}{end}"
        found.append(Index(ending, sums, origin, part, whole=kept))
    return found


class _Storing:
    """Collects what was read, so that the cache is written in few transactions."""

    def __init__(self, cache: IndexCache, url: Callable[[Folder], str]) -> None:
        self._cache = cache
        self._url = url
        self._folder: Folder | None = None
        self._held: list[tuple[Kept, bytes]] = []
        self._bytes = 0

    def add(self, folder: Folder, index: Index) -> None:
        """Take an index object; write what is held when it is enough, or of another folder."""
        if not index.packed:
            return
        if folder is not self._folder or self._bytes > STORE_BYTES:
            self.flush()
        self._folder = folder
        self._held.append((index.whole or index.kept, index.packed))
        self._bytes += len(index.packed)

    def flush(self) -> None:
        """Write what is held."""
        if self._folder and self._held:
            self._cache.put(self._url(self._folder), self._held)
        self._held, self._bytes = [], 0


def _origin(bucket: str, one: Found, kept: Kept) -> Origin:
    """Name the bundle of an index object that the cache knows, without parsing its name."""
    prefix = one.folder.prefix
    root, _, rest = prefix.removesuffix("/").rpartition(f"/{INDEX}/")
    base = one.base.removesuffix(_INDEX_END) + _DATA_END
    return Origin(
        bucket=bucket,
        data=f"{root}/{kept.datatype}/{rest}/{base}",
        index=prefix + one.base,
        datatype=kept.datatype,
        node=kept.node,
        day=one.folder.day,
    )
