"""The table of nodes in the gzip header of a merged bundle: which node each of its rows comes from.

A row does not name its node; of other bundles the object's name does.  A merged bundle has rows of
many nodes, in the order of nodes, so a few runs describe them all: `node1 100`, `node2 250`.  They
stand in the header's extra field (RFC 1952 §2.3.1.1), which every reader of gzip passes over.  Thus
the rows of a merged bundle have their identity even when its index is not stored yet, or is lost.

**Invariant:** `runs_of(header(runs) + …) == runs`, and `runs_of` raises ValueError for a table that
`header` cannot have written.

Pure.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from jostler.format.blocks import HEADER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FLAGS, _HAS_EXTRA = 3, 4
"""Place and value of the flag FEXTRA in a gzip header."""
_ID = b"JN"
_LINE_RE = re.compile(r"([A-Za-z0-9._-]+) ([1-9][0-9]{0,9})", re.ASCII)
MOST_BYTES = 0xFFFF - 4
"""The longest table: an extra field has 65,535 bytes, and each subfield a head of four."""


class Run(NamedTuple):
    """Rows of one node that follow one another."""

    node: str
    rows: int


def table_bytes(nodes: Iterable[str], rows: int) -> int:
    """Return an upper bound of the length of the table of nodes that have so many rows in all."""
    digits = len(str(rows))
    return sum(len(node) + digits + 2 for node in nodes)


def header(runs: Sequence[Run]) -> bytes:
    """Return the gzip header of a merged bundle.

    Args:
        runs: in the order of their nodes, each node once.

    Raises:
        ValueError: the table would be too long.
    """
    table = "".join(f"{run.node} {run.rows}\n" for run in runs).encode()
    if len(table) > MOST_BYTES:
        raise ValueError(f"a table of {len(table):,} bytes does not fit into a gzip header")
    extra = _ID + struct.pack("<H", len(table)) + table
    begin = bytearray(HEADER)
    begin[_FLAGS] |= _HAS_EXTRA
    return bytes(begin) + struct.pack("<H", len(extra)) + extra


def runs_of(data: bytes) -> tuple[Run, ...]:
    """Return the table in the header of a bundle; nothing if it has none, as an agent's bundle.

    Args:
        data: the object, or at least its first 64 KiB and 16 bytes.

    Raises:
        ValueError: the table is damaged.
    """
    start = len(HEADER) + 2
    is_gzip = data[:2] == HEADER[:2] and len(data) >= start
    if not is_gzip or not data[_FLAGS] & _HAS_EXTRA:
        return ()
    (size,) = struct.unpack_from("<H", data, start - 2)
    extra = data[start : start + size]
    if extra[: len(_ID)] != _ID:  # of another program, such as bgzip
        return ()
    if len(extra) != size or struct.unpack_from("<H", extra, len(_ID))[0] != size - 4:
        raise ValueError("the table of nodes is cut off")
    found = [_LINE_RE.fullmatch(line) for line in extra[4:].decode("latin-1").splitlines()]
    runs = [Run(one[1], int(one[2])) for one in found if one]
    nodes = [run.node for run in runs]
    if len(runs) != len(found) or nodes != sorted(set(nodes)) or extra[-1:] != b"\n":
        raise ValueError("the table of nodes is damaged")
    return tuple(runs)
