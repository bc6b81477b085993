"""Verify a small wave in the driver's own threads: what `engine` does, without Spark.

**Invariant:** it calls the functions that executors call, and gives the results that Spark would
give.  What Spark's window finds, sorting finds here, as `steps.marked` has it.

Starting Spark takes some seconds, more than the bundles of an hourly run take to be read.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loader.spark.choice import BundleResult, choose, count, note_written
from loader.spark.findings import LINE_BITS, SCHEMA
from loader.spark.rewrite import written
from loader.spark.verify import verified

if TYPE_CHECKING:
    from loader.spark.rewrite import Copy
    from loader.spark.verify import Task
    from loader.spark.wave import Wave

THREADS = 2
"""Each has four more that read ahead; decompressing and the native judge run at the same time."""
ROWS_MAX = 2_000_000
"""Of more rows Spark finds the repeated ones: 100 bytes each would be too much for the driver."""
_LINE_MASK = (1 << LINE_BITS) - 1
_KEYS = ("name_key", "key_high", "key_low", "pos")


class TooManyRowsError(Exception):
    """The wave has more rows than the driver may hold."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Positions of rows, as in `findings`, in order."""

    bad: np.ndarray
    repeated: np.ndarray
    renewed: np.ndarray


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
        found = pa.Table.from_batches([batch for part in parts for batch in part], SCHEMA)
        if found.num_rows > ROWS_MAX:
            raise TooManyRowsError
        lines = marked(found)
        bundles = per_bundle(found, lines)
        for bundle in bundles:
            count(wave, bundle)
        copies = choose(wave, bundles, max_bad, rejects=True)
        wanted = to_write(copies, lines)
        done = pool.map(
            lambda one: list(written(iter([one]), copies, wave.tables, patience_s)), wanted
        )
        for batches in done:
            for batch in batches:
                for one in batch.to_pylist():
                    note_written(wave, copies, one["bundle"], one["rejects"], one["problem"])


def _found(group: list[Task], wave: Wave, patience_s: float) -> list[pa.RecordBatch]:
    batches = []
    rows = 0
    for batch in verified(group, wave.tables, patience_s):
        rows += batch.num_rows
        if rows > ROWS_MAX:
            raise TooManyRowsError
        batches.append(batch)
    return batches


def marked(found: pa.Table) -> Lines:
    """Find repeated rows, and rows whose Filename occurs with different contents.

    See `steps.marked`: the rows of one node and Filename, ordered by content and then by age.
    """
    good = found.filter(pc.is_valid(found["name_key"]))
    name, high, low, pos = (good[column].to_numpy() for column in _KEYS)
    # numpy.lexsort takes the last key for the first one to sort by.
    order = np.lexsort((pos, low, high, name))
    name, high, low, pos = name[order], high[order], low[order], pos[order]
    named = np.zeros(len(pos), np.bool_)
    named[1:] = name[1:] == name[:-1]
    same = named.copy()
    same[1:] &= (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    bad = found.filter(found["bad"])["pos"].to_numpy()
    return Lines(np.sort(bad), np.sort(pos[same]), np.sort(pos[named & ~same]))


def per_bundle(found: pa.Table, lines: Lines) -> list[BundleResult]:
    """Return the result of each bundle, in order."""
    whole = found.filter(pc.is_valid(found["whole"]))
    repeated, renewed = _counts(lines.repeated), _counts(lines.renewed)
    wholes = zip(whole["pos"].to_pylist(), whole["whole"].to_pylist(), strict=True)
    return [
        BundleResult(
            bundle=pos >> LINE_BITS,
            repeated=repeated.get(pos >> LINE_BITS, 0),
            renewed=renewed.get(pos >> LINE_BITS, 0),
            **facts,
        )
        for pos, facts in sorted(wholes, key=lambda one: one[0])
    ]


def _counts(positions: np.ndarray) -> dict[int, int]:
    bundles, counts = np.unique(positions >> LINE_BITS, return_counts=True)
    return dict(zip(bundles.tolist(), counts.tolist(), strict=True))


def to_write(copies: dict[int, Copy], lines: Lines) -> list[pa.RecordBatch]:
    """Return bad and repeated lines of each bundle for which objects must be written."""
    bad, repeated = _by_bundle(lines.bad), _by_bundle(lines.repeated)
    return [
        pa.RecordBatch.from_pydict(
            {"bundle": [bundle], "bad": [bad[bundle]], "repeated": [repeated[bundle]]}
        )
        for bundle in copies
    ]


def _by_bundle(positions: np.ndarray) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for pos in positions.tolist():
        found[pos >> LINE_BITS].append(pos & _LINE_MASK)
    return found
