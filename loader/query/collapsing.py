"""Find the rows that repeat the body before them, as several collectors of a feed save them.

**Invariant:** which rows these are follows from the index alone, by the rules of
`jostler.archive.repeats`; a bundle without index keeps all of its rows.

The driver reads the indexes, those of one day at a time in memory: what is a repeat depends on all
nodes of a day, and on the last row of the day before.
"""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from jostler.archive.repeats import Repeats, kept_of_day
from loader.bucket import open_bucket
from loader.errors import BucketError
from loader.query.fetching import index_files
from loader.spark.gunzip import CorruptError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.archive.files import File
    from loader.query.scan import Bundle

READERS = 8


def without_repeats(bundles: Iterable[Bundle], patience_s: float) -> list[Bundle]:
    """Return the bundles with the lines to leave out.

    Args:
        bundles: by day.
        patience_s: how long a failing request is retried.

    Raises:
        BucketError: an index cannot be read.
    """

    def read(bundle: Bundle) -> list[File]:
        if not bundle.index:
            return []
        try:
            packed = open_bucket(bundle.bucket, patience_s).read(
                bundle.index, bundle.index_generation
            )
            return index_files(packed, bundle)
        except CorruptError as exc:
            raise BucketError(f"{bundle.bucket}/{bundle.index}: {exc}") from exc

    repeats = Repeats()
    found: list[Bundle] = []
    with ThreadPoolExecutor(READERS, thread_name_prefix="index") as pool:
        for _, same_day in groupby(bundles, key=lambda bundle: bundle.day):
            day = list(same_day)
            files = list(pool.map(read, day))
            kept = kept_of_day((file for part in files for file in part), repeats)
            dropped: dict[str, set[int]] = defaultdict(set)
            for bundle, part in zip(day, files, strict=True):
                dropped[bundle.url] |= {one.line for one in part if one.position not in kept}
            found += [replace(one, dropped=frozenset(dropped[one.url])) for one in day]
    return found
