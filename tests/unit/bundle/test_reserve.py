"""On a full disk the journal writes into blocks that it holds, and never gives away."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Journal
from tests.support.disk import fill, small_disk
from tests.unit.bundle.parts import header, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
TINY_MIB = 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that is easily filled."""
    with small_disk(tmp_path / "disk", TINY_MIB) as made:
        yield made


def test_a_burst_that_takes_all_space_there_is_stops_no_record(disk: Path) -> None:
    """Bundle after bundle, and each record can be read again."""
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        for number in range(5):
            fill(disk / "ballast")
            record = record_of(50 + 300 * (number % 2), header(microsecond=number))
            journal.write(record)
            fill(disk / "ballast")
            ((found,), unreadable) = journal.load()
            assert (list(found.attempts[0].entries), unreadable) == (
                list(record.attempts[0].entries),
                [],
            )
            stored = journal.mark_stored(record)
            assert journal.load()[0][0].stored
            fill(disk / "ballast")
            journal.remove(stored)
            assert journal.load() == ([], [])
        assert not journal.without


def test_the_reserve_holds_one_record_and_another_waits(disk: Path) -> None:
    """It gets the reserve when the first is done."""
    first, second = (record_of(9, header(microsecond=number)) for number in (1, 2))
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        fill(disk / "ballast")
        journal.write(first)
        fill(disk / "ballast")
        with pytest.raises(OSError, match="No space left"):
            journal.write(second)
        journal.remove(first)
        fill(disk / "ballast")
        journal.write(second)
        assert [found.header for found in journal.load()[0]] == [second.header]


def test_a_small_record_that_ends_meanwhile_does_not_take_the_place_of_the_reserve(
    disk: Path,
) -> None:
    """It was written in free space while the reserve was lent; the lent blocks come back."""
    lent, small, large = (record_of(files, header(microsecond=files)) for files in (9, 1, 300))
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        fill(disk / "ballast")
        journal.write(lent)
        os.truncate(disk / "ballast", MIB)
        journal.write(small)
        fill(disk / "ballast")
        journal.remove(journal.mark_stored(small))
        fill(disk / "ballast")
        journal.remove(journal.mark_stored(lent))
        fill(disk / "ballast")
        journal.write(large)
        assert not journal.without


def test_after_a_restart_a_bundle_waits_for_the_one_that_has_the_reserve(disk: Path) -> None:
    """It is not stored without a record: a crash could then store it twice."""
    first, second = (record_of(9, header(microsecond=number)) for number in (1, 2))
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        fill(disk / "ballast")
        journal.write(first)
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        ((left,), _) = journal.load()
        with pytest.raises(OSError, match="No space left"):
            journal.write(second)
        journal.remove(journal.mark_stored(left))
        fill(disk / "ballast")
        journal.write(second)
        assert not journal.without


def test_a_bundle_does_not_wait_for_a_record_that_stays(disk: Path) -> None:
    """One that cannot be done with keeps the reserve; a disk that stays full would be worse."""
    stays, other = (record_of(9, header(microsecond=number)) for number in (1, 2))
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        fill(disk / "ballast")
        journal.write(stays)
        fill(disk / "ballast")
        journal.renew_reserve(stays)
        journal.write(other)
        assert journal.without == other.basename


def test_on_a_disk_that_was_full_before_the_first_start_one_bundle_goes_without(
    disk: Path,
) -> None:
    """When it has made room the reserve is taken, and all others have their record."""
    journal = Journal(disk / "state")
    (disk / "file-of-the-bundle").write_bytes(b"x" * 18 * MIB)
    fill(disk / "ballast")
    with journal.open() or pytest.fail("locked"):
        first, second = (record_of(9, header(microsecond=number)) for number in (1, 2))
        journal.write(first)
        assert journal.without == first.basename
        with pytest.raises(OSError, match="No space left"):
            journal.write(second)
        stored = journal.mark_stored(first)
        (disk / "file-of-the-bundle").unlink()
        journal.remove(stored)
        assert not journal.without
        fill(disk / "ballast")
        journal.write(second)
        assert [found.header for found in journal.load()[0]] == [second.header]


def test_a_record_that_grows_on_a_full_disk_does_not_wait_for_itself(disk: Path) -> None:
    """Its second sealing finds no room: what is on disk stays as it was."""
    journal = Journal(disk / "state")
    with journal.open() or pytest.fail("locked"):
        fill(disk / "ballast")
        record = record_of(9)
        journal.write(record)
        journal.write(record.with_attempt(record_of(5).attempts[0]))
        assert journal.without == record.basename
        assert len(journal.load()[0]) == 1
        journal.remove(journal.mark_stored(record))
        assert journal.load() == ([], [])
        fill(disk / "ballast")
        journal.write(record)
        assert not journal.without
