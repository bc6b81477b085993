"""Divide the rows of a merged bundle by the nodes that they come from.

**Invariant:** each row has the node that the table in the object's header gives it, whatever the
index says and whether or not there is one; rows of a bundle without such a table are those of the
node in its name.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.format.node_table import runs_of
from loader.spark.gunzip import CorruptError, blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jostler.format.node_table import Run


def blocks_by_node(data: bytes, node: str) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a bundle as `gunzip.blocks` does, those of one node at a time.

    Args:
        data: the object.
        node: in the object's name.

    Raises:
        CorruptError: the stream is broken, or has another number of rows than its table.
    """
    if found := runs(data):
        yield from by_runs(blocks(data), found)
        return
    for block in blocks(data):
        yield node, block


def by_runs(lines: Iterable[bytes], runs: Iterable[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """Yield lines, several at a time, those of one node at a time.

    Args:
        lines: blocks of lines.
        runs: nodes and numbers of rows, in the order of the lines.

    Raises:
        CorruptError: there are more or fewer lines.
    """
    rest = iter(runs)
    node, left = next(rest, ("", 0))
    for block in lines:
        at = 0
        while at < len(block):
            if not left:
                node, left = next(rest, ("", 0))
            if not left:
                raise CorruptError("it has more rows than its table of nodes")
            till, rows = _till(block, at, left)
            yield node, block[at:till]
            at, left = till, left - rows
    if left or next(rest, None):
        raise CorruptError("it has fewer rows than its table of nodes")


def nodes_of(data: bytes) -> list[str]:
    """Return the node of each row of a merged bundle; nothing for another bundle.

    Raises:
        CorruptError: the table is damaged.
    """
    return [run.node for run in runs(data) for _ in range(run.rows)]


def runs(data: bytes) -> tuple[Run, ...]:
    """Return the nodes of a merged bundle's rows; nothing for another bundle.

    Raises:
        CorruptError: the table is damaged.
    """
    try:
        return runs_of(data)
    except ValueError as exc:
        raise CorruptError(str(exc)) from exc


def _till(block: bytes, at: int, most: int) -> tuple[int, int]:
    """Return where at most so many lines end, and how many they are; the last may have no end."""
    lines = block.count(b"\n", at) + (not block.endswith(b"\n"))
    if lines <= most:
        return len(block), lines
    for _ in range(most):
        at = block.index(b"\n", at) + 1
    return at, most
