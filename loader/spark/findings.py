"""What verifying finds, as Arrow batches: a position and three numbers for each row.

**Invariant:** `pos` is bundle << 32 | line and orders rows as their bundles were made; a row is
good and has a key, or bad and says why; line 0 of each bundle tells of the bundle as a whole.

Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from loader.spark.row import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_BITS = 32
BATCH_ROWS = 50_000
CORRUPT = "corrupt-bundle"
WRONG_DAY = "wrong-day"
ROW_TOO_LONG = "row-too-long"
TEXT_MAX = 64 * 1024
"""Of a bad row so many bytes are kept, as many as the agent keeps of a file that is too big."""

BAD = pa.struct(
    [(name, pa.string()) for name in ("filename", "field", "reason", "detail", "text")],
)
WHOLE = pa.struct(
    [
        ("rows", pa.int64()),
        ("plain_bytes", pa.int64()),
        ("packed_bytes", pa.int64()),
        ("bare", pa.bool_()),
        ("corrupt", pa.string()),
        ("unreadable", pa.string()),
    ],
)
SCHEMA = pa.schema(
    [(name, pa.int64()) for name in ("pos", "name_key", "key_high", "key_low")]
    + [("bad", BAD), ("whole", WHOLE)],
)
DDL = (
    "pos BIGINT, name_key BIGINT, key_high BIGINT, key_low BIGINT,"
    " bad STRUCT<filename: STRING, field: STRING, reason: STRING, detail: STRING, text: STRING>,"
    " whole STRUCT<rows: BIGINT, plain_bytes: BIGINT, packed_bytes: BIGINT, bare: BOOLEAN,"
    " corrupt: STRING, unreadable: STRING>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """Why a row cannot be loaded, and the row, cut to `TEXT_MAX` bytes."""

    filename: str
    field: str
    reason: str
    detail: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A bundle as a whole.

    Attributes:
        rows: lines, good and bad.
        plain_bytes: of the lines.
        packed_bytes: of the object.
        bare: its rows lack the standard columns.
        corrupt: why it is not a whole gzip stream; else empty.
        unreadable: why the object could not be had at all; else empty.
    """

    rows: int = 0
    plain_bytes: int = 0
    packed_bytes: int = 0
    bare: bool = False
    corrupt: str = ""
    unreadable: str = ""


def shown(line: bytes) -> str:
    """Write a bad row as a STRING can hold it: no NUL, no broken UTF-8, not too long."""
    return line[:TEXT_MAX].decode(errors="replace").replace("\0", "\ufffd")


class Findings:
    """Gathers the findings of one bundle after the other, and hands them on in batches."""

    def __init__(self) -> None:
        self._positions: list[np.ndarray] = []
        self._keys: list[bytes] = []
        self._good = 0
        self._bad: list[tuple[int, Bad]] = []
        self._whole: list[tuple[int, Whole]] = []

    def add(self, ordinal: int, whole: Whole, keys: bytes, bad: list[tuple[int, Bad]]) -> None:
        """Take a bundle's findings.

        Args:
            ordinal: of the bundle.
            whole: tells how many rows it has.
            keys: identities of the good rows, one after the other.
            bad: the others, by line, in order.
        """
        first = ordinal << LINE_BITS
        lines = np.arange(1, whole.rows + 1, dtype=np.int64)
        if bad:
            lines = np.delete(lines, [line - 1 for line, _ in bad])
        assert len(lines) * KEY_BYTES == len(keys)
        self._positions.append(lines + first)
        self._keys.append(keys)
        self._good += len(lines)
        self._bad += [(first + line, why) for line, why in bad]
        self._whole.append((first, whole))

    def batches(self, *, rest: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield what has gathered, if that is a batch or the rest of it."""
        if self._good + len(self._bad) >= BATCH_ROWS or (rest and self._whole):
            yield self._batch()
            self.__init__()  # type: ignore[misc] # begin anew

    def _batch(self) -> pa.RecordBatch:
        others = len(self._bad) + len(self._whole)
        keys = np.frombuffer(b"".join(self._keys), dtype="<i8").reshape(-1, 3)
        positions = [pos for pos, _ in self._bad] + [pos for pos, _ in self._whole]
        no_key = pa.nulls(others, pa.int64())
        columns = [pa.array(np.concatenate([*self._positions, np.array(positions, np.int64)]))]
        columns += [
            pa.concat_arrays([pa.array(np.ascontiguousarray(keys[:, part])), no_key])
            for part in range(3)
        ]
        columns.append(
            pa.concat_arrays(
                [
                    pa.nulls(self._good, BAD),
                    pa.array([asdict(why) for _, why in self._bad], BAD),
                    pa.nulls(len(self._whole), BAD),
                ]
            )
        )
        columns.append(
            pa.concat_arrays(
                [
                    pa.nulls(self._good + len(self._bad), WHOLE),
                    pa.array([asdict(whole) for _, whole in self._whole], WHOLE),
                ]
            )
        )
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
