"""The command `jostler-load index`: make the text index that jostler-query uses.

**Invariant:** nothing but token filters is written or removed.  The exit status is 0 only if each
bundle of the selected days has its filters.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from jostler.archive.compact_days import places_in
from jostler.errors import ConflictError, StorageError
from loader.bucket import open_bucket
from loader.cli.console import Console, size
from loader.cli.index_options import parse
from loader.errors import BucketError
from loader.query.text.listing import due
from loader.query.text.on_spark import index_bundles, indexed
from loader.spark import failure
from loader.spark.session import session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.storage import ObjectInfo, Storage
    from loader.cli.index_options import IndexOptions
    from loader.query.text.indexing import Indexed, IndexTask

OK, NOT_ALL = 0, 1
DRIVER_BYTES = 16 * 1024 * 1024
"""Up to this size of bundles, threads of this process do it: Spark would take longer to start."""
DRIVER_THREADS = 2
SHOWN = 20


@dataclass(slots=True)
class _Report:
    """What a run has done.

    Attributes:
        sums: of blocks, bytes and objects.
        problems: what failed, a sentence each.
    """

    sums: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status.

    Raises:
        UsageError: wrong options.
        LoaderError: nothing could be done.
    """
    return command(parse(argv, os.environ), Console())


def command(options: IndexOptions, console: Console) -> int:
    """Index what the options name; return the exit status."""
    report = _Report()
    tasks = [task for url in options.bucket for task in _listed(options, url, report)]
    for one in _done(options, console, tasks, report):
        if one.problem:
            report.problems.append(f"{one.url}: {one.problem}")
            continue
        report.sums["bundles"] += 1
        report.sums["blocks"] += one.blocks
        report.sums["plain"] += one.plain_bytes
        report.sums["filters"] += one.filter_bytes
    _print(report, console)
    return NOT_ALL if report.problems else OK


def _listed(options: IndexOptions, url: str, report: _Report) -> list[IndexTask]:
    """Return the bundles of a bucket that need filters; remove those of bundles that are gone."""
    tasks: list[IndexTask] = []
    known = 0
    try:
        storage = open_bucket(url, options.patience_s).storage
        for place in places_in(storage, options.api, options.experiment):
            for datatype in options.text:
                found = due(storage, place, datatype, options.first, options.last)
                tasks += found.tasks
                known += found.fresh + len(found.tasks)
                report.sums["fresh"] += found.fresh
                report.sums["removed"] += _removed(storage, found.lost)
    except (BucketError, StorageError) as exc:
        report.problems.append(f"{url}: {exc}")
        return tasks
    if not known:
        report.problems.append(f"{url}: no bundles of such experiments, datatypes and days")
    return tasks


def _removed(storage: Storage, lost: list[ObjectInfo]) -> int:
    removed = 0
    for info in lost:
        try:
            storage.remove(info.name, info.version)
            removed += 1
        except ConflictError:  # made again meanwhile
            continue
    return removed


def _done(
    options: IndexOptions, console: Console, tasks: list[IndexTask], report: _Report
) -> Iterator[Indexed]:
    if sum(task.size_bytes for task in tasks) <= DRIVER_BYTES:
        with ThreadPoolExecutor(DRIVER_THREADS, thread_name_prefix="index") as pool:
            yield from pool.map(partial(indexed, patience_s=options.patience_s), tasks)
        return
    with session(options.master, console.spark_line, light=True) as spark:
        try:
            yield from index_bundles(spark, tasks, options.patience_s)
        except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
            report.problems.append(f"Spark: {failure.cause(exc)}")


def _print(report: _Report, console: Console) -> None:
    for problem in report.problems[:SHOWN]:
        console.result(problem)
    if len(report.problems) > SHOWN:
        console.result(f"and {len(report.problems) - SHOWN} problems more")
    sums = report.sums
    console.result(
        f"{sums['bundles']} bundles indexed: {sums['blocks']} blocks,"
        f" {size(sums['plain'])} of rows,"
        f" {size(sums['filters'])} of filters; {sums['fresh']} had their index,"
        f" {sums['removed']} indexes of bundles that are gone were removed"
    )
