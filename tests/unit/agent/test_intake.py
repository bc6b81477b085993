"""The intake decides, and changes nothing."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

import pytest

from jostler.agent import network
from jostler.agent.verdicts import (
    NOTHING,
    Bad,
    Closed,
    Doubtful,
    Early,
    Gone,
    Good,
    ReadAgain,
    Written,
)
from jostler.bundle import InFlight, Room
from jostler.watchdir import How
from tests.unit.agent.parts import DAY, HOUR_S, MAX_BYTES, Looking, refuse_leases
from tests.unit.bundle.parts import header

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def looking(tmp_path: Path) -> Looking:
    return Looking(tmp_path)


def test_a_good_file_is_to_be_archived_with_its_bytes_and_day(looking: Looking) -> None:
    """Nothing has happened yet: who asked decides whether there is room."""
    looking.write(f"{DAY}/m.json", b'{"UUID":"1"}')
    good = looking.look(f"{DAY}/m.json")
    assert isinstance(good, Good)
    assert (good.datatype, good.day.iso, good.raw) == ("foo1", "2026-01-02", b'{"UUID":"1"}')
    assert not looking.in_flight.owns(f"{DAY}/m.json")


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        (f"{DAY}/m.json", b"[]", "not-object"),
        (f"{DAY}/m.json", b"", "empty"),
        (f"{DAY}/m.json", b'"' + b"x" * MAX_BYTES + b'"', "too-big"),
        (f"{DAY}/sp ace.json", b"{}", "name"),
        ("foo1/2026/02/30/m.json", b"{}", "path"),
    ],
)
def test_a_bad_file_is_to_be_rejected_with_its_reason(
    looking: Looking, path: str, content: bytes, reason: str
) -> None:
    """When it was closed; one that a scan merely met may be half-written."""
    looking.write(path, content)
    bad = looking.look(path)
    assert isinstance(bad, Bad)
    assert bad.rejection.reason == reason
    assert isinstance(looking.look(path, How.SCAN), Doubtful)


def test_a_bad_file_that_is_written_anew_after_its_close_is_not_rejected(looking: Looking) -> None:
    """Its writer has just emptied it; `-bad-files delete` would take it from under the pen."""
    path = f"{DAY}/m.json"
    looking.write(path)
    with (looking.root / path).open("wb") as file:
        assert isinstance(looking.look(path), Written)
        file.write(b"{}")
    assert isinstance(looking.look(path), Good)


def test_a_bad_file_of_age_is_rejected_though_nobody_closed_it(tmp_path: Path) -> None:
    """Its writer has died, as it seems."""
    looking = Looking(tmp_path, missed_s=0.0)
    looking.write(f"{DAY}/m.json", b"[]")
    assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Bad)


def test_a_young_file_that_a_scan_met_waits_where_the_kernel_cannot_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Good or bad; an event says that it is complete, and so does the kernel if it can."""
    looking = Looking(tmp_path, settle_s=HOUR_S)
    looking.write(f"{DAY}/m.json")
    with monkeypatch.context() as without:
        without.setattr(fcntl, "fcntl", refuse_leases)
        assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Early)
        assert isinstance(looking.look(f"{DAY}/m.json"), Good)
    assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Good)


def test_on_a_network_file_system_a_young_file_that_a_scan_met_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its writer may run on another machine, of which this kernel knows nothing."""
    device = tmp_path.stat().st_dev
    monkeypatch.setattr(network, "network_devices", lambda: frozenset({device}))
    looking = Looking(tmp_path, settle_s=HOUR_S)
    looking.write(f"{DAY}/m.json")
    assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Early)


def together(looking: Looking, *names: str) -> int:
    """Look at files of a scan together; return how many are to be archived."""
    room = Room(head=b"", room_bytes=MAX_BYTES)
    directory = str(looking.root / DAY)
    return len(looking.intake.look_at_many(directory, list(names), How.SCAN, room)[0])


@pytest.mark.parametrize(("is_network", "taken"), [(False, 2), (True, 0)])
def test_on_a_network_file_system_young_files_are_not_taken_together_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_network: bool, taken: int
) -> None:
    """As one by one."""
    devices = frozenset({tmp_path.stat().st_dev} if is_network else ())
    monkeypatch.setattr(network, "network_devices", lambda: devices)
    looking = Looking(tmp_path, settle_s=HOUR_S)
    for name in "ab":
        looking.write(f"{DAY}/{name}.json")
    assert together(looking, "a.json", "b.json") == taken


@pytest.mark.parametrize("known", ["finished", "doubtful", "unreadable", "failed_reads", "owned"])
def test_files_of_which_one_is_known_are_looked_at_one_by_one(looking: Looking, known: str) -> None:
    """What is remembered of a file decides, not its bytes."""
    for name in "ab":
        looking.write(f"{DAY}/{name}.json")
    assert together(looking, "a.json", "b.json") == 2
    path = f"{DAY}/b.json"
    good = looking.look(path)
    assert isinstance(good, Good)
    if known == "owned":
        one = InFlight(header(), 0.0)
        looking.in_flight.open(one)
        looking.in_flight.add(one, good.entry, b"{}\n", None)
    else:
        remembered = 1 if known == "failed_reads" else good.entry.state
        getattr(looking.left, known)[path] = remembered
    assert together(looking, "a.json", "b.json") == 0
    assert together(looking, "a.json") == 1


def test_a_path_of_a_bundle_is_not_read(looking: Looking) -> None:
    """That it was closed again is told, for its content may be another one now."""
    path = f"{DAY}/m.json"
    looking.write(path)
    good = looking.look(path)
    assert isinstance(good, Good)
    one = InFlight(header(), 0.0)
    looking.in_flight.open(one)
    looking.in_flight.add(one, good.entry, b"{}\n", None)
    assert looking.look(path, How.SCAN) is NOTHING
    assert looking.look(path) == Closed(path, one)


def test_a_file_that_is_gone_is_counted_if_it_was_announced(looking: Looking) -> None:
    """A scan that met it and an unlink may always cross."""
    assert looking.look(f"{DAY}/m.json") == Gone(f"{DAY}/m.json", announced=True)
    assert looking.look(f"{DAY}/m.json", How.SCAN) == Gone(f"{DAY}/m.json", announced=False)


def test_a_file_that_cannot_be_read_is_tried_a_few_times(
    looking: Looking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is rejected; and when it can be read one day it is archived all the same."""
    path = f"{DAY}/m.json"
    looking.write(path)

    def fail(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "read", fail)
        for tries in (1, 2):
            again = looking.look(path)
            assert isinstance(again, ReadAgain)
            assert again.tries == tries
            looking.left.failed_reads[path] = tries
        bad = looking.look(path)
        assert isinstance(bad, Bad)
        assert bad.rejection.reason == "unreadable"
        looking.left.keep({path: bad.state}, {path: bad.rejection})
        assert looking.look(path) is NOTHING
    assert isinstance(looking.look(path, How.SCAN), Good)


def test_a_file_that_was_rejected_and_stays_is_left_alone_after_a_restart(tmp_path: Path) -> None:
    """Until it changes; and the memory goes when the files do."""
    first = Looking(tmp_path)
    path, other = f"{DAY}/m.json", f"{DAY}/other.json"
    for name in (path, other):
        first.write(name, b"[]")
        bad = first.look(name)
        assert isinstance(bad, Bad)
        first.left.keep({name: bad.state}, {name: bad.rejection})

    second = Looking(tmp_path)
    second.left.load(second.intake.state_of)
    assert second.look(path) is NOTHING
    assert second.left.overdue == {path, other}

    for name in (path, other):
        (tmp_path / name).unlink()
    third = Looking(tmp_path)
    third.left.load(third.intake.state_of)
    assert not third.left.overdue
    assert not (tmp_path / "kept").exists()


class Stall:
    """The process stands still as soon as it has closed a file: the clock goes on meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stall_ns: int) -> None:
        self._stall_ns = stall_ns
        self._stalled_ns = 0
        self._close, self._time_ns = os.close, time.time_ns
        monkeypatch.setattr(os, "close", self.close)
        monkeypatch.setattr(time, "time_ns", self.time_ns)

    def close(self, descriptor: int) -> None:
        self._close(descriptor)
        self._stalled_ns += self._stall_ns

    def time_ns(self) -> int:
        return self._time_ns() + self._stalled_ns


def test_a_stall_after_the_read_does_not_hide_a_second_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write in the kernel's tick in which the file was read leaves its times as they were."""
    path = tmp_path / "foo1/2026/01/02/m.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"a":1}')
    intake = Looking(tmp_path).intake
    Stall(monkeypatch, 30_000_000)

    good = intake.look(str(path), How.EVENT)

    assert isinstance(good, Good)
    assert not good.entry.unchanged(path.stat())


def written(spool: Path, content: bytes, age_s: float) -> Path:
    path = spool / DAY / "m.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    when = time.time() - age_s
    os.utime(path, (when, when))
    return path


@pytest.mark.parametrize("content", [b'{"a":1}', b'{"a":'])
def test_a_file_that_somebody_has_open_for_writing_waits_for_its_end(
    tmp_path: Path, content: bytes
) -> None:
    """Good or bad, and however old: what is written later would be lost."""
    path = written(tmp_path, content, age_s=86_400)
    looking = Looking(tmp_path)
    with path.open("r+b"):
        verdict = looking.look(f"{DAY}/m.json", How.SCAN)
        assert isinstance(verdict, Written)
        looking.left.written(*verdict)
        assert looking.left.overdue == {f"{DAY}/m.json"}
        assert looking.left.waiting == 0  # its end is heard: no scan is asked for

    assert isinstance(looking.look(f"{DAY}/m.json"), Good | Bad)


@pytest.mark.parametrize("once", [False, True])
def test_where_the_kernel_cannot_tell_a_bad_file_must_be_seen_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, once: bool
) -> None:
    """Its times may be of another clock; but nothing is seen twice by an agent that looks once."""
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    path = written(tmp_path, b'{"a":', age_s=86_400)
    monotonic_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: monotonic_s[0])
    looking = Looking(tmp_path, settle_s=10, missed_s=10_800, once=once)

    first = looking.look(f"{DAY}/m.json", How.SCAN)
    assert isinstance(first, Bad if once else Doubtful)
    if isinstance(first, Doubtful):
        looking.left.doubt(*first)
        assert looking.left.of_age_s == 110.0
        path.write_bytes(b'{"a":1')
        os.utime(path, (1, 1))
        monotonic_s[0] += 10
        assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Doubtful)
        monotonic_s[0] += 10
        assert isinstance(looking.look(f"{DAY}/m.json", How.SCAN), Bad)
