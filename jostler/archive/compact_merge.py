"""Merge bundles into one: the same rows, sorted, exact repeats once, with a new index.

**Invariant:** the name follows from the identities of the rows alone, so whoever merges bundles
that hold the same rows makes an object of the same name, and an object of that name holds these
rows and no others.  A row keeps its bytes but for ArchiveURL.  Of rows with equal node, Filename
and bytes of `raw`, the one with the earliest TimeAdded stays.

Where repeats of feeds are left out (`repeats`), now or in one of the inputs, the name follows from
the names of the inputs, too.  Why: a bundle that holds fewer rows than its inputs could otherwise
be an input of the bundle that replaces it, and two compactors could each remove what the other one
relies on.  A name that follows from the names of the inputs cannot be the name of one of them.

Pure.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import orjson

from jostler.archive.compact_input import InputError, read_input
from jostler.archive.compact_plan import Member
from jostler.archive.keeping import Made
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST
from jostler.format.index_row import IndexRaw, IndexRow, RowArchiver
from jostler.format.names import BundleName, Kind
from jostler.format.node_table import Run, header
from jostler.format.row import row_head
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jostler.archive.compact_input import Input, InputReader
    from jostler.archive.compact_plan import Group
    from jostler.archive.repeats import Identity
    from jostler.format.row import Archiver

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class Entry(NamedTuple):
    """A row to merge; entries are sorted as tuples, so of equal identities the earliest is first.

    What follows `added` only makes the choice the same for everybody.
    """

    node: str
    filename: str
    digest: bytes
    added: str
    version: str
    commit: str
    more: tuple[object, ...]
    source: int
    line: int

    @property
    def identity(self) -> Identity:
        """Node, Filename and hash."""
        return self.node, self.filename, self.digest


class DamagedInputError(Exception):
    """One of the bundles is not what its index says; `number` tells which one."""

    def __init__(self, number: int, cause: InputError) -> None:
        super().__init__(str(cause))
        self.number = number
        self.foreign = cause.foreign


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A merged bundle.

    Attributes:
        name: of the data object.
        data: the data object; with its metadata.
        index: the index object; with its metadata.
        identities: of its rows, in their order.
        repeats: rows of the inputs that are left out as exact repeats.
        plain_bytes: bytes of its rows.
    """

    name: BundleName
    data: Made
    index: Made
    identities: tuple[Identity, ...]
    repeats: int
    plain_bytes: int


def _entries_of(inputs: Sequence[Input]) -> tuple[list[Entry], int]:
    """Return the rows that a merged bundle has, in order, and the number of exact repeats."""
    found = []
    for number, one in enumerate(inputs):
        for line, ((node, filename, digest), row) in enumerate(
            zip(one.keys(), one.index, strict=True)
        ):
            raw = row.raw
            more = (raw.Size, raw.Start or "", raw.End or "", raw.WorkID or "", raw.Hash)
            archiver = row.archiver.Version, row.archiver.GitCommit
            found.append(
                Entry(node, filename, digest, raw.TimeAdded, *archiver, more, number, line)
            )
    # The same rows are in the same order whoever merges them and in whatever order the inputs were
    # read, so every compactor makes the same name, and with the same library the same bytes.
    found.sort()
    kept = [next(equal) for _, equal in groupby(found, key=attrgetter("identity"))]
    return kept, len(found) - len(kept)


def digest_of(identities: Iterable[Identity]) -> str:
    """Return the hash of sorted identities, by which a merged bundle is named."""
    hashed = hashlib.blake2b(digest_size=16)
    for node, filename, digest in identities:
        hashed.update(orjson.dumps((node, filename, digest.hex())) + b"\n")
    return hashed.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a merged bundle will be.

    Attributes:
        name: of its data object.
        entries: its rows, in order.
        repeats: how many rows of the inputs are left out as exact repeats.
        collapsed: how many are left out as repeats of a feed.
    """

    name: BundleName
    entries: list[Entry]
    repeats: int
    collapsed: int


def planned(
    group: Group, inputs: Sequence[Input], left_out: frozenset[Identity] = frozenset()
) -> Planned:
    """Return what merging bundles of a group will make, by what their indexes say.

    Args:
        group: what the bundles have in common.
        inputs: the bundles, each with its index.
        left_out: rows that are repeats of a feed.
    """
    found, repeats = _entries_of(inputs)
    entries = [entry for entry in found if entry.identity not in left_out] if left_out else found
    collapsed = len(found) - len(entries)
    digest = _digest(digest_of(entry.identity for entry in entries), inputs, collapsed)
    name = BundleName.merged(group.place, group.datatype, group.day, digest)
    return Planned(name=name, entries=entries, repeats=repeats, collapsed=collapsed)


def _digest(of_rows: str, inputs: Sequence[Input], collapsed: int) -> str:
    """Return the digest that names a merged bundle, given that of its rows."""
    reduced = [one for one in inputs if is_reduced(one)]
    if not (collapsed or reduced):
        return of_rows
    if len(inputs) == len(reduced) == 1 and not collapsed:
        return inputs[0].member.name.node[-len(of_rows) :]
    for one in reduced:  # a compactor that was killed has made it of the others
        others = [other for other in inputs if other is not one]
        if one.member.name.node.endswith(made := _digest_of_inputs(of_rows, others)):
            return made
    return _digest_of_inputs(of_rows, inputs)


def is_reduced(one: Input) -> bool:
    """Return whether repeats of a feed were left out of a merged bundle, or of what it is made of.

    Its name tells, not the metadata, which a copied bucket does not have.
    """
    name = one.member.name
    return name.is_merged and not name.node.endswith(digest_of(one.keys()))


def _digest_of_inputs(of_rows: str, inputs: Iterable[Input]) -> str:
    names = sorted(str(one.member.name) for one in inputs)
    return hashlib.blake2b(orjson.dumps([of_rows, *names]), digest_size=16).hexdigest()


def merge(
    group: Group, inputs: Sequence[Input], plan: Planned, *, bucket: str, version: str
) -> Merged:
    """Merge bundles of a group.

    Args:
        group: what they have in common.
        inputs: the bundles, each with its index.
        plan: what `planned` returned for them.
        bucket: URL of the bucket.
        version: of this program, `jostler@<version>`, for the metadata.

    Raises:
        DamagedInputError: a bundle is not what its index says.
    """
    name, entries, repeats = plan.name, plan.entries, plan.repeats
    runs = [
        Run(node, sum(1 for _ in same)) for node, same in groupby(entries, key=attrgetter("node"))
    ]
    writer = BlockWriter(FAST, header=header(runs))
    _write_rows(writer, group, inputs, entries, f"{bucket}/{name}")
    data = writer.finish()
    index_name = replace(name, kind=Kind.INDEX)
    rows = (inputs[entry.source].index[entry.line] for entry in entries)
    index = _index(rows, writer, f"{bucket}/{name}", f"{bucket}/{index_name}")
    added = [entry.added for entry in entries]
    about = {
        "rows": str(len(entries)),
        "first-time-added": min(added),
        "last-time-added": max(added),
        "version": version,
    }
    collapsed = plan.collapsed + sum(one.member.collapsed for one in inputs)
    if collapsed:
        about["collapsed"] = str(collapsed)
    judged = {"schema": group.schema} if group.schema else {}
    # Repeats of earlier merges count on: the loader accepts that the table index1 has fewer rows by
    # as many as all merges have left out (`loader/plan/losses`).
    left_out = repeats + sum(one.member.repeats for one in inputs)
    described = about | {"data-upload-id": upload_id(data), "repeats": str(left_out)}
    return Merged(
        name=name,
        data=Made(name=str(name), data=data, metadata=about | judged),
        index=Made(name=str(index_name), data=index, metadata=described),
        identities=tuple(entry.identity for entry in entries),
        repeats=repeats,
        plain_bytes=writer.plain_bytes,
    )


def _write_rows(
    writer: BlockWriter, group: Group, inputs: Sequence[Input], entries: list[Entry], url: str
) -> None:
    """Read the inputs side by side, node by node, and write their rows in order.

    Only the rows of one node are in memory, besides the objects themselves.
    """
    # Merged inputs have their nodes in the order of `entries`, so one pass over each input
    # suffices.
    readers = [one.reader() for one in inputs]
    heads: dict[Archiver, bytes] = {}
    for node, same in groupby(entries, key=attrgetter("node")):
        for number, reader in enumerate(readers):
            _pass_over(number, reader, node)
        taken = {
            number: _asked(number, reader.take)
            for number, reader in enumerate(readers)
            if reader.node == node
        }
        rows = []
        for entry in same:
            first, lines = taken[entry.source]
            row = lines[entry.line - first]
            head = heads.get(row.archiver)
            if head is None:
                head = heads[row.archiver] = row_head(row.archiver, group.day, url)
            rows.append(head + row.rest)
        writer.add_rows(rows)
    for number, reader in enumerate(readers):
        _pass_over(number, reader, None)
        _asked(number, reader.finish)


def _pass_over(number: int, reader: InputReader, node: str | None) -> None:
    """Read the rows of nodes before this one: all of them are repeats, and left out."""
    while reader.node is not None and (node is None or reader.node < node):
        _asked(number, reader.take)


def _asked(number: int, ask: Callable[[], T]) -> T:
    """Read from an input; an error names the input."""
    try:
        return ask()
    except InputError as exc:
        raise DamagedInputError(number, exc) from exc


def _index(rows: Iterable[IndexRow], writer: BlockWriter, url: str, index_url: str) -> bytes:
    """Return the index object: the rows' own index rows, each with its new place."""
    index, lines = BlockWriter(FAST), []
    starts = [block.line for block in writer.blocks]
    for line, row in enumerate(rows, 1):
        block = writer.blocks[bisect_right(starts, line) - 1]
        archiver, raw = row.archiver, row.raw
        moved = IndexRow(
            row.date,
            RowArchiver(archiver.Version, archiver.GitCommit, index_url, archiver.Filename),
            IndexRaw(
                raw.Filename,
                raw.Size,
                raw.TimeAdded,
                raw.Datatype,
                raw.Node,
                url,
                line,
                raw.Hash,
                block.offset,
                block.length,
                raw.Start,
                raw.End,
                raw.WorkID,
            ),
        )
        lines.append(_encode(moved) + b"\n")
    index.add_rows(lines)
    return index.finish()


def holds(group: Group, name: BundleName, data: bytes, index: bytes) -> tuple[Identity, ...]:
    """Return the identities of a bundle's rows, after reading every row of it.

    Raises:
        InputError: index and data disagree, or are damaged.
    """
    member = Member(
        name=name,
        version="",
        size_bytes=len(data),
        index_version="",
        index_bytes=len(index),
        rows=0,
        schema=group.schema,
    )
    one = read_input(member, data, index)
    reader = one.reader()
    while reader.node is not None:
        reader.take()
    reader.finish()
    return tuple(one.keys())
