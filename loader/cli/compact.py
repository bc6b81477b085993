"""The command `jostler-load compact`: merge the small bundles of past days.

**Invariant:** the exit status is 0 only if nothing had to be left alone but what has a form that is
not merged.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.format.urls import masked
from jostler.words import counted
from loader.cli import metrics
from loader.cli.compact_options import parse
from loader.cli.console import Console, size
from loader.compacting import Compactor, Report, left_by_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loader.cli.compact_options import CompactOptions

OK, NOT_ALL = 0, 1
LEFT_SHOWN = 20


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status.

    Raises:
        UsageError: wrong options.
        LoaderError: nothing could be done.
    """
    return command(parse(argv, os.environ, datetime.now(UTC).date()), Console())


def command(options: CompactOptions, console: Console) -> int:
    """Compact, or print what would be done; return the exit status.

    Raises:
        LoaderError: nothing could be done.
    """
    compactor = Compactor(options, console)
    if options.dry_run:
        return _dry_run(compactor, console, ", and about as much then" * (not options.compression))
    began_s = time.monotonic()
    report = compactor.run()
    _summary(report, console, time.monotonic() - began_s)
    if options.metrics:
        try:
            registry = metrics.of_compaction(report, time.time(), time.monotonic() - began_s)
            metrics.write(options.metrics, registry, job="jostler-compact")
        except OSError as exc:
            shown = masked(options.metrics) if "@" in options.metrics else options.metrics
            console.event("metrics.not_written", "warning", url=shown, error=str(exc))
    return OK if report.well else NOT_ALL


def _dry_run(compactor: Compactor, console: Console, then: str) -> int:
    """Print objects and bytes of each group, and `then` of the bytes after.

    Repeats are those of feeds.
    """
    planned = compactor.divided(compactor.plan())
    rows = [
        (
            f"{url}/{group.place.root}",
            group.datatype,
            group.day.iso,
            len(group.members),
            group.objects,
            2,
            size(group.total_bytes),
            repeats,
        )
        for url, group, repeats in planned
    ]
    if rows:
        head = ("place", "datatype", "day", "bundles", "objects before", "after", "size", "repeats")
        console.table(head, rows)
    for problem in compactor.report.problems:
        console.result(problem)
    before = sum(group.objects for _, group, _ in planned)
    total = size(sum(group.total_bytes for _, group, _ in planned))
    console.result(
        f"{counted(len(planned), 'merge')}: {before} objects would become {2 * len(planned)},"
        f" of {total} now{then}; nothing was touched"
    )
    return NOT_ALL if compactor.report.problems else OK


def _summary(report: Report, console: Console, spent_s: float) -> None:
    problems = [one for one in report.left if one.reason in {"damaged", "no-index", "failed"}]
    for one in problems[:LEFT_SHOWN]:
        console.result(f"{one.url}: left alone: {one.why}")
    if len(problems) > LEFT_SHOWN:
        console.result(f"and {len(problems) - LEFT_SHOWN} bundles more that were left alone")
    for problem in report.problems:
        console.result(problem)
    done = report.done
    collapsed = sum(one.collapsed for one in done)
    more = f", {collapsed:,} repeats of feeds left out" if collapsed else ""
    objects = [sum(getattr(one, f"objects_{when}") for one in done) for when in ("before", "after")]
    sizes = [sum(getattr(one, f"bytes_{when}") for one in done) for when in ("before", "after")]
    left = ", ".join(f"{n} {why}" for why, n in sorted(left_by_reason(report.left).items()))
    repeats = counted(sum(one.repeats for one in done), "repeated row")
    console.result(
        f"{counted(len(done), 'merge')}: {objects[0]} objects became {objects[1]},"
        f" {size(sizes[0])} became {size(sizes[1])}, {repeats} left out{more};"
        f" left alone: {left or 'none'}; {spent_s:.1f} s"
    )
