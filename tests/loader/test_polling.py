"""When a load job is asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loader.bigquery.polling import FIRST_S, MOST_S, Polling


def questions(polling: Polling, takes_s: float) -> int:
    """Ask for a job until it has ended, as the warehouse does; return how often."""
    now_s, count = 0.0, 1
    wait_s, again_s = polling.waits()
    now_s += wait_s
    while now_s < takes_s:
        now_s, again_s, count = now_s + again_s, min(MOST_S, again_s * 1.5), count + 1
    polling.note(now_s)
    return count


def test_jobs_that_take_as_long_as_others_are_asked_for_about_twice() -> None:
    polling = Polling()
    asked = [questions(polling, 3.0) for _ in range(100)]

    assert asked[0] > 3
    assert sum(asked[20:]) / 80 < 2.5


@given(st.lists(st.floats(0, 1e4), max_size=20))
def test_waits_are_bounded(durations: list[float]) -> None:
    polling = Polling()
    for spent_s in durations:
        polling.note(spent_s)

    assert all(FIRST_S <= wait_s <= MOST_S for wait_s in polling.waits())
