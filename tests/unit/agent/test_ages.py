"""A step of the clock makes no file older."""

from __future__ import annotations

from jostler.agent.ages import Ages, Clock, Sightings
from jostler.bundle import FileState

HOUR_NS = 3600 * 10**9
NOW_NS = 1_790_000_000 * 10**9


class Times:
    """A machine's clocks: one that can be set, one that cannot."""

    def __init__(self) -> None:
        self.steady_ns = 5 * HOUR_NS
        self.wall_ns = NOW_NS

    def go_on(self, ns: int) -> None:
        self.steady_ns += ns
        self.wall_ns += ns

    def clock(self) -> Clock:
        return Clock(lambda: self.wall_ns, lambda: self.steady_ns)


def file_of(mtime_ns: int) -> FileState:
    return FileState(1, 7, mtime_ns, mtime_ns)


def test_a_file_written_just_before_a_step_is_not_old_after_it() -> None:
    """In either direction; one that was really old is late by the step at the most."""
    for step_ns in (3 * HOUR_NS, -3 * HOUR_NS):
        times = Times()
        clock = times.clock()
        young, old = file_of(times.wall_ns), file_of(times.wall_ns - 7 * HOUR_NS)
        times.go_on(HOUR_NS // 3600)
        times.wall_ns += step_ns
        ages = Ages(10.0, 3 * 3600.0, clock.others_ns())
        assert ages.until_missed_s(young, times.wall_ns) == 3 * 3600.0 - 1
        assert ages.until_settled_s(young, times.wall_ns) == 9.0
        assert ages.until_missed_s(old, times.wall_ns) <= 0
        assert ages.until_missed_s(file_of(times.wall_ns), times.wall_ns) == 3 * 3600.0


def test_a_clock_that_is_slowed_or_hastened_has_not_stepped() -> None:
    """Nor does one that steps all the time take more and more memory."""
    times = Times()
    clock = times.clock()
    for _ in range(100):
        times.go_on(10**9)
        times.wall_ns += 10**9
        assert clock.others_ns() == ()
    for _ in range(100):
        times.wall_ns += HOUR_NS
        others_ns = clock.others_ns()
    assert len(others_ns) <= 8
    assert others_ns[0] == -100 * HOUR_NS


def test_a_file_is_unchanged_since_it_was_first_seen_so() -> None:
    sightings = Sightings()
    assert sightings.unchanged_s("a", file_of(1), 100.0) == 0.0
    assert sightings.unchanged_s("a", file_of(1), 107.0) == 7.0
    assert sightings.unchanged_s("a", file_of(2), 108.0) == 0.0
    sightings.forget("a")
    assert sightings.unchanged_s("a", file_of(2), 200.0) == 0.0
