"""Retries: they wait longer, never give up, and wait for nothing but their own cause."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jostler.bundle.retry import LONE_S, STRIKES, Backoff, Retries
from jostler.log import EveryMinute


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_grow_up_to_the_cap(failures: int, chance: float) -> None:
    """Between half the ceiling and the ceiling, whatever the number of failures."""
    wait_s = Backoff(first_s=0.5, cap_s=60).wait_s(failures, chance)
    assert 0.25 <= wait_s <= 60


BUCKET, OTHER = "gs://bkt", "gs://other"


def test_one_job_tries_for_all_that_wait_for_the_same_cause() -> None:
    """And when it succeeds, all are tried at once."""
    retries = Retries()
    for name in ("a", "b", "c"):
        retries.failed(name, BUCKET, 0.0, 0.5)
    assert retries.due(0.1) == []
    assert retries.due(1.0) == ["a"]
    assert retries.due(1.0) == []  # it is being tried
    retries.failed("a", BUCKET, 1.0, 0.5)
    assert retries.due(60.0) == ["a"]

    retries.forget("a")
    retries.works(BUCKET)

    assert retries.due(60.0) == ["b", "c"]


def test_what_waits_for_one_cause_does_not_wait_for_another() -> None:
    """A bucket that is gone holds up those bundles that an old journal has for it."""
    retries = Retries()
    retries.failed("old", OTHER, 0.0, 0.5)
    assert not retries.fails({BUCKET, "journal"}, 0.0)
    retries.failed("new", BUCKET, 0.0, 0.5)
    assert retries.fails({BUCKET, "journal"}, 0.0)
    retries.forget("new")
    retries.works(BUCKET)
    assert not retries.fails({BUCKET, "journal"}, 0.0)
    assert len(retries) == 1


def test_a_job_that_fails_although_others_succeed_fails_alone() -> None:
    """It is tried again by itself, ever less often, and stops nothing."""
    retries = Retries()
    now_s = 0.0
    for _ in range(STRIKES + 1):
        retries.failed("odd", BUCKET, now_s, 0.5)
        retries.works(BUCKET)
        now_s += 60.0
        assert retries.due(now_s) == ["odd"]
    retries.failed("odd", BUCKET, now_s, 0.5)

    assert not retries.fails({BUCKET}, now_s)
    retries.works(BUCKET)
    assert retries.due(now_s) == []
    assert retries.due(now_s + 60.0) == ["odd"]


def test_a_failure_that_no_other_job_can_have_stops_nothing() -> None:
    """As that of a bundle whose index object is there with other bytes."""
    retries = Retries()
    retries.failed("odd", "odd", 0.0, 0.5)
    assert not retries.fails({BUCKET, "journal"}, 0.0)
    assert retries.due(60.0) == ["odd"]


def test_one_job_alone_does_not_stop_the_others_for_ever() -> None:
    """If nothing else is under way, it is not known whether anything else would fail."""
    retries = Retries()
    retries.failed("first", BUCKET, 0.0, 0.5)
    assert retries.fails({BUCKET}, LONE_S - 1)
    assert not retries.fails({BUCKET}, LONE_S)
    retries.failed("second", BUCKET, LONE_S, 0.5)
    assert retries.fails({BUCKET}, LONE_S)


def test_at_the_end_all_are_tried_at_once() -> None:
    """However long they would have waited."""
    retries = Retries()
    for _ in range(10):
        retries.failed("a", BUCKET, 0.0, 0.5)
    retries.failed("b", "b", 0.0, 0.5)
    retries.try_all_now()
    assert retries.due(0.0) == ["a", "b"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5)), max_size=30))
def test_whatever_happened_every_job_that_waits_is_tried_sooner_or_later(
    events: list[tuple[str, int]],
) -> None:
    """No job waits for ever for another one, or for a cause that nobody tries."""
    retries, now_s = Retries(), 0.0
    for name, what in events:
        now_s += 1.0
        if what < 3:
            retries.failed(name, (BUCKET, OTHER, name)[what], now_s, 0.5)
        elif what == 3:
            retries.forget(name)
        elif what == 4:
            retries.works(BUCKET)
        else:
            retries.due(now_s)
    for name in "abc":
        retries.failed(name, BUCKET, now_s, 0.5)
    tried: set[str] = set()
    for _ in range(5):
        now_s += 100.0
        for name in retries.due(now_s):
            tried.add(name)
            retries.forget(name)
            retries.works(BUCKET)
    assert tried == set("abc")
    assert len(retries) == 0


def test_a_repeating_message_is_let_through_once_a_period_with_its_count() -> None:
    """The first at once, the others counted."""
    limiter = EveryMinute(period_s=3600)
    assert [limiter.due("a") for _ in range(4)] == [1, 0, 0, 0]
    assert limiter.due("b") == 1
    assert [EveryMinute(period_s=0).due("a") for _ in range(2)] == [1, 1]
