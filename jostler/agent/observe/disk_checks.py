"""The health checks of the spool's disk: how full it is, how fast it fills, and what that cost.

**Invariant:** `disk_lack` and `files_given_up` are about the agent's own limit, -min-free-disk;
`disk_low` and `disk_fills` are found whether it has one or not.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.agent.observe.problem import HOUR_S, Facts, Level, Problem, files_of
from jostler.config import DiskLackAction
from jostler.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

LOW_DISK = 0.1
LOWEST_DISK = 0.05
GIVEN_UP_S = HOUR_S
FILLS_S = 24 * HOUR_S
FILLS_SOON_S = 4 * HOUR_S


def disk_problems(facts: Facts) -> Iterator[Problem]:
    """Run the checks, those first that tell of what is lost."""
    yield from _given_up(facts)
    yield from _lack(facts)
    yield from _disk(facts)
    yield from _fills(facts)


def _lack(facts: Facts) -> Iterator[Problem]:
    """Report that the agent's own limit, -min-free-disk, is passed, and what it does now."""
    disk = facts.snapshot.now.disk if facts.snapshot.now else None
    if disk and disk.lacks:
        does, hint = _LACK[disk.action]
        yield Problem(
            code="disk_lack",
            level=Level.ATTENTION if disk.action is DiskLackAction.FLUSH else Level.BAD,
            since_s=disk.since_s,
            text=f"The spool's disk has less free than -min-free-disk, {disk.limit},"
            f" and a quarter: {does}",
            hint=hint,
        )


_LACK = {
    DiskLackAction.FLUSH: (
        "bundles are sealed early",
        "Nothing is lost. Find what fills the disk; if it is to be so, lower -min-free-disk.",
    ),
    DiskLackAction.STOP: (
        "services are told to stop by .jostler/FULL",
        "Free disk space: what services do not measure now is lost.",
    ),
    DiskLackAction.REMOVE_OLDEST: (
        "bundles are sealed early, and if uploads fail, the oldest files are given up",
        "Repair uploads if they fail; otherwise free disk space.",
    ),
}


def _given_up(facts: Facts) -> Iterator[Problem]:
    disk = facts.snapshot.now.disk if facts.snapshot.now else None
    if disk and disk.given_up_s and facts.now_s - disk.given_up_s < GIVEN_UP_S:
        given_up = facts.snapshot.tally.given_up
        yield Problem(
            code="files_given_up",
            level=Level.BAD,
            since_s=disk.given_up_s,
            text=f"The disk was full: {files_of(given_up.total())} were given up unsent since the"
            " agent's start",
            hint="Repair uploads or free disk space. rejected1 lists these files, with the reason"
            " disk-lack.",
            datatypes=tuple(sorted(given_up)),
        )


def _disk(facts: Facts) -> Iterator[Problem]:
    free, size = facts.disk.free_bytes, facts.disk.size_bytes
    if size and free < LOW_DISK * size:
        yield Problem(
            code="disk_low",
            level=Level.BAD if free < LOWEST_DISK * size else Level.ATTENTION,
            since_s=0.0,
            text=f"The spool's file system has {free * 100 // size} % left, {free:,} bytes",
            hint="If uploads fail, repair them; otherwise free disk space. Services cannot write "
            "to a full disk.",
        )


def _fills(facts: Facts) -> Iterator[Problem]:
    left_s = facts.disk.full_in_s
    if left_s < FILLS_S:
        yield Problem(
            code="disk_fills",
            level=Level.BAD if left_s < FILLS_SOON_S else Level.ATTENTION,
            since_s=0.0,
            text=f"The spool's disk is full in {duration(left_s)}, if it fills as in the last hour",
            hint="If uploads fail, repair them; otherwise find what fills the disk.",
        )
