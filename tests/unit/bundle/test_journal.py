"""The journal: a step that failed half-way can be repeated."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from jostler.bundle import Journal, Record
from jostler.bundle import record as written
from jostler.format.compression import FAST, LEVELS, SMALL, Compression, Method
from tests.unit.bundle.parts import header, record_of


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


def test_a_record_that_is_there_twice_counts_once_as_stored(tmp_path: Path) -> None:
    """It was written again, by a process that had not yet seen that it is stored."""
    journal = Journal(tmp_path / "state")
    with journal.open() or pytest.fail("locked"):
        record = record_of(2)
        journal.write(record)
        stored = journal.mark_stored(record)
        journal.write(record)
        assert [found.stored for found in journal.load()[0]] == [True]
        journal.remove(stored)
        assert journal.load() == ([], [])


def read_with(record: Record, **altered: object) -> Record:
    """Read a record whose first line was altered; None removes a value."""
    first, *rest = written.lines(record)
    line = {key: value for key, value in (json.loads(first) | altered).items() if value is not None}
    return written.read(iter([json.dumps(line).encode(), *rest]), stored=False)


@pytest.mark.parametrize(
    "compression", [Compression(method, level) for method in Method for level in LEVELS[method]]
)
def test_a_record_tells_how_its_bundle_was_compressed(compression: Compression) -> None:
    """Made again after a crash it then has the same bytes."""
    record = record_of(2, replace(header(), compression=compression))
    assert written.read(written.lines(record), stored=False).header == record.header


def test_a_record_of_an_earlier_version_has_a_level_of_isal() -> None:
    """It was written before there was a choice."""
    record = read_with(record_of(2), compression=None, level=3)
    assert record.header.compression == Compression(Method.ISAL, 3)


def test_an_earlier_version_can_read_a_record() -> None:
    """An agent may be set back; the level that it finds is one of those that it knows."""
    (first, *_) = written.lines(record_of(2, replace(header(), compression=SMALL)))
    assert json.loads(first)["level"] in LEVELS[Method.ISAL]


@pytest.mark.parametrize("compression", [["zstd", 3], ["zlib-ng", 12], ["isal", 9]])
def test_a_compression_that_is_not_known_here_is_replaced(compression: list[object]) -> None:
    """The record stays readable; the bundle is made again with other bytes."""
    assert read_with(record_of(2), compression=compression).header.compression == FAST
