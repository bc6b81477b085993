"""Experiments share the places of a run: none waits for another, and none holds too much."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.loading import Loading
from loader.plan.due import Asked, TableDay
from loader.plan.lanes import Lanes
from loader.spark.wave import Verified
from tests.loader.test_names_and_plan import a_table, bundle
from tests.loader.world import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

FIRST = date(2026, 1, 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bucket")


def days(place: Path, experiment: str, count: int, size: int = 1) -> list[TableDay]:
    table = a_table(place, experiment)
    return [
        TableDay(
            table=table,
            date=FIRST + timedelta(days=number),
            bundles=(bundle(),) * size,
            fingerprint="f",
        )
        for number in range(count)
    ]


def lanes(due: list[TableDay], *, most: int = 4, share: float = 0.5) -> Lanes[TableDay]:
    return Lanes(due, most=most, share=lambda _: share, most_bytes=1000)


def waves(found: Lanes[TableDay]) -> list[list[TableDay]]:
    """Take all waves that may begin now."""
    return list(iter(found.next_wave, []))


def names(wave: list[TableDay]) -> str:
    return "".join(day.table.experiment for day in wave)


def verify(found: Lanes[TableDay], wave: list[TableDay]) -> None:
    for day in wave:
        found.verified(day, day)
    found.ended_wave(wave[0].table.experiment)


def test_an_experiment_with_one_day_begins_beside_one_with_hundreds(place: Path) -> None:
    """And it is loaded although the other one has as much as it may have."""
    found = lanes([*days(place, "a", 300), *days(place, "b", 1)])

    begun = waves(found)

    assert [names(wave) for wave in begun] == ["aa", "b"]
    verify(found, begun[0])
    assert [experiment for experiment, _ in iter(found.next_load, None)] == ["a", "a"]
    assert found.next_load() is None
    verify(found, begun[1])
    assert [experiment for experiment, _ in iter(found.next_load, None)] == ["b"]


def test_alone_an_experiment_may_hold_all_places(place: Path) -> None:
    found = lanes(days(place, "a", 9))

    (wave,) = waves(found)

    assert len(wave) == 4
    verify(found, wave)
    assert len(list(iter(found.next_load, None))) == 4


def test_a_long_day_holds_up_no_wave_of_others(place: Path) -> None:
    """Only its own experiment waits for it: the other has wave after wave."""
    found = lanes([*days(place, "a", 3), *days(place, "b", 9)])
    first, second = waves(found)
    assert (names(first), names(second)) == ("aa", "bb")

    done = 0
    wave = second
    while wave:
        verify(found, wave)
        for experiment, _ in iter(found.next_load, None):
            found.loaded(experiment)
        done += len(wave)
        wave = found.next_wave()
        assert "a" not in names(wave)

    assert done == 9


def test_who_has_least_gets_the_next_free_place(place: Path) -> None:
    """Two with hundreds of days, and many with one: these have all begun when a few have ended."""
    many = [f"c{number}" for number in range(12)]
    due = [*days(place, "a", 300), *days(place, "b", 300)]
    due += [day for name in many for day in days(place, name, 1)]
    found = lanes(due)
    begun: list[str] = []
    for _ in range(4):
        for wave in waves(found):
            begun += [day.table.experiment for day in wave]
            verify(found, wave)
        for experiment, _ in iter(found.next_load, None):
            found.loaded(experiment)

    assert set(many) <= set(begun)


def test_each_experiment_has_its_own_share(place: Path) -> None:
    due = [*days(place, "a", 9), *days(place, "b", 9)]
    found: Lanes[TableDay] = Lanes(
        due, most=10, share={"a": 0.7, "b": 0.3}.__getitem__, most_bytes=1000
    )

    assert sorted(names(wave) for wave in waves(found)) == ["aaaaaaa", "bbb"]


def test_a_wave_is_bounded_in_bytes_and_never_empty(place: Path) -> None:
    due = [day for n in range(1, 5) for day in days(place, "a", n, size=n)[-1:]]
    found: Lanes[TableDay] = Lanes(due, most=9, share=lambda _: 1.0, most_bytes=30)
    sizes = []
    while wave := found.next_wave():
        sizes.append([day.size_bytes for day in wave])
        verify(found, wave)
    assert sizes == [[10, 20], [30], [40]]


def test_what_somebody_asked_for_begins_first_then_the_oldest(place: Path) -> None:
    from dataclasses import replace  # noqa: PLC0415 - used here alone

    due = days(place, "a", 5)
    asked = Asked(id="r", at=datetime(2026, 2, 1, tzinfo=UTC))
    due[3] = replace(due[3], requested=asked)

    (wave,) = waves(lanes(due, most=3))

    assert [day.date.day for day in wave] == [4, 1, 2]


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    most=st.integers(1, 6),
    share=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    choice=st.randoms(use_true_random=False),
)
def test_shares_hold_and_every_day_is_loaded_once_whatever_ends_first(
    place: Path, counts: list[int], most: int, share: float, choice: Random
) -> None:
    due = [day for n, count in enumerate(counts) for day in days(place, f"e{n}", count)]
    found = lanes(due, most=most, share=share)
    each = max(1, int(most * share))
    verifying: list[list[TableDay]] = []
    loading: list[tuple[str, TableDay]] = []
    ended: list[TableDay] = []
    while len(ended) < len(due):
        verifying += waves(found)
        loading += list(iter(found.next_load, None))
        assert len(loading) <= most
        assert sum(map(len, verifying)) <= most
        can = [("wave", n) for n in range(len(verifying))]
        can += [("load", n) for n in range(len(loading))]
        assert can, "nothing is at work, and days wait"
        kind, number = choice.choice(can)
        if kind == "wave":
            verify(found, verifying.pop(number))
            continue
        experiment, day = loading.pop(number)
        ended.append(day)
        found.loaded(experiment)
        held = [name for name, _ in loading]
        more = list(iter(found.next_load, None))
        loading += more
        for name in {name for name, _ in more}:
            others_wait = any(
                lane.unloaded for lane in found._lanes.values() if lane.experiment != name
            )
            now = held.count(name) + sum(taken == name for taken, _ in more)
            assert now <= each or not others_wait
    assert sorted(day.key for day in ended) == sorted(day.key for day in due)
    assert found.all_loading


@dataclass
class Service:
    """Loads days when it is let to, and notes in which order they began.

    Attributes:
        slow: experiments whose days wait for an event.
        begun: the experiment of each day that has begun.
    """

    slow: dict[str, threading.Event] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)

    def load(self, found: Verified, started: datetime) -> Future[Any]:
        del started
        name = found.day.table.experiment
        self.begun.append(name)
        if name in self.slow:
            assert self.slow[name].wait(20)
        future: Future[Any] = Future()
        future.set_result(found.day)
        return future


def test_threads_begin_days_as_the_lanes_say_and_stop_when_told(place: Path) -> None:
    """The slow experiment holds its half; the other is done before it goes on."""
    service = Service(slow={"a": threading.Event(), "b": threading.Event()})
    due = [*days(place, "a", 20), *days(place, "b", 6)]
    ended = threading.Event()
    found: Lanes[Any] = Lanes(due, most=4, share=lambda _: 0.5, most_bytes=1000)

    def verified(wave: list[TableDay]) -> list[Verified]:
        return [Verified(day=day) for day in wave]

    with Loading(found, verified, service.load, most=4, stop=ended.is_set) as loading:
        thread = threading.Thread(target=loading.run)
        thread.start()
        wait_until("all places are taken", lambda: len(service.begun) == 4)
        assert sorted(service.begun) == ["a", "a", "b", "b"]
        service.slow["b"].set()
        wait_until("the other has begun all", lambda: service.begun.count("b") == 6)
        wait_until("alone it holds all places", lambda: service.begun.count("a") == 4)
        ended.set()
        service.slow["a"].set()
        thread.join()

    assert service.begun.count("a") == 4
    assert len(loading.outcomes()) == 10
    assert loading.count() == 0
    assert loading.waited["a"].days < 20
    assert loading.waited["b"].days == 6


def test_what_fails_a_whole_wave_ends_the_run_with_its_error(place: Path) -> None:
    def broken(_: list[TableDay]) -> list[Verified]:
        raise OSError("Spark does not start")

    found: Lanes[Any] = lanes(days(place, "a", 9))  # type: ignore[assignment]
    with (
        Loading(found, broken, Service().load, most=4, stop=lambda: False) as loading,
        pytest.raises(OSError, match="Spark does not start"),
    ):
        loading.run()
