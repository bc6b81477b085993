"""The Filenames of a bundle's rows, to compare with BigQuery: a count and a sum, or the names.

**Invariant:** equal multisets of names give equal sums; different ones give equal sums with a
probability of one in some billions.  BigQuery can compute the same sum (`SUM_SQL`).  Bad and
repeated rows are left out, because they are not loaded.

Pure, except that it reads the bundle.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa

from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row
from loader.spark.gunzip import CorruptError, blocks, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loader.spark.verify import Task

SUM_SQL = (
    "SUM(CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5(IFNULL(archiver.Filename, ''))), 1, 8)) AS INT64))"
)
SCHEMA = pa.schema(
    [
        *(("bundle", pa.int32()), ("rows", pa.int64()), ("sum", pa.int64())),
        *(("names", pa.list_(pa.string())), ("problem", pa.string())),
    ]
)
DDL = "bundle INT, rows BIGINT, sum BIGINT, names ARRAY<STRING>, problem STRING"


def found(
    batches: Iterator[pa.RecordBatch], tasks: list[Task], patience_s: float, *, keep: bool
) -> Iterator[pa.RecordBatch]:
    """Read bundles and return the Filenames of their good rows; the columns are `DDL`.

    Args:
        batches: rows with a bundle's number, its bad lines and its repeated lines.
        tasks: the wave's tasks.
        patience_s: how long a failing request is retried.
        keep: whether to return the names too.
    """
    for batch in batches:
        for bundle, *lines in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            unwanted = {number for numbers in lines for number in numbers or ()}
            names: list[str] = []
            count = total = 0
            problem = ""
            try:
                for name in _names(tasks[bundle], unwanted, patience_s):
                    count += 1
                    total += digest(name)
                    if keep:
                        names.append(name)
            except (BucketError, CorruptError) as exc:
                problem = f"{type(exc).__name__}: {exc}"
            values = [[bundle], [count], [total], [names], [problem]]
            yield pa.RecordBatch.from_arrays(
                [pa.array(v, f.type) for v, f in zip(values, SCHEMA, strict=True)], schema=SCHEMA
            )


def digest(name: str) -> int:
    """Return the number that a name adds to the sum: the first 32 bits of its MD5."""
    return int.from_bytes(hashlib.md5(name.encode(), usedforsecurity=False).digest()[:4], "big")


def _names(task: Task, unwanted: set[int], patience_s: float) -> Iterator[str]:
    data = open_bucket(task.bucket, patience_s).read(task.name, task.generation)
    number = 0
    for block in blocks(data):
        for number, line in enumerate(split(block), number + 1):  # noqa: B020 - counts on
            if number not in unwanted:
                yield _name(line, task)


def _name(line: bytes, task: Task) -> str:
    if parts := row.parts(line):
        return parts.filename
    columns = {key.lower(): value for key, value in orjson.loads(line).items()}  # a bare row
    name = str(columns.get("filename") or "").encode()
    return row.relative(name, f"{task.day.path}/".encode()).decode()
