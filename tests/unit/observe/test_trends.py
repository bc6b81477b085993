"""Shares of bad files, and when the disk is full."""

from __future__ import annotations

import math

import pytest

from jostler.agent.observe.health import rejects_level
from jostler.agent.observe.problem import Level
from jostler.agent.observe.shares import KEPT_S, RECENT_S, STEP_S, Share, ShareHistory, Shares
from jostler.agent.observe.trend import Trend

GIB = 1 << 30


@pytest.mark.parametrize(
    ("recent", "before", "level"),
    [
        (Share(5, 1), Share(), Level.OK),  # a single one
        (Share(10_000, 2), Share(), Level.OK),
        (Share(0, 3), Share(), Level.BAD),  # all of a service that writes little
        (Share(100, 100), Share(), Level.BAD),
        (Share(297, 3), Share(), Level.ATTENTION),  # one in a hundred
        (Share(298, 2), Share(), Level.OK),
        (Share(10_000, 50), Share(50_000, 250), Level.OK),  # one in two hundred, as ever
        (Share(10_000, 50), Share(50_000, 50), Level.ATTENTION),  # five times as many
        (Share(10_000, 50), Share(50, 0), Level.OK),  # nothing to compare with
        (Share(10_000, 9), Share(50_000, 0), Level.OK),  # too few to say
        (Share(0, 0), Share(50_000, 10_000), Level.OK),  # over
    ],
)
def test_rejects_ask_for_attention_by_their_share_and_its_change(
    recent: Share, before: Share, level: Level
) -> None:
    """Not for a single one in an hour."""
    assert rejects_level(Shares(recent, before)) is level


def test_shares_are_of_the_last_hour_and_of_the_hours_before() -> None:
    """Sums go in; what is older than six hours is forgotten."""
    history = ShareHistory()
    for minute in range(8 * 60):
        bad = max(0, minute - 7 * 60 - 30)  # one a minute in the last half hour
        shares = history.note(minute * 60.0, {"foo1": Share(minute * 10, bad)})["foo1"]
    assert abs(shares.recent.good - 600) <= STEP_S / 6
    assert (shares.recent.bad, shares.before.bad) == (29, 0)
    assert abs(shares.before.good - (KEPT_S - RECENT_S) / 6) <= STEP_S / 6


def test_a_disk_that_fills_says_when_it_is_full() -> None:
    """By the last hour, after five minutes; however the values scatter."""
    trend = Trend()
    for second in range(0, 7200, 5):
        left_s = trend.full_in_s(float(second), 100 * GIB - second * GIB // 100)
        if second < 300:
            assert math.isinf(left_s)
    assert left_s == pytest.approx((100 - 72) * 100, rel=0.05)


@pytest.mark.parametrize("per_second", [0, 1, GIB])
def test_a_disk_that_does_not_fill_is_never_full(per_second: int) -> None:
    """Nor one that would last for months."""
    trend = Trend()
    found = {trend.full_in_s(float(s), 500 * GIB + s * per_second) for s in range(0, 4000, 10)}
    found |= {Trend().full_in_s(0.0, GIB)}
    assert found == {math.inf}
