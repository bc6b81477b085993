"""What the status says of the spool's disk: how bad it is, and since when."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from jostler.agent.low_disk import DiskView
from jostler.agent.observe.disk_checks import disk_problems
from jostler.agent.observe.problem import HOUR_S, Facts, Level
from jostler.agent.observe.survey import Surveyed
from jostler.config import DiskLackAction

if TYPE_CHECKING:
    from jostler.agent.observe.problem import Problem

NOW_S = 1_800_000_000.0
HALF = Surveyed(free_bytes=50, size_bytes=100)


def problems(view: DiskView | None = None, surveyed: Surveyed = HALF) -> dict[str, Problem]:
    snapshot = SimpleNamespace(
        now=SimpleNamespace(disk=view) if view else None,
        tally=SimpleNamespace(given_up=Counter({"foo1": 2, "bar1": 1})),
    )
    facts = Facts(
        now_s=NOW_S,
        still_s=0.0,
        started_s=0.0,
        waits_for="",
        snapshot=cast("Any", snapshot),
        uploads=cast("Any", None),
        disk=surveyed,
    )
    return {problem.code: problem for problem in disk_problems(facts)}


def test_a_disk_with_room_is_no_problem() -> None:
    assert problems() == problems(DiskView()) == problems(surveyed=Surveyed()) == {}


@pytest.mark.parametrize(
    ("action", "level", "said"),
    [
        (DiskLackAction.FLUSH, Level.ATTENTION, "bundles are sealed early"),
        (DiskLackAction.STOP, Level.BAD, "services are told to stop by .jostler/FULL"),
        (DiskLackAction.REMOVE_OLDEST, Level.BAD, "the oldest files are given up"),
    ],
)
def test_a_lack_is_as_bad_as_what_is_done_about_it(
    action: DiskLackAction, level: Level, said: str
) -> None:
    """In bytes or in inodes, whichever lacks."""
    view = DiskView(lacks=True, since_s=NOW_S - 5, action=action, limit="50 inodes")
    (problem,) = problems(view).values()
    assert (problem.code, problem.level, problem.since_s) == ("disk_lack", level, NOW_S - 5)
    assert "less free than -min-free-disk, 50 inodes, and a quarter: " in problem.text
    assert said in problem.text


@pytest.mark.parametrize(("ago_s", "told"), [(HOUR_S - 1, True), (HOUR_S, False)])
def test_files_that_were_given_up_are_told_for_an_hour(ago_s: float, *, told: bool) -> None:
    found = problems(DiskView(given_up_s=NOW_S - ago_s))
    assert list(found) == ["files_given_up"] * told
    for problem in found.values():
        assert (problem.level, problem.datatypes) == (Level.BAD, ("bar1", "foo1"))
        assert "3 files were given up unsent" in problem.text


@pytest.mark.parametrize(
    ("free", "level"), [(10, None), (9, Level.ATTENTION), (5, Level.ATTENTION), (4, Level.BAD)]
)
def test_a_disk_is_low_below_a_tenth_and_bad_below_a_twentieth(
    free: int, level: Level | None
) -> None:
    """Whatever the agent's own limit is."""
    found = problems(surveyed=Surveyed(free_bytes=free, size_bytes=100))
    assert [problem.level for problem in found.values()] == ([level] if level else [])


@pytest.mark.parametrize(
    ("hours", "level"), [(24, None), (23, Level.ATTENTION), (4, Level.ATTENTION), (3, Level.BAD)]
)
def test_a_disk_that_fills_is_told_a_day_before(hours: int, level: Level | None) -> None:
    surveyed = Surveyed(free_bytes=50, size_bytes=100, full_in_s=hours * HOUR_S)
    found = problems(surveyed=surveyed)
    assert [problem.level for problem in found.values()] == ([level] if level else [])
