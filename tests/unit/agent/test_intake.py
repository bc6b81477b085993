"""What the intake notes of a file that it takes."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING

import pytest

from jostler.agent.intake import Intake, Taken
from jostler.agent.tally import Tally
from jostler.bundle import Confined
from jostler.watchdir import How
from tests.unit.agent.parts import open_bundles, rules_of

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.bundle import OpenBundles


def intake_of(
    spool: Path,
    bundles: OpenBundles,
    *,
    settle_age_s: float = 0.0,
    missed_age_s: float = 0.0,
    once: bool = False,
) -> Intake:
    rules = rules_of(spool, settle_age_s=settle_age_s, missed_age_s=missed_age_s, once=once)
    return Intake(rules, Confined(str(spool)), bundles, Tally())


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
    bundles = open_bundles()
    intake = intake_of(tmp_path, bundles)
    Stall(monkeypatch, 30_000_000)

    assert intake.take(str(path), How.EVENT) is Taken.ADDED

    ((entry,),) = (bundle.entries for bundle in bundles.open_bundles)
    assert not entry.unchanged(path.stat())


def written(spool: Path, content: bytes, age_s: float) -> Path:
    path = spool / "foo1/2026/01/02/m.json"
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
    bundles = open_bundles()
    intake = intake_of(tmp_path, bundles, missed_age_s=10_800)
    with path.open("r+b"):
        assert intake.take(str(path), How.SCAN) is Taken.WAITS
        assert intake.overdue == {"foo1/2026/01/02/m.json"}
        assert bundles.open_bundles == []
        assert intake.waiting == 0  # its end is heard: no scan is asked for

    assert intake.take(str(path), How.EVENT) is Taken.ADDED


@pytest.mark.parametrize("once", [False, True])
def test_where_the_kernel_cannot_tell_a_bad_file_must_be_seen_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, once: bool
) -> None:
    """Its times may be of another clock; but nothing is seen twice by an agent that looks once."""
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    path = written(tmp_path, b'{"a":', age_s=86_400)
    monotonic_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: monotonic_s[0])
    intake = intake_of(tmp_path, open_bundles(), settle_age_s=10, missed_age_s=10_800, once=once)

    first = intake.take(str(path), How.SCAN)
    assert first is (Taken.ADDED if once else Taken.WAITS)
    if not once:
        assert intake.of_age_s == 110.0
        path.write_bytes(b'{"a":1')
        os.utime(path, (1, 1))
        monotonic_s[0] += 10
        assert intake.take(str(path), How.SCAN) is Taken.WAITS
        monotonic_s[0] += 10
        assert intake.take(str(path), How.SCAN) is Taken.ADDED


def refuse_leases(_fd: int, _command: int, _argument: int = 0) -> int:
    raise PermissionError(errno.EACCES, "Permission denied")
