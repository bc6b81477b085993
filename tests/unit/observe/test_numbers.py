"""Histograms, minutes and the survey."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from jostler.agent.observe.histogram import STORED_S, Histogram
from jostler.agent.observe.history import MINUTES_KEPT, STEP_S, History, Totals
from jostler.agent.observe.survey import Survey

if TYPE_CHECKING:
    from pathlib import Path

values = st.lists(st.floats(0, 1e9, allow_nan=False))
bounds = st.lists(st.floats(0, 1e9, allow_nan=False), min_size=1, unique=True).map(sorted)


@given(bounds, st.lists(values))
def test_a_bucket_counts_what_does_not_exceed_its_bound(
    limits: list[float], batches: list[list[float]]
) -> None:
    """However the values come, and the last bucket counts all."""
    histogram = Histogram(limits)
    for batch in batches:
        histogram.add(iter(batch))
    everything = [value for batch in batches for value in batch]
    expected = [float(sum(value <= limit for value in everything)) for limit in limits]
    assert [count for _, count in histogram.buckets()] == [*expected, float(len(everything))]
    assert histogram.buckets()[-1][0] == "+Inf"
    assert histogram.count == len(everything)


moments = st.integers(-(10**15), 10**15) | st.sampled_from([0, 1, -1, 10**9, 10**9 + 1])


@given(st.lists(st.lists(moments)), st.integers(0, 2 * 10**18))
def test_seconds_since_many_moments_are_counted_as_one_by_one(
    batches: list[list[int]], now_ns: int
) -> None:
    """In the same buckets, to the nanosecond; a moment that is yet to come counts as 0."""
    together, alone = Histogram(STORED_S), Histogram(STORED_S)
    for ages_ns in batches:
        together.add_since(now_ns, (now_ns - age_ns for age_ns in ages_ns))
        for age_ns in ages_ns:
            alone.add([max(0, age_ns) / 1e9])
    assert together.buckets() == alone.buckets()
    assert together.count == alone.count
    assert math.isclose(together.sum, alone.sum, rel_tol=1e-9)


def test_a_copy_of_a_histogram_stays_as_it_is() -> None:
    """What a reader holds is not changed under its eyes."""
    histogram = Histogram([1.0])
    histogram.add([0.5])
    copy = histogram.copy()
    histogram.add([0.5, 2.0])
    assert (copy.count, copy.sum) == (1, 0.5)


def test_each_minute_has_what_came_in_it() -> None:
    """Sums go in, differences come out; a minute without a call has nothing."""
    history = History(0.0, 1000.0)
    first = Totals(arrived=10, archived=4, file_bytes=100, stored_files=4, stored_s=8.0)
    assert history.note(59.0, 1059.0, first, 1).minutes == ()
    (minute,) = history.note(60.0, 1060.0, first, 6).minutes
    assert minute == (10, 4, 100, 6, 2.0)
    later = history.note(181.0, 1181.0, first._replace(arrived=15), None)
    assert [m.arrived for m in later.minutes] == [10, 5, 0]
    assert [m.stored_s for m in later.minutes] == [2.0, None, None]
    assert later.end_s == 1181.0


def test_the_history_is_bounded_even_after_a_long_sleep() -> None:
    """A machine that slept for a year does not count its minutes one by one."""
    history = History(0.0, 0.0)
    history.note(STEP_S, 0.0, Totals(), None)
    kept = history.note(365 * 86_400.0, 0.0, Totals(arrived=3), None)
    assert len(kept.minutes) <= MINUTES_KEPT
    assert sum(minute.arrived for minute in kept.minutes) == 3


def survey(spool: Path, held: set[str]) -> Survey:
    return Survey(str(spool), ["foo1", "bar1"], lambda n: n.endswith(".json"), held.__contains__)


def test_the_survey_counts_what_waits_and_since_when(tmp_path: Path) -> None:
    """Not what a bundle holds, nor hidden names, nor names that are not wanted."""
    day = tmp_path / "foo1/2026/01/02"
    day.mkdir(parents=True)
    for name in ("a.json", "held.json", "x.txt", ".hidden.json"):
        (day / name).write_bytes(b"12345")
    (tmp_path / "foo1/.jostler").mkdir()
    (tmp_path / "foo1/.jostler/y.json").touch()
    before_s = time.time()
    found = survey(tmp_path, {"foo1/2026/01/02/held.json"}).look()
    waiting = found.waiting["foo1"]
    assert (waiting.files, waiting.bytes) == (1, 5)
    assert abs(waiting.oldest_s - before_s) < 60
    assert found.waiting["bar1"].files == 0
    assert found.size_bytes >= found.free_bytes > 0


def test_a_file_that_was_moved_in_late_waits_only_since_then(tmp_path: Path) -> None:
    """Its own times may be years old: the spool has it since the rename."""
    day = tmp_path / "foo1/2026/01/02"
    day.mkdir(parents=True)
    (tmp_path / "old.json").write_bytes(b"{}")
    os.utime(tmp_path / "old.json", (1, 1))
    (tmp_path / "old.json").rename(day / "old.json")
    waiting = survey(tmp_path, set()).look().waiting["foo1"]
    assert time.time() - waiting.oldest_s < 60


def test_a_spool_that_is_not_there_gives_no_error(tmp_path: Path) -> None:
    """The survey is made again; the watcher says what it cannot read."""
    found = survey(tmp_path / "nowhere", set()).look()
    assert found.waiting["foo1"].files == 0
    assert (found.free_bytes, found.size_bytes) == (0, 0)
