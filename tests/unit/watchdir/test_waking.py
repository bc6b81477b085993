"""Waiting, and how it ends."""

from __future__ import annotations

import os
import resource
import select
import signal
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from jostler.watchdir import Pace, open_arrivals
from jostler.watchdir.gatherer import ScanArrivals
from jostler.watchdir.waker import Waker
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jostler.watchdir.arrivals import Arrivals
    from tests.unit.watchdir.conftest import Reader, Watch

    Wait = Callable[[Arrivals, float], None]

LONG_S = 200.0
SOON_S = 100.0


@pytest.fixture(params=["inotify", "scanning"])
def arrivals(request: pytest.FixtureRequest, watch: Watch, root: Path) -> Iterator[Arrivals]:
    """Make a watcher that has nothing to say."""
    slow = Pace(scan_every_s=1_000, look_every_s=1_000)
    scanning = ScanArrivals((str(root),), Wanted((".json",)), slow, "asked for")
    with scanning:
        yield watch(slow, None if request.param == "inotify" else scanning).arrivals


@pytest.fixture(params=["wait", "pause"])
def wait(request: pytest.FixtureRequest) -> Wait:
    """Call either way to wait."""
    return lambda arrivals, timeout_s: getattr(arrivals, request.param)(timeout_s)


def timed(wait: Wait, arrivals: Arrivals, timeout_s: float) -> float:
    started_s = time.monotonic()
    wait(arrivals, timeout_s)
    return time.monotonic() - started_s


def test_a_wait_lasts_as_long_as_it_was_told(arrivals: Arrivals, wait: Wait) -> None:
    """It neither returns early nor burns the processor."""
    used_s = time.process_time()
    assert 0.3 <= timed(wait, arrivals, 0.3) < SOON_S
    assert time.process_time() - used_s < 0.15


def test_a_thread_ends_a_wait(arrivals: Arrivals, wait: Wait) -> None:
    """Another thread may wake the owner."""
    thread = threading.Timer(0.05, arrivals.wake)
    thread.start()
    assert timed(wait, arrivals, LONG_S) < SOON_S
    thread.join()


def test_a_signal_handler_ends_a_wait(arrivals: Arrivals, wait: Wait) -> None:
    """PEP 475 resumes a wait after a signal, so the handler itself must end it."""
    before = signal.signal(signal.SIGUSR1, lambda *_: arrivals.wake())
    thread = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    try:
        thread.start()
        assert timed(wait, arrivals, LONG_S) < SOON_S
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_wake_before_the_wait_ends_it_once(arrivals: Arrivals, wait: Wait) -> None:
    """A wake is never lost between two waits, and any number of them are one."""
    arrivals.wake()
    arrivals.wake()
    assert timed(wait, arrivals, LONG_S) < SOON_S
    assert timed(wait, arrivals, 0.1) >= 0.1


def finish_scan(arrivals: Arrivals) -> None:
    """Take what the first scan gives, which is nothing."""
    while arrivals.scanning:
        arrivals.take(10)


def voluntary_switches() -> int:
    """Return how often this thread has waited for something so far."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def wait_for(arrivals: Arrivals, timeout_s: float) -> None:
    arrivals.wait(timeout_s)


def test_a_wait_ends_when_a_link_is_due(watch: Watch, root: Path) -> None:
    """No descriptor tells of a creation that nobody closes."""
    arrivals = watch(Pace(hint_after_s=0.05, look_every_s=1_000)).arrivals
    (root.parent / "out").touch()
    os.link(root.parent / "out", root / "a.json")

    assert timed(wait_for, arrivals, LONG_S) < SOON_S
    assert arrivals.waiting == 1


def test_a_wait_ends_when_a_root_appears(watch: Watch, root: Path) -> None:
    """No descriptor tells of a directory whose parent is not watched."""
    pace = Pace(look_every_s=0.05)
    with open_arrivals([root / "late"], extensions=(".json",), pace=pace) as arrivals:
        watch(arrivals=arrivals)
        (root / "late").mkdir()

        assert timed(wait_for, arrivals, LONG_S) < SOON_S
        assert arrivals.scanning


def test_a_wait_ends_when_a_root_goes(watch: Watch, root: Path) -> None:
    """Its owner may want to make it again at once."""
    (root / "data").mkdir()
    with open_arrivals([root / "data"], extensions=(".json",)) as arrivals:
        watch(arrivals=arrivals)
        finish_scan(arrivals)
        (root / "data").rmdir()

        assert timed(wait_for, arrivals, LONG_S) < SOON_S
        assert arrivals.counts.lost == 1


def test_a_watcher_whose_roots_are_there_waits_without_waking(watch: Watch, root: Path) -> None:
    """Their own events tell when they go, so that nothing has to be looked at meanwhile."""
    arrivals = watch(Pace(look_every_s=0.001)).arrivals
    finish_scan(arrivals)
    before = voluntary_switches()
    arrivals.wait(0.3)

    assert voluntary_switches() - before <= 5


def test_a_wait_ends_when_a_scan_is_due(watch: Watch, root: Path) -> None:
    """Where there are no events, time is the only sign."""
    pace = Pace(scan_every_s=0.05, look_every_s=1_000)
    arrivals = ScanArrivals((str(root),), Wanted((".json",)), pace, "asked for")
    watch(arrivals=arrivals)

    assert timed(wait_for, arrivals, LONG_S) < SOON_S
    assert arrivals.scanning


def test_a_pause_reads_events_but_does_not_end(reader: Reader, root: Path) -> None:
    """A caller that can take nothing now still keeps the kernel's queue from running over."""
    (root / "a.json").touch()
    started_s = time.monotonic()
    reader.arrivals.pause(0.1)

    assert time.monotonic() - started_s >= 0.1
    assert reader.arrivals.waiting == 1
    assert reader.arrivals.take(0) == []


def test_waking_after_close_is_harmless(arrivals: Arrivals, tmp_path: Path) -> None:
    """The descriptor's number may be another file's by then."""
    arrivals.close()
    with (tmp_path / "other").open("w"):
        arrivals.wake()
    arrivals.close()
    assert (tmp_path / "other").read_text() == ""


def test_a_pipe_serves_where_there_is_no_eventfd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ringing never blocks, however often, and one hush silences all of it."""
    monkeypatch.delattr(os, "eventfd")
    with closing(Waker()) as waker:
        for _ in range(20_000):
            waker.ring()
        while waker.hush():
            pass
        assert not select.select([waker], [], [], 0)[0]
        waker.ring()
        assert select.select([waker], [], [], 0)[0]
