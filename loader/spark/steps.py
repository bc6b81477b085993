"""The steps of the Spark job.

**Invariant:** each step is `DataFrame -> DataFrame`, without session, action or I/O; the same input
gives the same rows.  The first step takes the columns of `DEALT`.

The JVM sees no single row: keys of rows pass through it as bytes, many rows at a time, on their way
to the task that has all rows of their part.  To sort rows as columns of their own, with a window,
took the JVM 1 to 2.5 µs for each, and seconds to compile in a run that begins.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from loader.spark.findings import NO_ROWS
from loader.spark.repeats import by_bundle, parts, repeats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from loader.spark.findings import Found

_WHOLE = pa.struct(
    [
        *((name, pa.int64()) for name in ("rows", "bad", "bare", "plain_bytes", "packed_bytes")),
        *((name, pa.string()) for name in ("corrupt", "unreadable")),
    ]
)
_WHOLE_DDL = (
    "STRUCT<rows: BIGINT, bad: BIGINT, bare: BIGINT, plain_bytes: BIGINT, packed_bytes: BIGINT,"
    " corrupt: STRING, unreadable: STRING>"
)
_LINES = pa.list_(pa.int32())
_BUNDLE = [("bundle", pa.int32()), ("whole", _WHOLE), ("bad", _LINES)]
_BUNDLE_DDL = f"bundle INT, whole {_WHOLE_DDL}, bad ARRAY<INT>"

DEALT = f"part INT, keys BINARY, {_BUNDLE_DDL}"
"""Either a bundle, or the keys of good rows of one part: `Found.rows` as bytes."""
MARKED = f"{_BUNDLE_DDL}, repeated ARRAY<INT>, renewed BIGINT"
"""A bundle with its results and bad lines, or with what one part says of its good lines."""
_DEALT = pa.schema([("part", pa.int32()), ("keys", pa.binary()), *_BUNDLE])
_MARKED = pa.schema([*_BUNDLE, ("repeated", _LINES), ("renewed", pa.int64())])
_PARTS_PER_PARTITION = 4
"""Spark puts parts into partitions by a hash; with several each, partitions have similar sizes."""


def dealt(found: Found, partitions: int) -> pa.RecordBatch:
    """Return findings as Spark distributes them; the columns are `DEALT`."""
    count = 1 if partitions == 1 else _PARTS_PER_PARTITION * partitions
    lines: list[dict[str, object]] = [
        {"part": number, "keys": rows.tobytes()} for number, rows in parts(found.rows, count)
    ]
    lines += [
        {
            "part": bundle.number % count,
            "bundle": bundle.number,
            "whole": asdict(bundle.whole),
            "bad": list(bundle.bad),
        }
        for bundle in found.bundles
    ]
    return pa.RecordBatch.from_pylist(lines, _DEALT)


def marked(found: DataFrame, partitions: int) -> DataFrame:
    """Find repeated rows, and rows whose Filename occurs with different contents.

    See `repeats.repeats`.  The result has no line for what is as it should be, and is small enough
    to cache.

    Args:
        found: what `dealt` returned; the columns are `DEALT`.
        partitions: how many tasks look for repeated rows, the number that `dealt` was given.
    """
    return found.repartition(partitions, "part").mapInArrow(look_for_repeats, MARKED)


def look_for_repeats(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Look for repeated rows in all that one partition has."""
    keys: list[bytes] = []
    for batch in batches:
        keys += batch["keys"].drop_null().to_pylist()
        bundles = batch.filter(batch["bundle"].is_valid())
        nothing = [pa.nulls(len(bundles), kind) for kind in (_LINES, pa.int64())]
        columns = [bundles[name] for name, _ in _BUNDLE]
        yield pa.RecordBatch.from_arrays([*columns, *nothing], schema=_MARKED)
    rows = np.frombuffer(b"".join(keys), "<i8").reshape(-1, NO_ROWS.shape[1])
    found = repeats(rows)
    lines: list[dict[str, object]] = [
        {"bundle": bundle, "repeated": lines} for bundle, lines in by_bundle(found.repeated)
    ]
    lines += [{"bundle": b, "renewed": len(lines)} for b, lines in by_bundle(found.renewed)]
    yield pa.RecordBatch.from_pylist(lines, _MARKED)


def results(rows: DataFrame) -> DataFrame:
    """Return the results of bundles without their lines; what parts say is not summed up."""
    repeated = F.coalesce(F.array_size("repeated"), F.lit(0)).alias("repeated")
    return rows.select(
        "bundle", "whole", repeated, F.coalesce("renewed", F.lit(0)).alias("renewed")
    )


def unwanted(rows: DataFrame) -> DataFrame:
    """Return the bad lines and the repeated lines of each bundle, in order."""
    found = [
        F.sort_array(F.flatten(F.collect_list(lines))).alias(lines) for lines in ("bad", "repeated")
    ]
    return rows.groupBy("bundle").agg(*found)


def to_write(bundles: DataFrame, unwanted_lines: DataFrame) -> DataFrame:
    """Add the unwanted lines, if any, to each bundle for which something must be written."""
    return bundles.join(unwanted_lines, "bundle", "left").select("bundle", "bad", "repeated")
