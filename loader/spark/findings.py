"""The results of verifying bundles: four numbers for each good row, and one record per bundle.

**Invariant:** a position is bundle << 32 | line, so rows are in the order in which bundles were
created.  A good row has a position and a key, a bad one only its line number.  No content of a row
is included; `rejects` writes what is wrong with bad rows.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loader.spark.row import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LINE_BITS = 32
LINE_MASK = (1 << LINE_BITS) - 1
BATCH_ROWS = 50_000
NAME, HIGH, LOW, POS = range(4)
"""The columns of `Found.rows`: the key of node and Filename, that of the content, the position."""
NO_ROWS = np.empty((0, 4), "<i8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The results for a whole bundle.

    Attributes:
        rows: the number of lines, good and bad.
        bad: the number of lines that cannot be loaded.
        bare: the number of good lines that lack the standard columns.
        plain_bytes: the size of the lines.
        packed_bytes: the size of the object.
        corrupt: why none of its rows can be trusted; else empty.
        unreadable: why the object could not be read at all; else empty.
    """

    rows: int = 0
    bad: int = 0
    bare: int = 0
    plain_bytes: int = 0
    packed_bytes: int = 0
    corrupt: str = ""
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class BundleFindings:
    """A bundle by its number, its results, and its bad lines in order; none if it is corrupt."""

    number: int
    whole: Whole
    bad: Sequence[int]


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of some bundles.

    Attributes:
        rows: the good rows, four columns of int64; the columns are `NAME`, `HIGH`, `LOW` and `POS`.
        bundles: each of the bundles, once.
    """

    rows: np.ndarray
    bundles: list[BundleFindings]


class Findings:
    """Collects the findings of bundles and returns them several bundles at a time."""

    def __init__(self) -> None:
        self._rows: list[np.ndarray] = []
        self._count = 0
        self._bundles: list[BundleFindings] = []

    def add(
        self, ordinal: int, whole: Whole, keys: bytes | bytearray = b"", bad: Sequence[int] = ()
    ) -> None:
        """Add a bundle's findings.

        Args:
            ordinal: the bundle's number in the wave.
            whole: the results for the whole bundle.
            keys: the identities of the good rows, concatenated.
            bad: the line numbers of bad rows, in order; empty for a corrupt bundle, in which all
                rows are bad.
        """
        is_read = not (whole.corrupt or whole.unreadable)
        self._bundles.append(BundleFindings(ordinal, whole, bad if is_read else ()))
        if not is_read:
            return
        lines = np.arange(1, whole.rows + 1, dtype=np.int64)
        if bad:
            lines = np.delete(lines, np.array(bad, np.int64) - 1)
        assert len(lines) * KEY_BYTES == len(keys)
        rows = np.empty((len(lines), 4), "<i8")
        rows[:, :POS] = np.frombuffer(keys, "<i8").reshape(-1, 3)
        rows[:, POS] = lines + (ordinal << LINE_BITS)
        self._rows.append(rows)
        self._count += whole.rows

    def found(self, *, rest: bool = False) -> Iterator[Found]:
        """Yield what was collected if it is enough; with `rest`, yield all of it."""
        if self._count >= BATCH_ROWS or (rest and self._bundles):
            yield Found(np.concatenate([NO_ROWS, *self._rows]), self._bundles)
            self.__init__()  # type: ignore[misc] # begin anew
