"""Merge bundles into one: the same rows, sorted, exact repeats once, with a new index.

**Invariant:** the name follows from the identities of the rows alone, so whoever merges bundles
that hold the same rows makes an object of the same name, and an object of that name holds these
rows and no others.  A row keeps its bytes but for ArchiveURL.

Where repeats of feeds are left out (`repeats`), now or in one of the inputs, the name follows from
the names of the inputs, too.  Why: a bundle that holds fewer rows than its inputs could otherwise
be an input of the bundle that replaces it, and two compactors could each remove what the other one
relies on.  A name that follows from the names of the inputs cannot be the name of one of them.

Pure.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeVar

import orjson

from jostler.archive.compact_input import index_rows, read_input
from jostler.archive.compact_order import digest_of, order_of
from jostler.archive.compact_plan import member_in_memory
from jostler.archive.compact_rows import InputError
from jostler.archive.keeping import Made
from jostler.format.blocks import Block, BlockWriter, inflated
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Kind
from jostler.format.node_table import Run, header
from jostler.format.row import row_head
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jostler.archive.compact_input import Input
    from jostler.archive.compact_order import Order
    from jostler.archive.compact_plan import Group
    from jostler.archive.compact_rows import Reader
    from jostler.archive.repeats import Identity
    from jostler.format.compression import Compression
    from jostler.format.row import Archiver

T = TypeVar("T")


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
        plain_bytes: bytes of its rows.
    """

    name: BundleName
    data: Made
    index: Made
    plain_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What a merged bundle will be.

    Attributes:
        name: of its data object.
        order: its rows, in order.
    """

    name: BundleName
    order: Order


def planned(
    group: Group, inputs: Sequence[Input], left_out: frozenset[Identity] = frozenset()
) -> Planned:
    """Return what merging bundles of a group will make, by what their indexes say.

    Args:
        group: what the bundles have in common.
        inputs: the bundles, each with its index.
        left_out: rows that are repeats of a feed.
    """
    order = order_of(inputs, left_out)
    digest = _digest(order.digest(), inputs, order.collapsed)
    name = BundleName.merged(group.place, group.datatype, group.day, digest)
    return Planned(name=name, order=order)


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
    group: Group,
    inputs: Sequence[Input],
    plan: Planned,
    *,
    bucket: str,
    version: str,
    compression: Compression = FAST,
    compare: bool = True,
) -> Merged:
    """Merge bundles of a group.

    Args:
        group: what they have in common.
        inputs: the bundles, each with its index.
        plan: what `planned` returned for them.
        bucket: URL of the bucket.
        version: of this program, `jostler@<version>`, for the metadata.
        compression: of data and index.
        compare: whether to compare the Hash of each row; if not, whoever reads the result must.

    Raises:
        DamagedInputError: a bundle is not what its index says.
    """
    name, order = plan.name, plan.order
    url, index_url = f"{bucket}/{name}", f"{bucket}/{replace(name, kind=Kind.INDEX)}"
    data, writer = _data(group, inputs, order, url, compression, compare=compare)
    index = BlockWriter(compression)
    for text, rows in order.index(group.day.iso, group.datatype, url, index_url, writer.blocks):
        index.add(text, rows)
    first, last = order.added()
    about = {
        "rows": str(len(order)),
        "first-time-added": first,
        "last-time-added": last,
        "version": version,
    }
    collapsed = order.collapsed + sum(one.member.collapsed for one in inputs)
    if collapsed:
        about["collapsed"] = str(collapsed)
    judged = {"schema": group.schema} if group.schema else {}
    # Repeats of earlier merges count on: the loader accepts that the table index1 has fewer rows by
    # as many as all merges have left out (`loader/plan/losses`).
    left_out = order.repeats + sum(one.member.repeats for one in inputs)
    described = about | {"data-upload-id": upload_id(data), "repeats": str(left_out)}
    return Merged(
        name=name,
        data=Made(name=str(name), data=data, metadata=about | judged),
        index=Made(
            name=str(replace(name, kind=Kind.INDEX)), data=index.finish(), metadata=described
        ),
        plain_bytes=writer.plain_bytes,
    )


def _data(
    group: Group,
    inputs: Sequence[Input],
    order: Order,
    url: str,
    compression: Compression,
    *,
    compare: bool,
) -> tuple[bytes, BlockWriter]:
    """Return the data object, and its writer, which knows the blocks."""
    runs = [Run(*one) for one in order.runs()]
    if all(one.native for one in inputs):
        with suppress(DamagedInputError):  # the other readers know what is wrong, if anything is
            writer = BlockWriter(compression, header=header(runs))
            readers = [one.reader(native=True, compare=compare) for one in inputs]
            _write_rows(writer, group, readers, order, url)
            return writer.finish(), writer
    writer = BlockWriter(compression, header=header(runs))
    _write_rows(writer, group, [one.reader() for one in inputs], order, url)
    return writer.finish(), writer


def _write_rows(
    writer: BlockWriter, group: Group, readers: Sequence[Reader], order: Order, url: str
) -> None:
    """Read the inputs side by side, node by node, and write their rows in order.

    Only the rows of one node are in memory, besides the objects themselves.
    """
    # Merged inputs have their nodes in the order of the rows, so one pass over each input suffices.
    heads: dict[Archiver, bytes] = {}

    def head_of(archiver: Archiver) -> bytes:
        if archiver not in heads:
            heads[archiver] = row_head(archiver, group.day, url)
        return heads[archiver]

    kept = dict(order.runs())
    line = 0
    for node, at_node in _by_node(readers):
        rows = kept.get(node, 0)
        if not rows:  # all of them are left out
            for number, reader in at_node:
                _asked(number, reader.pass_over)
            continue
        moved = [
            (number, reader.line, _asked(number, partial(reader.moved, head_of)))
            for number, reader in at_node
        ]
        order.write(writer, line, rows, moved)
        line += rows
    for number, reader in enumerate(readers):
        _asked(number, reader.finish)


def _by_node(readers: Sequence[Reader]) -> Iterator[tuple[str, list[tuple[int, Reader]]]]:
    """Yield each node, in order, with the readers that are at its rows, which are then to be read.

    In a large group each of many nodes has rows in few of many inputs.
    """
    waiting = [(one.node, number) for number, one in enumerate(readers) if one.node is not None]
    heapify(waiting)
    while waiting:
        node, found = waiting[0][0], []
        while waiting and waiting[0][0] == node:
            number = heappop(waiting)[1]
            found.append((number, readers[number]))
        yield node, found
        for number, reader in found:
            if reader.node is not None:
                heappush(waiting, (reader.node, number))


def _asked(number: int, ask: Callable[[], T]) -> T:
    """Read from an input; an error names the input."""
    try:
        return ask()
    except InputError as exc:
        raise DamagedInputError(number, exc) from exc


def compare_rows(inputs: Iterable[Input]) -> None:
    """Compare each row of bundles with its index.

    Raises:
        DamagedInputError: a bundle is not what its index says.
    """
    for number, one in enumerate(inputs):
        _asked(number, one.read_all)


def holds(group: Group, name: BundleName, data: bytes, index: bytes) -> tuple[Identity, ...]:
    """Return the identities of a bundle's rows, after reading every row of it.

    Raises:
        InputError: index and data disagree, or are damaged.
    """
    one = read_input(member_in_memory(name, data, index, group.schema), data, index)
    one.read_all()
    return tuple(one.keys())


def is_as_good(group: Group, merged: Merged, plan: Planned, data: bytes, index: bytes) -> bool:
    """Say whether a stored bundle has the rows of a merged one, and no later TimeAdded of any.

    Args:
        group: what the merged bundles have in common.
        merged: the merged bundle.
        plan: of which it was made.
        data: the stored data object, of the same name.
        index: its index object.

    Raises:
        InputError: index and data disagree, or are damaged.
    """
    if list(holds(group, plan.name, data, index)) != plan.order.identities():
        return False
    there, made = (index_rows(inflated(one)) for one in (index, merged.index.data))
    return all(a.raw.TimeAdded <= b.raw.TimeAdded for a, b in zip(there, made, strict=True))


def index_again(group: Group, one: Input, plan: Planned) -> list[tuple[bytes, int]]:
    """Return the index of a merged bundle that is there, with all that inputs know.

    As `Order.index` does: texts, each with so many rows.

    Args:
        group: what the bundles have in common.
        one: the merged bundle.
        plan: made of it and others that hold no more rows.
    """
    first, last = one.index[0], {row.raw.Offset: row.raw for row in reversed(one.index)}
    blocks = [Block(raw.Line, raw.Offset, raw.Length) for raw in reversed(last.values())]
    urls = first.raw.ArchiveURL, first.archiver.ArchiveURL
    return list(plan.order.index(group.day.iso, group.datatype, *urls, blocks))
