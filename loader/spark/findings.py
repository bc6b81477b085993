"""The results of verifying as Arrow batches: a position and three numbers for each row.

**Invariant:** `pos` is bundle << 32 | line, so rows are in the order in which bundles were created.
A good row has a key, a bad row has none.  Line 0 of each bundle has the results for the whole
bundle.  No content of a row is included; `rejects` writes what is wrong with bad rows.

Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from loader.spark.row import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LINE_BITS = 32
BATCH_ROWS = 50_000

WHOLE = pa.struct(
    [
        ("rows", pa.int64()),
        ("bad", pa.int64()),
        ("bare", pa.int64()),
        ("plain_bytes", pa.int64()),
        ("packed_bytes", pa.int64()),
        ("corrupt", pa.string()),
        ("unreadable", pa.string()),
    ],
)
SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("pos", "name_key", "key_high", "key_low")]
    + [("bad", pa.bool_()), ("whole", WHOLE)],
)
DDL = (
    "pos BIGINT, name_key BIGINT, key_high BIGINT, key_low BIGINT, bad BOOLEAN,"
    " whole STRUCT<rows: BIGINT, bad: BIGINT, bare: BIGINT, plain_bytes: BIGINT,"
    " packed_bytes: BIGINT, corrupt: STRING, unreadable: STRING>"
)


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


class Findings:
    """Collects the findings of bundles and returns them in batches."""

    def __init__(self) -> None:
        self._positions: list[np.ndarray] = []
        self._keys: list[bytes | bytearray] = []
        self._good = 0
        self._bad: list[np.ndarray] = []
        self._bad_count = 0
        self._whole: list[tuple[int, Whole]] = []

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
        first = ordinal << LINE_BITS
        self._whole.append((first, whole))
        if whole.corrupt or whole.unreadable:
            return
        lines = np.arange(1, whole.rows + 1, dtype=np.int64)
        if bad:
            unwanted = np.array(bad, np.int64)
            lines = np.delete(lines, unwanted - 1)
            self._bad.append(unwanted + first)
            self._bad_count += len(bad)
        assert len(lines) * KEY_BYTES == len(keys)
        self._positions.append(lines + first)
        self._keys.append(keys)
        self._good += len(lines)

    def batches(self, *, rest: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the collected findings if they fill a batch; with `rest`, yield all of them."""
        if self._good + self._bad_count >= BATCH_ROWS or (rest and self._whole):
            yield self._batch()
            self.__init__()  # type: ignore[misc] # begin anew

    def _batch(self) -> pa.RecordBatch:
        wholes = len(self._whole)
        others = self._bad_count + wholes
        keys = np.frombuffer(b"".join(self._keys), dtype="<i8").reshape(-1, 3)
        firsts = np.array([pos for pos, _ in self._whole], np.int64)
        no_key = pa.nulls(others, pa.int64())
        columns = [pa.array(np.concatenate([*self._positions, *self._bad, firsts]))]
        columns += [
            pa.concat_arrays([pa.array(np.ascontiguousarray(keys[:, part])), no_key])
            for part in range(3)
        ]
        bad = np.zeros(self._good + others, np.bool_)
        bad[self._good : self._good + self._bad_count] = True
        columns.append(pa.array(bad))
        columns.append(
            pa.concat_arrays(
                [
                    pa.nulls(self._good + self._bad_count, WHOLE),
                    pa.array([asdict(whole) for _, whole in self._whole], WHOLE),
                ]
            )
        )
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
