"""Write to staging: a copy of a bundle without bad and repeated rows, and its bad rows.

**Invariant:** lines that stay are copied byte for byte, except that bare rows get the standard
columns.  Equal input gives equal objects under equal names, so a task may run twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from isal import isal_zlib

from jostler.format.go import is_bare, loadable_index
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.spark import row
from loader.spark.gunzip import CorruptError, blocks, split
from loader.spark.limits import PACKED_MAX_BYTES
from loader.spark.rejects import LEVEL, Rejects, add_corrupt
from loader.spark.verdicts import Verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.schema import Fields
    from loader.spark.verify import Task

SCHEMA = pa.schema([("bundle", pa.int32()), ("rejects", pa.int64()), ("problem", pa.string())])
DDL = "bundle INT, rejects BIGINT, problem STRING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The objects to write for a bundle.

    Attributes:
        task: the bundle.
        bucket: the URL of the bucket to write to.
        copy: the name of the object for the rows to load; empty for none.
        bare: whether some rows need the standard columns.
        corrupt: why no row of the bundle can be trusted; else empty.
        rejects: the name of the object for the bad rows; empty for none.
        most: the maximum number of bad rows to write.
        about: the columns that all bad rows share.
    """

    task: Task
    bucket: str
    copy: str = ""
    bare: bool = False
    corrupt: str = ""
    rejects: str = ""
    most: int = 0
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unwanted:
    """The lines of a bundle that must not be loaded."""

    bad: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()


def written(
    batches: Iterator[pa.RecordBatch],
    copies: dict[int, Copy],
    tables: tuple[Fields, ...],
    patience_s: float,
) -> Iterator[pa.RecordBatch]:
    """Write the objects of each bundle; report the number of rejects, or the error."""
    for batch in batches:
        for bundle, *lines in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rejects, problem = 0, ""
            unwanted = Unwanted(*(frozenset(numbers or ()) for numbers in lines))
            try:
                copy = copies[bundle]
                rejects = write(copy, unwanted, tables[copy.task.table], patience_s)
            except (BucketError, CorruptError) as exc:
                problem = f"{type(exc).__name__}: {exc}"
            values = [[bundle], [rejects], [problem]]
            yield pa.RecordBatch.from_arrays(
                [pa.array(v, f.type) for v, f in zip(values, SCHEMA, strict=True)], schema=SCHEMA
            )


def write(copy: Copy, unwanted: Unwanted, fields: Fields, patience_s: float) -> int:
    """Write the objects of one bundle; return the number of rejects.

    Raises:
        BucketError: the bundle cannot be read any more, or an object cannot be written.
        CorruptError: the bundle was complete when it was verified, and is not now.
    """
    task = copy.task
    data = b""
    if task.size_bytes <= PACKED_MAX_BYTES:
        data = open_bucket(task.bucket, patience_s).read(task.name, task.generation)
    rejects = Rejects(copy.about, copy.most)
    if copy.corrupt:
        add_corrupt(rejects, data, copy.corrupt)
    else:
        kept = _split(copy, data, unwanted, Verdicts(task, fields), rejects)
        if copy.copy:
            open_bucket(copy.bucket, patience_s).write(copy.copy, kept)
    if copy.rejects:
        open_bucket(copy.bucket, patience_s).write(copy.rejects, rejects.finish())
    return rejects.count


def _split(
    copy: Copy, data: bytes, unwanted: Unwanted, verdicts: Verdicts, rejects: Rejects
) -> bytes:
    """Return the rows to load, compressed, and add the bad ones to the rejects."""
    # gzip like the originals: a load job must not mix compressed and uncompressed files ("Loading
    # JSON data from Cloud Storage").
    pack = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, 31)
    packed = bytearray()
    number = 0
    for block in blocks(data):
        wanted = []
        for number, line in enumerate(split(block), number + 1):  # noqa: B020 - counts on
            if number in unwanted.bad:
                _reject(number, line, verdicts, rejects)
            elif copy.copy and number not in unwanted.repeated:
                bare = copy.bare and is_bare(line)
                wanted.append(_standard(copy, line) if bare else line)
        if wanted:
            packed += pack.compress(b"\n".join(wanted) + b"\n")
        # Nothing of the bundle is loaded, and enough bad rows are written.
        if not copy.copy and rejects.is_full:
            break
    packed += pack.flush()
    return bytes(packed)


def _reject(number: int, line: bytes, verdicts: Verdicts, rejects: Rejects) -> None:
    if rejects.is_full:
        return
    bad = verdicts.flaw(line)
    if bad is None:
        # The generation is fixed, so the bytes should be the same; another verdict fails the day.
        raise CorruptError(f"line {number} was bad before, and is good now")
    rejects.add(number, line, bad)


def _standard(copy: Copy, line: bytes) -> bytes:
    """Put the standard columns around a bare row; the ArchiveURL is that of the index object."""
    columns = {key.lower(): value for key, value in orjson.loads(line).items()}
    filename = row.relative(
        str(columns.get("filename") or "").encode(), f"{copy.task.day.path}/".encode()
    )
    url = f"{copy.task.bucket}/{copy.task.name}"
    return row.wrapped(loadable_index(line), copy.task.day, url, filename.decode())
