"""What the intake notes of a file that it takes."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.agent.intake import Intake, Rules, Taken
from jostler.agent.tally import Tally
from jostler.bundle import Archiver, Confined, Limits, OpenBundles, Stamp
from jostler.config import BadFiles
from jostler.schema import json_object_flaw
from jostler.watchdir import How
from tests.unit.bundle.parts import PLACE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MEMORY = 1 << 20


def open_bundles() -> OpenBundles:
    stamp = Stamp(
        bucket="gs://bkt",
        place=PLACE,
        node="node1",
        archiver=Archiver(version="jostler@1", commit="abc"),
        level=2,
    )
    return OpenBundles(
        stamp,
        Limits(max_bytes=MEMORY, max_age_s=3600),
        memory_max=MEMORY,
        sealed=lambda _: None,
        monotonic_s=time.monotonic,
        now=lambda: datetime.now(UTC),
    )


def intake_of(spool: Path, bundles: OpenBundles) -> Intake:
    rules = Rules(
        spool=str(spool),
        judges={"foo1": json_object_flaw},
        max_bytes=MEMORY,
        settle_age_s=0.0,
        missed_age_s=0.0,
        bad_files=BadFiles.UPLOAD,
        read_tries=1,
    )
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
    Stall(monkeypatch, 30_000_000)

    assert intake_of(tmp_path, bundles).take(str(path), How.EVENT) is Taken.ADDED

    ((entry,),) = (bundle.entries for bundle in bundles.open_bundles)
    assert not entry.unchanged(path.stat())
