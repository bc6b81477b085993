"""Find repeated rows by their keys, in one list or in parts that together are all rows.

**Invariant:** of equal rows the earliest stays, whatever the order in which they come.  Rows of one
node and Filename are in one part, so parts may be looked through apart from each other.

Pure.  Most rows have a Filename of their own: sorting 8 bytes of each shows which do not, and only
those are compared further.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loader.spark.findings import HIGH, LINE_BITS, LINE_MASK, LOW, NAME, POS

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Repeats:
    """Positions of rows, as in `findings`, in order.

    Attributes:
        repeated: the rows with the node, Filename and content of an earlier row.
        renewed: the rows whose Filename another row has with other content, all but one of each.
    """

    repeated: np.ndarray
    renewed: np.ndarray


def repeats(rows: np.ndarray) -> Repeats:
    """Find repeated rows, and rows whose Filename occurs with different contents.

    Args:
        rows: four columns of int64, as `findings.Found` has them.
    """
    names = np.sort(rows[:, NAME])
    several = names[1:][names[1:] == names[:-1]]
    if not len(several):
        nothing = np.empty(0, np.int64)
        return Repeats(nothing, nothing)
    rows = rows[np.isin(rows[:, NAME], several)]
    # numpy.lexsort takes the last key for the first one to sort by.
    rows = rows[np.lexsort((rows[:, POS], rows[:, LOW], rows[:, HIGH], rows[:, NAME]))]
    same = rows[1:] == rows[:-1]
    named = np.concatenate([[False], same[:, NAME]])
    equal = named & np.concatenate([[False], same[:, HIGH] & same[:, LOW]])
    pos = rows[:, POS]
    return Repeats(np.sort(pos[equal]), np.sort(pos[named & ~equal]))


def by_bundle(positions: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each bundle that has some of these positions, which are in order, and its lines."""
    bundles, firsts = np.unique(positions >> LINE_BITS, return_index=True)
    lines = np.split((positions & LINE_MASK).astype(np.int32), firsts[1:])
    yield from zip(bundles.tolist(), lines, strict=False)


def parts(rows: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Distribute rows to parts by node and Filename; yield the parts that have some.

    Args:
        rows: as `repeats` takes them.
        count: how many parts there are, at most 65,536.
    """
    part = (rows[:, NAME].astype(np.uint64) % np.uint64(count)).astype(np.uint16)
    order = np.argsort(part, kind="stable")  # of 16 bits: a radix sort
    ends = np.cumsum(np.bincount(part, minlength=count))
    rows = rows[order]
    for number, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        if start < end:
            yield number, rows[start:end]
