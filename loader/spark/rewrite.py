"""What an executor does with dirty bundles: write them again without the rows not to be loaded.

**Invariant:** lines that stay are copied byte for byte; only bare rows get the standard columns put
around them.  Equal input makes an equal object under an equal name, so a task may run twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from isal import isal_zlib

from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row
from loader.spark.gunzip import CorruptError, blocks, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loader.spark.verify import Task

SCHEMA = pa.schema(
    [("bundle", pa.int32()), ("rows", pa.int64()), ("bytes", pa.int64()), ("problem", pa.string())]
)
DDL = "bundle INT, rows BIGINT, bytes BIGINT, problem STRING"
LEVEL = 1  # staging is read once: speed over size


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A bundle to write again.

    Attributes:
        task: names the bundle.
        bare: its rows need the standard columns.
        bucket: URL to write to.
        name: of the new object.
    """

    task: Task
    bare: bool
    bucket: str
    name: str


def rewritten(
    batches: Iterator[pa.RecordBatch], copies: dict[int, Copy], patience_s: float
) -> Iterator[pa.RecordBatch]:
    """Write each bundle of the batches again; report rows and bytes, or why it could not be."""
    for batch in batches:
        for bundle, lines in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows, size, problem = 0, 0, ""
            try:
                rows, size = _copy(copies[bundle], frozenset(lines or ()), patience_s)
            except (BucketError, CorruptError) as exc:
                problem = f"{type(exc).__name__}: {exc}"
            values = [[bundle], [rows], [size], [problem]]
            yield pa.RecordBatch.from_arrays(
                [pa.array(v, f.type) for v, f in zip(values, SCHEMA, strict=True)], schema=SCHEMA
            )


def _copy(copy: Copy, unwanted: frozenset[int], patience_s: float) -> tuple[int, int]:
    task = copy.task
    data = open_bucket(task.bucket, patience_s).read(task.name, task.generation)
    pack = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, 31)
    packed = bytearray()
    number = kept = 0
    for block in blocks(data):
        wanted = []
        for number, line in enumerate(split(block), number + 1):  # noqa: B020 - counts on
            if number not in unwanted:
                wanted.append(_standard(copy, line) if copy.bare else line)
        kept += len(wanted)
        if wanted:
            packed += pack.compress(b"\n".join(wanted) + b"\n")
    packed += pack.flush()
    open_bucket(copy.bucket, patience_s).write(copy.name, bytes(packed))
    return kept, len(packed)


def _standard(copy: Copy, line: bytes) -> bytes:
    """Put the standard columns around a bare row; its own ArchiveURL is that of the index."""
    columns = {key.lower(): value for key, value in orjson.loads(line).items()}
    filename = row.relative(
        str(columns.get("filename") or "").encode(), f"{copy.task.day.path}/".encode()
    )
    url = f"{copy.task.bucket}/{copy.task.name}"
    return row.wrapped(line, copy.task.day, url, filename.decode())
