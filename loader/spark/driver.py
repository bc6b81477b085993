"""Verify a small wave in the driver's own threads: what `engine` does, without Spark.

**Invariant:** it calls the functions that executors call, and gives the results that Spark would
give.  Repeated rows are found by the same function, here in one list.

Starting Spark takes some seconds, more than the bundles of an hourly run take to be read.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from loader.spark.choice import choose, count, note_written, summed
from loader.spark.findings import NO_ROWS, Found
from loader.spark.repeats import by_bundle, repeats
from loader.spark.rewrite import written
from loader.spark.verify import verified

if TYPE_CHECKING:
    from loader.spark.choice import BundleResult
    from loader.spark.repeats import Repeats
    from loader.spark.rewrite import Copy
    from loader.spark.verify import Task
    from loader.spark.wave import Wave

THREADS = 2
"""Each has four more that read ahead; decompressing and the native judge run at the same time."""
ROWS_MAX = 2_000_000
"""Of more rows Spark finds the repeated ones: 100 bytes each would be too much for the driver."""


class TooManyRowsError(Exception):
    """The wave has more rows than the driver may hold."""


def run(wave: Wave, *, max_bad: float, patience_s: float) -> None:
    """Verify the days of a wave, and write to staging what their load jobs need.

    Args:
        wave: the wave; the results are stored in its days.
        max_bad: the largest fraction of bad rows with which a day is loaded.
        patience_s: how long a failing request to a bucket is retried.

    Raises:
        TooManyRowsError: nothing is stored or written.
    """
    with ThreadPoolExecutor(THREADS, thread_name_prefix="verify") as pool:
        parts = pool.map(lambda group: _found(group, wave, patience_s), wave.groups(1))
        found = _together([some for part in parts for some in part])
        if len(found.rows) > ROWS_MAX:
            raise TooManyRowsError
        repeated = repeats(found.rows)
        bundles = per_bundle(found, repeated)
        for bundle in bundles:
            count(wave, bundle)
        copies = choose(wave, bundles, max_bad, rejects=True)
        wanted = to_write(copies, found, repeated)
        done = pool.map(
            lambda one: list(written(iter([one]), copies, wave.tables, patience_s)), wanted
        )
        for batches in done:
            for batch in batches:
                for one in batch.to_pylist():
                    note_written(wave, copies, one["bundle"], one["rejects"], one["problem"])


def _found(group: list[Task], wave: Wave, patience_s: float) -> list[Found]:
    found = []
    rows = 0
    for some in verified(group, wave.tables, patience_s):
        rows += len(some.rows)
        if rows > ROWS_MAX:
            raise TooManyRowsError
        found.append(some)
    return found


def _together(found: list[Found]) -> Found:
    rows = np.concatenate([NO_ROWS, *(some.rows for some in found)])
    return Found(rows, [bundle for some in found for bundle in some.bundles])


def per_bundle(found: Found, repeated: Repeats) -> list[BundleResult]:
    """Return the result of each bundle, in order."""
    return summed(
        ((bundle.number, asdict(bundle.whole)) for bundle in found.bundles),
        *(
            {bundle: len(lines) for bundle, lines in by_bundle(positions)}
            for positions in (repeated.repeated, repeated.renewed)
        ),
    )


def to_write(copies: dict[int, Copy], found: Found, repeated: Repeats) -> list[pa.RecordBatch]:
    """Return bad and repeated lines of each bundle for which objects must be written."""
    bad = {bundle.number: list(bundle.bad) for bundle in found.bundles}
    again = {bundle: lines.tolist() for bundle, lines in by_bundle(repeated.repeated)}
    return [
        pa.RecordBatch.from_pydict(
            {"bundle": [bundle], "bad": [bad[bundle]], "repeated": [again.get(bundle, [])]}
        )
        for bundle in copies
    ]
