"""Plan what a question reads: the bundles of its days, and which must be judged row by row.

**Invariant:** only names and metadata are listed, and only of the days asked for; no bundle and no
index is read here.  A bundle is trusted only if its agent judged it by a schema that the table
contains; the rows of any other are judged when they are read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.format.names import INDEX, BundleName, Day, Kind
from jostler.format.nodes import is_merged_node
from loader.plan.trust import Trust

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from loader.bucket import ListedObject
    from loader.plan.discover import Source, Table
    from loader.query.googlesql.reads import Range
    from loader.query.text.needed import Need

FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
_DIGEST_RE = re.compile(r"[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The rows that can answer a question; None where it does not matter.

    Attributes:
        first_day: no row of an earlier `date`.
        last_day: no row of a later one.
        begin: no row of an earlier `_time`.
        end: no row of this `_time` or a later one.
        nodes: no row of another node; None for all.
        need: no row without these words; None for all.
    """

    first_day: date | None = None
    last_day: date | None = None
    begin: datetime | None = None
    end: datetime | None = None
    nodes: frozenset[str] | None = None
    need: Need | None = None

    @property
    def by_time(self) -> bool:
        """Whether `_time` matters."""
        return self.begin is not None or self.end is not None

    def has(self, begin: datetime) -> bool:
        """Return whether a row of this `_time` can answer."""
        late_enough = self.begin is None or begin >= self.begin
        return late_enough and (self.end is None or begin < self.end)

    def of(self, node: str) -> bool:
        """Return whether a row of this node can answer."""
        return self.nodes is None or node in self.nodes

    def days(self) -> tuple[date, date]:
        """Return the first and the last day to list.

        A measurement may begin a day beside its folder, as `jostler.archive.query` has it.
        """
        first = self.first_day or FIRST.date()
        last = self.last_day or (LAST - _DAY).date()
        if self.begin:
            first = max(first, (max(self.begin, FIRST + _DAY) - _DAY).date())
        if self.end:
            last = min(last, (min(self.end, LAST - _DAY) - _INSTANT + _DAY).date())
        return first, last


def span_of(found: Range) -> Span:
    """Return the rows that a range leaves."""
    last = found.end_day - _DAY if found.end_day else None
    return Span(
        first_day=found.first_day,
        last_day=last,
        begin=found.begin,
        end=found.end,
        nodes=found.nodes,
        need=found.need,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of blocks of a bundle, which one task reads; see `pieces`.

    Attributes:
        nth: its number in the bundle, from 0.
        offset: where its first block begins.
        end: where its last block ends.
        line: the number of its first row in the bundle, from 1.
        nodes: whose its rows are: runs of a node and a number of rows.
    """

    nth: int
    offset: int
    end: int
    line: int
    nodes: tuple[tuple[str, int], ...]

    @property
    def end_line(self) -> int:
        """The number of the row after its last one."""
        return self.line + sum(rows for _, rows in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle to read.

    Attributes:
        bucket: URL of the bucket.
        name: of the data object.
        generation: of the data object when it was listed.
        size_bytes: of the data object.
        index: name of the index object; empty if there is none.
        index_generation: of the index object.
        index_bytes: its size.
        node: in the name; of a merged bundle `compacted-…`.
        mixed: whether its rows may be of other nodes than that: it is merged, or an index of
            another program.
        day: of the folder.
        created: when the bundle was begun.
        trusted: whether its rows need not be judged.
        dropped: the lines to leave out, which `collapsing` has found.
        filters: name of its token filters; empty if there are none of this generation, or if no
            words are asked for.
        filters_generation: of the token filters.
        piece: what is read of it; None for all.
    """

    bucket: str
    name: str
    generation: str
    size_bytes: int
    index: str
    index_generation: str
    index_bytes: int
    node: str
    day: Day
    created: datetime
    trusted: bool
    mixed: bool = False
    dropped: frozenset[int] = frozenset()
    filters: str = ""
    filters_generation: str = ""
    piece: Piece | None = None

    @property
    def key(self) -> str:
        """What it is counted by: the URL, and the number of the piece."""
        return self.url if self.piece is None else f"{self.url}#{self.piece.nth}"

    @property
    def reading_bytes(self) -> int:
        """How much of the data object is read."""
        return self.size_bytes if self.piece is None else self.piece.end - self.piece.offset

    @property
    def url(self) -> str:
        """The object's URL."""
        return f"{self.bucket}/{self.name}"


@dataclass(slots=True, kw_only=True)
class Scan:
    """What a question reads of one table.

    Attributes:
        table: the table.
        bundles: those of its days, by day, the earliest first.
        problems: objects that are no bundles: pairs of what and why.
        need: the words that its rows must have; None if that is not asked for.
        nodes: the nodes that are asked for; None for all.
        others: how many bundles of these days are of other nodes, and are left out.
    """

    table: Table
    nodes: frozenset[str] | None = None
    others: int = 0
    need: Need | None = None
    bundles: list[Bundle] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """The size of all data objects."""
        return sum(bundle.size_bytes for bundle in self.bundles)

    @property
    def days(self) -> list[date]:
        """The days that have bundles, in order."""
        return sorted({bundle.day.date for bundle in self.bundles})

    def keep_nodes(self, nodes: frozenset[str] | None) -> None:
        """Leave out the bundles that have no row of some nodes; None leaves out none."""
        if nodes is None:
            return
        kept = [one for one in self.bundles if one.mixed or one.node in nodes]
        self.others = len(self.bundles) - len(kept)
        self.bundles, self.nodes = kept, nodes


def scan(table: Table, wanted: Span, *, indexes: bool) -> Scan:
    """List the bundles of a table that may have rows of the wanted days, of any node.

    Args:
        table: the table.
        wanted: which rows are.
        indexes: whether the indexes are needed.

    Raises:
        BucketError: a bucket cannot be listed.
    """
    found = Scan(table=table, need=wanted.need)
    first, last = wanted.days()
    if first > last:
        return found
    trust = Trust()
    for source in table.sources:
        found.bundles += _of_source(source, (first, last), found, trust, indexes=indexes)
    found.bundles.sort(key=lambda one: (one.day, one.created, one.name))
    return found


def _of_source(
    source: Source, days: tuple[date, date], found: Scan, trust: Trust, *, indexes: bool
) -> Iterator[Bundle]:
    is_index = source.datatype == INDEX
    listed = {}
    if indexes and not is_index:
        listed = {entry.name: entry for entry in _listed(source, INDEX, days, metadata=False)}
    filters = _filters(source, days) if found.need else {}
    for entry in _listed(source, source.datatype, days, metadata=True):
        own = not is_index or "data-upload-id" in entry.metadata
        try:
            name = BundleName.parse(entry.name)
        except ValueError as exc:
            found.problems.append((f"{source.bucket.url}/{entry.name}", str(exc)))
            continue
        if name.kind is not (Kind.INDEX if is_index else Kind.DATA):
            found.problems.append((f"{source.bucket.url}/{entry.name}", "lies in a wrong folder"))
            continue
        index = listed.get(str(replace(name, kind=Kind.INDEX)))
        made = filters.get((name.token_filters, entry.generation)) if filters else None
        yield Bundle(
            bucket=source.bucket.url,
            name=entry.name,
            generation=entry.generation,
            size_bytes=entry.size_bytes,
            index=index.name if index else "",
            index_generation=index.generation if index else "",
            index_bytes=index.size_bytes if index else 0,
            node=name.node,
            day=name.day,
            created=name.created,
            trusted=_is_trusted(source, entry, found.table, trust),
            mixed=name.is_merged or not own,
            filters=made.name if made else "",
            filters_generation=made.generation if made else "",
        )


def _filters(source: Source, days: tuple[date, date]) -> dict[tuple[str, str], ListedObject]:
    """Return the token filters, by their name and the generation of the bundle that they are of."""
    prefix = source.place.token_filters(source.datatype)
    start, end = (prefix + Day(day).path for day in (days[0], days[1] + _DAY))
    return {
        (entry.name, entry.metadata.get("generation", "")): entry
        for entry in source.bucket.list(prefix, start, end, metadata=True)
    }


def _listed(
    source: Source, folder: str, days: tuple[date, date], *, metadata: bool
) -> Iterator[ListedObject]:
    prefix = f"{source.place.root}/{folder}/"
    start, end = (prefix + Day(day).path for day in (days[0], days[1] + _DAY))
    return source.bucket.list(prefix, start, end, metadata=metadata)


def _is_trusted(source: Source, entry: ListedObject, table: Table, trust: Trust) -> bool:
    """Return whether the agent judged the bundle by a schema that the table contains."""
    schema = entry.metadata.get("schema", "")
    if not _DIGEST_RE.fullmatch(schema):
        return False
    return not trust.not_contained_in(source, schema, str(table.name), table.fields)


def parts(bundles: list[Bundle], most_bytes: int) -> list[list[Bundle]]:
    """Divide bundles so that all that may hold the same file are in one part, in order.

    Rows are the same only within a node and a day; a merged bundle has rows of any node, so such a
    day is one part.  Parts are cut from the sorted order and packed up to `most_bytes`.
    """
    keyed: dict[tuple[date, str], list[Bundle]] = defaultdict(list)
    merged = {one.day.date for one in bundles if is_merged_node(one.node)}
    for one in bundles:
        keyed[one.day.date, "" if one.day.date in merged else one.node].append(one)
    made: list[list[Bundle]] = []
    size_bytes = most_bytes
    for group in keyed.values():
        group_bytes = sum(one.size_bytes for one in group)
        if size_bytes + group_bytes > most_bytes:
            made.append([])
            size_bytes = 0
        made[-1] += group
        size_bytes += group_bytes
    return made
