"""What verifying finds, as Arrow batches: a position and three numbers for each row.

**Invariant:** `pos` is bundle << 32 | line and orders rows as their bundles were made; a row is
good and has a key, or is bad and has none; line 0 of each bundle tells of the bundle as a whole.
No content of a row is in it: what is wrong with a bad row is written by `rejects`.

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
    """A bundle as a whole.

    Attributes:
        rows: lines, good and bad.
        bad: lines that cannot be loaded.
        bare: good lines that lack the standard columns.
        plain_bytes: of the lines.
        packed_bytes: of the object.
        corrupt: why none of its rows can be trusted; else empty.
        unreadable: why the object could not be had at all; else empty.
    """

    rows: int = 0
    bad: int = 0
    bare: int = 0
    plain_bytes: int = 0
    packed_bytes: int = 0
    corrupt: str = ""
    unreadable: str = ""


class Findings:
    """Gathers the findings of one bundle after the other, and hands them on in batches."""

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
        """Take a bundle's findings.

        Args:
            ordinal: of the bundle.
            whole: tells how many rows it has.
            keys: identities of the good rows, one after the other.
            bad: lines of the other rows, in order; none for a corrupt bundle, whose rows all are.
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
        """Yield what has gathered, if that is a batch or the rest of it."""
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
