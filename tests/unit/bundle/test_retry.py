"""Retries: they wait longer, never give up by themselves, and end when the agent stops."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.bundle.retry import Backoff, StoppedError, Tries
from jostler.log import EveryMinute


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_grow_up_to_the_cap(failures: int, chance: float) -> None:
    """Between half the ceiling and the ceiling, whatever the number of failures."""
    wait_s = Backoff(first_s=0.5, cap_s=60).wait_s(failures, chance)
    assert 0.25 <= wait_s <= 60


def test_a_step_is_repeated_until_it_succeeds() -> None:
    """And while it fails, that can be asked."""
    tries = Tries(Backoff(first_s=0.001), threading.Event())
    left = [ValueError(), ValueError()]
    told: list[tuple[int, int]] = []

    def step() -> str:
        if left:
            raise left.pop()
        return "done"

    done = tries.until_done(step, (ValueError,), lambda _, n, __: told.append((n, tries.failing)))
    assert done == "done"
    assert told == [(1, 1), (2, 1)]
    assert tries.failing == 0


def test_other_errors_are_not_repeated() -> None:
    """Only what the caller names means "try again"."""
    tries = Tries(Backoff(), threading.Event())
    with pytest.raises(ZeroDivisionError):
        tries.until_done(lambda: 1 / 0, (ValueError,), lambda *_: None)
    assert tries.failing == 0


def test_a_stop_ends_the_tries() -> None:
    """Even in the middle of a long wait."""
    stop = threading.Event()
    tries = Tries(Backoff(first_s=3600, cap_s=3600), stop)

    def step() -> None:
        raise ValueError

    with pytest.raises(StoppedError):
        tries.until_done(step, (ValueError,), lambda *_: stop.set())
    assert tries.failing == 0


def test_a_repeating_message_is_let_through_once_a_period_with_its_count() -> None:
    """The first at once, the others counted."""
    limiter = EveryMinute(period_s=3600)
    assert [limiter.due("a") for _ in range(4)] == [1, 0, 0, 0]
    assert limiter.due("b") == 1
    assert [EveryMinute(period_s=0).due("a") for _ in range(2)] == [1, 1]
