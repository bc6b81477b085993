"""What happens where inotify cannot be had."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from inotify_simple import INotify
from watchdog.observers import Observer
from watchdog.observers.polling import PollingObserver

from jostler.watchdir import Arrival, How, Pace, ScanReason, WatchError, open_arrivals, opening
from jostler.watchdir import Watch as Source
from jostler.watchdir.gatherer import ScanArrivals
from jostler.watchdir.observed import Reports, WatchdogArrivals, _Handler
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from watchdog.observers.api import BaseObserver

    from tests.unit.watchdir.conftest import Reader, Watch

JSON = Wanted((".json",))
# watchdog warns when a directory and its parent are seen at once; it copes
pytestmark = pytest.mark.filterwarnings("ignore:Callback with id:RuntimeWarning")


@contextmanager
def no_instances() -> Iterator[None]:
    """Use up all inotify instances of this user, for as short as can be."""
    with ExitStack() as stack:
        with suppress(OSError):
            while True:
                stack.enter_context(INotify())
        yield


def test_without_an_instance_files_are_found_by_scans(
    watch: Watch, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """EMFILE is said, in the log and by the watcher, and nothing is missed."""
    with caplog.at_level(logging.WARNING, "jostler.watchdir"), no_instances():
        arrivals = open_arrivals([root], extensions=(".json",), pace=Pace(scan_every_s=0.05))
    reader = watch(arrivals=arrivals)
    (root / "2026/01/02").mkdir(parents=True)
    (root / "2026/01/02/a.json").touch()

    assert reader.until_seen({"2026/01/02/a.json"}) == [("2026/01/02/a.json", How.SCAN)]
    assert "no inotify" in arrivals.degraded
    assert [record.message for record in caplog.records] == ["watch.degraded"]
    assert caplog.records[0].fields["why"] == arrivals.degraded
    assert arrivals.counts.scans[ScanReason.UNWATCHED] > 0


def test_without_the_module_watchdog_is_used(
    watch: Watch, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not on Linux: what watchdog reports comes before any scan does."""
    monkeypatch.setitem(sys.modules, "inotify_simple", None)
    monkeypatch.delitem(sys.modules, "jostler.watchdir.inotify", raising=False)
    arrivals = open_arrivals([root], extensions=(".json",), pace=Pace(scan_every_s=1_000))
    reader = watch(arrivals=arrivals)
    (root / "a.json").touch()

    assert isinstance(arrivals, WatchdogArrivals)
    assert reader.until(lambda taken: ("a.json", How.EVENT) in taken)
    assert arrivals.counts.scans == {ScanReason.START: 1}


def test_without_either_files_are_found_by_scans(
    watch: Watch, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is always a watcher."""
    for module in ("inotify_simple", "watchdog.observers"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "jostler.watchdir.inotify", raising=False)
    arrivals = open_arrivals([root], extensions=(".json",), pace=Pace(scan_every_s=0.05))
    reader = watch(arrivals=arrivals)
    (root / "a.json").touch()

    assert isinstance(arrivals, ScanArrivals)
    assert "no watchdog" in arrivals.degraded
    assert reader.until_seen({"a.json"})


@pytest.mark.parametrize("source", ["inotify", "watchdog", "scan"])
def test_the_source_that_is_asked_for_is_the_one_that_is_used(
    watch: Watch, root: Path, source: str
) -> None:
    """Each finds a file, and says what it is."""
    pace = Pace(scan_every_s=0.05)
    arrivals = open_arrivals([root], extensions=(".json",), pace=pace, watch=Source(source))
    reader = watch(arrivals=arrivals)
    (root / "2026").mkdir()
    (root / "2026/a.json").touch()

    assert arrivals.source == source
    assert bool(arrivals.degraded) == (source != "inotify")
    assert reader.until_seen({"2026/a.json"})


def test_watchdog_polls_a_network_file_system(
    watch: Watch, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of no change that another machine makes there."""
    monkeypatch.setattr(opening, "network_mounts", lambda paths: dict.fromkeys(paths, "nfs4"))
    pace = Pace(scan_every_s=0.05)
    asked = Source.WATCHDOG
    arrivals = open_arrivals([root], extensions=(".json",), pace=pace, watch=asked)
    reader = watch(arrivals=arrivals)
    (root / "a.json").touch()

    assert isinstance(arrivals, WatchdogArrivals)
    assert isinstance(arrivals._observer, PollingObserver)
    assert reader.until_seen({"a.json"})


def test_inotify_that_was_asked_for_and_cannot_be_had_is_an_error(root: Path) -> None:
    """Only `auto` may fall back."""
    with no_instances(), pytest.raises(WatchError, match="inotify cannot be had here"):
        open_arrivals([root], extensions=(".json",), watch=Source.INOTIFY)


@pytest.fixture(params=[Observer, PollingObserver])
def dog(request: pytest.FixtureRequest, watch: Watch, root: Path) -> Reader:
    """Read a watchdog watcher whose scans are too rare to help."""
    pace = Pace(scan_every_s=1_000, look_every_s=0.05)

    def observer() -> BaseObserver:
        return request.param(timeout=0.05)

    return watch(
        arrivals=WatchdogArrivals((str(root),), JSON, pace, why="asked", observer=observer)
    )


def how_of(name: str, taken: list[Arrival]) -> set[How]:
    return {arrival.how for arrival in taken if arrival.path == name}


def test_watchdog_reports_every_way_to_make_a_file(dog: Reader, root: Path) -> None:
    """Closed, renamed in, renamed here, linked; hidden and other names never."""
    outside = root.parent / "outside"
    (root / "2026").mkdir()
    dog.until(lambda _: False, timeout_s=0.2)
    for name in ("closed.json", ".hidden.json", "other.txt", "here.tmp", "2026/closed.json"):
        (root / name).touch()
    (root / "here.tmp").rename(root / "here.json")
    outside.touch()
    os.link(outside, root / "linked.json")
    outside.rename(root / "moved.json")
    (root / ".state").mkdir()
    (root / ".state" / "a.json").touch()

    names = {"closed.json", "2026/closed.json", "here.json", "linked.json", "moved.json"}
    assert {arrival.path for arrival in dog.until_seen(names)} == names


def test_watchdog_reports_what_a_directory_moved_in_holds(dog: Reader, root: Path) -> None:
    """It is read by us, as the library's own reports of it depend on timing."""
    (root.parent / "out/01/02").mkdir(parents=True)
    (root.parent / "out/01/02/a.json").touch()
    (root.parent / "out").rename(root / "2026")

    taken = dog.until_seen({"2026/01/02/a.json"})
    assert how_of("2026/01/02/a.json", taken) == {How.SCAN}


def test_watchdog_is_started_again_when_the_root_comes_back(dog: Reader, root: Path) -> None:
    """Its emitters end with the directory."""
    root.rename(root.parent / "away")
    dog.until(lambda _: dog.arrivals.counts.lost > 0)
    root.mkdir()
    (root / "a.json").touch()
    dog.until_seen({"a.json"})
    dog.until(lambda _: dog.arrivals.counts.watches == 1)
    (root / "b.json").touch()

    assert dog.until_seen({"b.json"})


def test_a_dead_observer_is_replaced_and_its_time_scanned(dog: Reader, root: Path) -> None:
    """An exception in the library would otherwise end all events in silence."""
    dead = dog.arrivals._observer
    dead.stop()
    dead.join()
    (root / "a.json").touch()

    assert dog.until_seen({"a.json"}) == [("a.json", How.SCAN)]
    assert dog.arrivals.counts.lost == 1
    assert dog.arrivals._observer is not dead


def test_closing_ends_the_observer(dog: Reader) -> None:
    """No thread is left behind."""
    observer = dog.arrivals._observer
    dog.arrivals.close()

    assert not observer.is_alive()
    assert not any(emitter.is_alive() for emitter in observer.emitters)


def test_an_exception_in_a_handler_is_answered_by_a_scan(dog: Reader, root: Path) -> None:
    """One that reached the dispatch thread would end it."""
    reports = dog.arrivals._reports
    handler = _Handler(str(root), JSON, reports)
    handler.dispatch(object())

    dog.arrivals.take(0)
    assert dog.arrivals.scanning


def test_more_reports_than_fit_are_answered_by_a_scan() -> None:
    """The queue between the threads is bounded too."""
    reports = Reports(limit=2)
    for name in "abc":
        reports.put(name, How.EVENT)

    taken, missed = reports.take()
    assert [report.path for report in taken] == ["a", "b"]
    assert missed
    assert reports.take() == ([], False)
    reports.bell.close()


def test_watchdog_that_cannot_start_leaves_scans(watch: Watch, root: Path) -> None:
    """It is tried again each second; meanwhile scans find everything."""
    pace = Pace(scan_every_s=0.05)

    def observer() -> BaseObserver:
        class Failing(PollingObserver):
            def start(self) -> None:
                raise OSError("no instance")

        return Failing()

    arrivals = WatchdogArrivals((str(root),), JSON, pace, why="asked", observer=observer)
    reader = watch(arrivals=arrivals)
    (root / "a.json").touch()

    assert reader.until_seen({"a.json"}) == [("a.json", How.SCAN)]
    assert "does not start" in arrivals.degraded


def test_a_scan_repeats_only_as_often_as_it_is_cheap(
    root: Path, watch: Callable[..., object]
) -> None:
    """Nobody is served by a scan that never rests."""
    arrivals = ScanArrivals((str(root),), JSON, Pace(scan_every_s=0.0), "asked")
    watch(arrivals=arrivals)
    for _ in range(10_000):
        arrivals.take(1)
    spent_s = arrivals._scans._spent_s
    assert arrivals._scans._next_s > spent_s * 9
