"""Decide which bundles of a day are merged: groups by the listings, parts of them by their rows.

**Invariant:** bundles of one group have the same place, datatype, day and schema digest.  What the
groups would make stays below the limits of the loader (`loader.spark.limits`, which a test holds
this module to): rows, nodes, and bytes.  A bundle that is alone stays as it is.

Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostler.format.names import Kind
from jostler.format.node_table import MOST_BYTES, table_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from jostler.archive.compact_input import Input
    from jostler.archive.repeats import Identity
    from jostler.format.names import BundleName, Day, Place
    from jostler.storage import ObjectInfo

MIB = 1024 * 1024
SMALL_BYTES = 8 * MIB
TARGET_BYTES = 256 * MIB
ROWS_MOST = 100_000
"""Rows of a merged bundle.  The loader takes no bundle with more bad rows than this for whole; with
no more rows than this, a merged bundle can never be refused for what its parts were not."""
LEAST_RATIO = 4
"""Rows are at least so many times as large as their object, it is assumed, until they are read; if
they are larger than the target then, they go into several bundles."""
INDEX_ROW_BYTES = 32
"""Bytes that an index row takes in its object, about; half of them are the Hash, which is random.
If there are more rows than that, they go into several bundles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A bundle as the listings show it.

    Attributes:
        name: of the data object.
        version: of the data object.
        size_bytes: of the data object.
        index_version: of the index object; empty if there is none.
        index_bytes: size of the index object; 0 if there is none.
        rows: how many rows it has by its metadata; without metadata, an estimate.
        schema: the digest of the schema that it was judged by; empty if it names none.
        repeats: how many exact repeats were left out when it was merged.
        collapsed: how many repeats of feeds were left out when it was merged, and before.
    """

    name: BundleName
    version: str
    size_bytes: int
    index_version: str
    index_bytes: int
    rows: int
    schema: str
    repeats: int = 0
    collapsed: int = 0

    @property
    def index_name(self) -> str:
        """The name of the index object, whether or not it exists."""
        return str(replace(self.name, kind=Kind.INDEX))

    @property
    def objects(self) -> int:
        """How many objects it consists of."""
        return 2 if self.index_version else 1

    @property
    def total_bytes(self) -> int:
        """Bytes of its objects."""
        return self.size_bytes + self.index_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Bundles to merge.

    Attributes:
        place: the experiment's place.
        datatype: of the rows.
        day: of the rows.
        schema: as in `Member`.
        members: the bundles, in the order of their names.
    """

    place: Place
    datatype: str
    day: Day
    schema: str
    members: tuple[Member, ...]

    @property
    def objects(self) -> int:
        """How many objects its bundles consist of."""
        return sum(member.objects for member in self.members)

    @property
    def total_bytes(self) -> int:
        """Bytes of all objects of its bundles."""
        return sum(member.total_bytes for member in self.members)


def member_in_memory(name: BundleName, data: bytes, index: bytes, schema: str = "") -> Member:
    """Return a bundle whose objects are not listed but read, or made and not stored yet."""
    return Member(
        name=name,
        version="",
        size_bytes=len(data),
        index_version="",
        index_bytes=len(index),
        rows=0,
        schema=schema,
    )


def member(name: BundleName, data: ObjectInfo, index: ObjectInfo | None) -> Member:
    """Return a bundle, given how its objects are listed (with metadata)."""
    rows = data.metadata.get("rows", "")
    return Member(
        name=name,
        version=data.version,
        size_bytes=data.size_bytes,
        index_version=index.version if index else "",
        index_bytes=index.size_bytes if index else 0,
        # A copied directory bucket has no metadata.
        rows=int(rows)
        if rows.isdecimal()
        else (index.size_bytes // INDEX_ROW_BYTES if index else 0),
        schema=data.metadata.get("schema", ""),
        repeats=_number(index.metadata.get("repeats", "")) if index else 0,
        collapsed=_number(data.metadata.get("collapsed", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def groups(
    members: Iterable[Member],
    *,
    small_bytes: int,
    target_bytes: int,
    shares: Mapping[BundleName, float] | None = None,
) -> list[Group]:
    """Divide the bundles of one datatype and day into groups that are to be merged.

    A bundle without index goes into a group whatever its size: it may be what a compaction has left
    that was killed (see `compact`).

    Args:
        members: the day's bundles.
        small_bytes: objects of this size or larger are left alone.
        target_bytes: the most bytes of rows in a merged bundle.
        shares: of each bundle the share of its rows that is to stay, if not all are.  Then large
            bundles are looked at, too: where one has rows that go, and where all rows of a small
            one go, for a merged bundle needs a row.
    """
    alike: dict[str, list[Member]] = defaultdict(list)
    for one in sorted(members, key=lambda one: str(one.name)):
        if shares or one.size_bytes < small_bytes or not one.index_version:
            alike[one.schema].append(one)
    found = []
    for schema, same in sorted(alike.items()):
        whole = [one for one in same if one.index_version]
        torn = [one for one in same if not one.index_version]
        bins = _bins(whole, target_bytes // LEAST_RATIO, shares or {})
        for nth, members_of_one in enumerate(bins):
            # Only one group gets them, so that none is read twice.
            both = [*members_of_one, *torn] if nth == 0 else members_of_one
            few = sum(one.size_bytes < small_bytes or not one.index_version for one in both)
            if few > 1 or any((shares or {}).get(one.name, 1) < 1 for one in both):
                first = both[0].name
                found.append(
                    Group(
                        place=first.place,
                        datatype=first.datatype,
                        day=first.day,
                        schema=schema,
                        members=tuple(both),
                    )
                )
    return found


def _bins(
    members: list[Member], most_bytes: int, shares: Mapping[BundleName, float]
) -> list[list[Member]]:
    """Fill one group after the other: first what fits into the last one, else a new one."""
    # What goes as a whole comes last: it takes no room, so it never begins a group of its own.
    members = sorted(members, key=lambda one: shares.get(one.name, 1) == 0)
    bins: list[list[Member]] = []
    size = rows = table = 0
    for one in members:
        share = shares.get(one.name, 1)
        one_bytes, one_rows = int(one.size_bytes * share), int(one.rows * share)
        name_bytes = len(one.name.node) + len(str(ROWS_MOST)) + 2 if share else 0
        if one.name.is_merged:  # its own table is not known yet: as many nodes as it has rows
            name_bytes = min(MOST_BYTES, one_rows * name_bytes)
        fits = not share or (
            size + one_bytes <= most_bytes
            and rows + one_rows <= ROWS_MOST
            and table + name_bytes <= MOST_BYTES
        )
        if not bins or not fits:
            bins.append([])
            size = rows = table = 0
        bins[-1].append(one)
        size, rows, table = size + one_bytes, rows + one_rows, table + name_bytes
    return bins


def parts_of(
    inputs: Sequence[Input], target_bytes: int, repeats: frozenset[Identity]
) -> Iterator[list[Input]]:
    """Yield the bundles of a group that are merged into one: by what their rows really take.

    Bundles that have only repeats come last, and take no room: a part needs a row.

    Args:
        inputs: the bundles, as they were read.
        target_bytes: the most bytes of rows in a part, unless one bundle has more.
        repeats: rows to leave out.
    """
    kept = {
        one.member.name: one.rows - (sum(map(repeats.__contains__, one.keys())) if repeats else 0)
        for one in inputs
    }
    part: list[Input] = []
    size = rows = table = 0
    nodes: set[str] = set()
    for one in sorted(inputs, key=lambda one: not kept[one.member.name]):
        one_rows = kept[one.member.name]
        one_bytes = one.plain_bytes * one_rows // max(1, one.rows)
        of_one = {run.node for run in one.runs} if one_rows else set()
        fits = not one_rows or (
            size + one_bytes <= target_bytes
            and rows + one_rows <= ROWS_MOST
            and table + table_bytes(of_one - nodes, ROWS_MOST) <= MOST_BYTES
        )
        if part and not fits:
            yield part
            part, size, rows, table, nodes = [], 0, 0, 0, set()
        part.append(one)
        size, rows = size + one_bytes, rows + one_rows
        table += table_bytes(of_one - nodes, ROWS_MOST)
        nodes |= of_one
    if part:
        yield part
