"""The journal: a step that failed half-way can be repeated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostler.bundle import Journal
from tests.unit.bundle.parts import record_of


class FailingDirectorySync:
    """fsync(2) that fails for the next directory, as a disk that went bad for a moment."""

    def __init__(self) -> None:
        self.failures = 0
        self._fsync = os.fsync

    def __call__(self, fd: int) -> None:
        if self.failures and Path(f"/proc/self/fd/{fd}").readlink().name == "state":
            self.failures -= 1
            raise OSError(5, "Input/output error")
        self._fsync(fd)


def test_a_record_can_be_marked_again_after_its_directory_could_not_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename was done; only its durability was not certain."""
    sync = FailingDirectorySync()
    monkeypatch.setattr(os, "fsync", sync)
    journal = Journal(tmp_path / "state")
    with journal.open() or pytest.fail("locked"):
        record = record_of(2)
        journal.write(record)
        sync.failures = 1
        with pytest.raises(OSError, match="Input/output"):
            journal.mark_stored(record)

        stored = journal.mark_stored(record)

        assert stored.stored
        assert [found.stored for found in journal.load()[0]] == [True]


def test_a_record_that_somebody_removed_is_written_again_when_it_is_stored(tmp_path: Path) -> None:
    """Its files are still to be unlinked, and the next process must know."""
    journal = Journal(tmp_path / "state")
    with journal.open() or pytest.fail("locked"):
        record = record_of(2)
        journal.write(record)
        for path in (tmp_path / "state").glob("*.sealed"):
            path.unlink()

        journal.mark_stored(record)

        assert [found.stored for found in journal.load()[0]] == [True]
