"""Run what the options select: load, print the plan, or compare.

**Invariant:** the exit status is 0 only if every selected day is as it should be.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jostler.format.urls import masked
from loader.bigquery.record import VERIFIED
from loader.cli import metrics
from loader.cli.console import Console, size
from loader.errors import LoaderError
from loader.plan.due import Status
from loader.run import Loader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import CollectorRegistry

    from loader.bigquery.record import Outcome
    from loader.cli.options import Options
    from loader.loading import Waited


def command(options: Options, loader: Loader | None = None, console: Console | None = None) -> int:
    """Run what the options select; return the exit status.

    Args:
        options: what to do.
        loader: the loader to use; None for one that verifies with Spark.
        console: shows the result.

    Raises:
        LoaderError: nothing could be done.
    """
    console = console or Console()
    loader = loader or Loader(options, console)
    try:
        if options.dry_run:
            return _dry_run(loader, options, console)
        if options.verify_only:
            return _verify_only(loader, options, console)
        return _load(loader, options, console)
    finally:
        loader.close()


def _load(loader: Loader, options: Options, console: Console) -> int:
    """Load all due days and print the result."""
    began = time.monotonic()
    try:
        outcomes = loader.run()
    except LoaderError:
        _measure(loader, options, console, [], time.monotonic() - began, well=False)
        raise
    problems = loader.planner.problems
    spent_s = time.monotonic() - began
    _summary(outcomes, problems, console, spent_s, loader.waited)
    good = {Status.SUCCESS, Status.SKIPPED}
    if loader.not_begun:
        console.result(
            f"ended before its time: {len(loader.not_begun)} days are left to the next run"
        )
    well = not problems and not loader.not_begun and all(o.status in good for o in outcomes)
    _measure(loader, options, console, outcomes, spent_s, well=well)
    return 0 if well else 1


def _measure(
    loader: Loader,
    options: Options,
    console: Console,
    outcomes: list[Outcome],
    spent_s: float,
    *,
    well: bool,
) -> None:
    """Write the run's metrics if --metrics is given."""
    if not options.metrics:
        return
    facts = metrics.Facts(
        outcomes=outcomes,
        tables=loader.planner.datatypes,
        period=options.period,
        well=well,
        ended_s=time.time(),
        spent_s=spent_s,
        told=loader.outbox.told,
        waited_s={name: one.first_s for name, one in loader.waited.items()},
    )
    registry = metrics.of_load(facts, metrics.last_success_s(options.metrics))
    _leave(options.metrics, registry, console, job="jostler-load", period=options.period)


def _leave(url: str, registry: CollectorRegistry, console: Console, **group: str) -> None:
    try:
        metrics.write(url, registry, **group)
    except OSError as exc:
        shown = masked(url) if url.startswith("http") else url  # it may have a password
        console.event("metrics.not_written", "warning", url=shown, error=str(exc))


def _dry_run(loader: Loader, options: Options, console: Console) -> int:
    """Print which days would be loaded, and why."""
    planner = loader.planner
    due, refusals = planner.plan(planner.look(planner.discover()), options.force, take=True)
    due = planner.within_quota(due)
    rows = [
        (
            str(day.table.name),
            day.date,
            len(day.bundles),
            size(day.size_bytes),
            day.reason,
        )
        for day in sorted(due, key=lambda day: day.key)
    ]
    rows += [
        (str(r.day.table.name), r.day.date, len(r.day.bundles), size(r.day.size_bytes), r.why)
        for r in refusals
    ]
    console.table(("table", "day", "bundles", "size", "reason"), rows)
    for what, why in planner.problems:
        console.result(f"{what}: {why}")
    for one in loader.outbox.receivers.values():
        console.result(f"{one} would be told of each of them")
    total = size(sum(day.size_bytes for day in due))
    console.result(f"{len(due)} days would be loaded, {total}; nothing was touched")
    return 1 if refusals or planner.problems else 0


def _verify_only(loader: Loader, options: Options, console: Console) -> int:
    """Compare index, bundles and BigQuery; print the differences."""
    found = loader.compare()
    problems = loader.planner.problems
    for difference in found.differences:
        console.result(difference)
    for what, why in problems:
        console.result(f"{what}: {why}")
    console.result(
        f"{found.bundles} bundles compared with their index, {found.rows} rows with BigQuery:"
        f" {len(found.differences)} differences"
    )
    if options.metrics:
        registry = metrics.of_comparison(len(found.differences))
        _leave(options.metrics, registry, console, job="jostler-verify")
    return 1 if found.differences or problems else 0


def _summary(
    outcomes: list[Outcome],
    problems: list[tuple[str, str]],
    console: Console,
    spent_s: float,
    waited: Mapping[str, Waited],
) -> None:
    head = ("table", "day", "status", "read", "loaded", "rejected", "repeated", "why")
    rows = [
        (
            str(o.day.table.name),
            o.day.date,
            o.status,
            o.rows,
            o.loaded,
            o.rejected,
            o.repeated,
            o.why or o.day.reason,
        )
        for o in sorted(outcomes, key=lambda o: o.day.key)
    ]
    if rows:
        console.table(head, rows)
    for what, why in problems:
        console.result(f"{what}: {why}")
    count = {status: sum(o.status is status for o in outcomes) for status in Status}
    read = {name: sum(getattr(o, name) for o in outcomes) for name in VERIFIED}
    if any(read.values()):
        bundles = ", ".join(f"{number} {name}" for name, number in read.items())
        console.result(f"bundles: {bundles}")
    for name, one in sorted(waited.items()):
        console.result(
            f"waited: {name} {one.first_s:.1f} s for the first, {one.last_s:.1f} s for the last"
            f" of {one.days} days to begin"
        )
    summary = ", ".join(f"{number} {status}" for status, number in count.items() if number)
    console.result(f"{summary or 'nothing to do'}, {len(problems)} problems, {spent_s:.1f} s")
