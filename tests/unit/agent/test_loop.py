"""A whole agent in one thread: what waits, and for what."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from jostler.agent.loop import BACKLOG
from jostler.bundle import Journal, delivery
from jostler.bundle.open_bundles import SENDING_SHARE
from jostler.format.compression import FAST, SMALL
from jostler.watchdir import Arrival, How
from tests.support.disk import fill, small_disk
from tests.unit.agent.world import MAX_BYTES, MEMORY_MAX, World, content_of, number_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.bundle import Record
    from jostler.format.compression import Compression
    from jostler.schema import Flaw

DAY = "foo1/2026/01/02"


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()


def write(world: World, number: int) -> None:
    path = f"{DAY}/m{number}.json"
    world.write(path, content_of(number), rename=True, announced=True)


def store(world: World) -> None:
    """Take what has arrived, seal it and try to store it."""
    world.loop.step()
    world.loop.seal_all()
    world.uploads.carry(20)
    world.loop.step()


def test_a_bundle_that_cannot_be_finished_stops_no_other(world: World) -> None:
    """Its index name is another's, and stays so."""
    world.bucket.faults[1] = "index1"
    write(world, 1)
    store(world)
    assert not world.loop.fails

    for number in range(2, 6):
        write(world, number)
        store(world)

    assert set(world.bucket.stored()) == {2, 3, 4, 5}


def test_while_the_bucket_fails_nothing_new_is_read(world: World) -> None:
    """The disk is the queue."""
    world.bucket.faults = dict.fromkeys(range(100), "down")
    write(world, 1)
    store(world)
    assert world.loop.fails
    write(world, 2)
    world.loop.step()
    assert world.in_flight.files == 1
    world.bucket.faults.clear()
    world.run(5)
    world.loop.seal_all()
    world.run(2)
    assert set(world.bucket.stored()) == {1, 2}


def test_after_an_outage_files_go_as_soon_as_the_first_bundle_is_stored(world: World) -> None:
    """However many bundles still wait for their upload."""
    world.bucket.faults = dict.fromkeys(range(100), "down")
    for number in range(40):
        write(world, number)
    world.loop.step()
    world.loop.seal_all()
    bundles = len(list(world.in_flight))
    for _ in range(bundles):
        world.uploads.carry(20)
    world.loop.step()
    assert world.loop.fails
    assert len(list(world.files())) == 40
    world.bucket.faults.clear()
    world.clock.s += 60.0

    world.loop.step()
    world.uploads.carry(20)
    world.loop.step()

    stored = set(world.bucket.stored())
    assert bundles > 2
    assert 0 < len(stored) <= 8
    left = {number_in(path.read_bytes()) for path in world.files()}
    assert left == set(range(40)) - stored


def test_at_the_end_all_that_waits_is_tried_at_once(world: World) -> None:
    """With a bucket that is back, and however long the waits had become."""
    world.open_bundles._memory_max = 10**6  # for four sealed bundles
    for number in range(1, 5):
        write(world, number)
        world.loop.step()
        world.loop.seal_all()
    world.bucket.faults = dict.fromkeys(range(4), "down")
    for _ in range(4):
        world.uploads.carry(20)
    world.loop.step()
    assert not world.bucket.stored()
    assert not world.uploads.jobs

    world.delivery.hurry()
    world.loop.deliver()
    for _ in range(8):
        world.uploads.carry(20)
        world.loop.deliver()

    assert set(world.bucket.stored()) == {1, 2, 3, 4}
    assert not world.delivery.busy


def test_files_that_cannot_be_unlinked_take_a_number_each(world: World) -> None:
    """And are known as the bundle's, so that no scan takes them again."""
    world.disk.undeletable = {f"m{number}.json" for number in range(1, 4)}
    for number in range(1, 4):
        write(world, number)
    for _ in range(3):
        store(world)
        world.loop.step()
    assert world.in_flight.files == 3
    assert world.in_flight.undeletable
    assert world.in_flight.held_bytes == 3 * 8
    world.scan()
    world.run(3)
    assert sum(world.bucket.stored().values()) == 3

    world.disk.undeletable.clear()
    world.run(20)
    assert list(world.files()) == []
    assert world.journal.load() == ([], [])


def test_a_rejected_file_that_stays_is_not_rejected_again_after_a_kill(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However close to the removal of its bundle's record the process was killed."""

    class Killed(BaseException):
        pass

    def unreadable(*_: object) -> bytes:
        raise OSError(5, "Input/output error")

    def die_after(record: Record) -> None:
        Journal.remove(world.journal, record)
        raise Killed

    monkeypatch.setattr(os, "read", unreadable)
    monkeypatch.setattr(world.journal, "remove", die_after)
    write(world, 1)
    with pytest.raises(Killed):
        store(world)
    assert world.tally.rejected.total() == 1

    world.start()
    world.scan()
    store(world)
    assert world.tally.rejected.total() == 0
    assert world.left.overdue == {f"{DAY}/m1.json"}


def test_a_file_that_nobody_foresaw_is_set_aside_and_the_next_one_is_taken(world: World) -> None:
    """Counted among the overdue, and looked at again when it changes."""
    judge = world.judges["foo1"]

    def fail(document: bytes) -> Flaw | None:
        if number_in(document) == 1:
            raise ZeroDivisionError
        return judge(document)

    world.judges["foo1"] = fail
    write(world, 1)
    write(world, 2)
    world.loop.step()
    assert world.left.overdue == {f"{DAY}/m1.json"}
    assert world.tally.kept.total() == 1
    assert world.tally.taken.total() == 1

    world.judges["foo1"] = judge
    world.scan()
    world.loop.step()
    assert world.tally.taken.total() == 1
    world.clock.s += 1
    write(world, 1)
    world.loop.step()
    assert world.tally.taken.total() == 2


@pytest.mark.parametrize(
    ("files", "scanning", "compression"),
    [(3, False, SMALL), (BACKLOG + 2, False, FAST), (3, True, FAST)],
)
def test_a_bundle_is_made_small_unless_many_files_wait_when_it_is_opened(
    world: World, files: int, compression: Compression, *, scanning: bool
) -> None:
    """Storage is paid for years; a backlog, or an unfinished scan, is what there is no time for."""
    world.arrivals.scanning = scanning
    for number in range(files):
        write(world, number)
    world.loop.step()
    first = next(iter(world.in_flight))
    assert first.header.compression == compression


def test_while_many_files_wait_to_be_unlinked_no_file_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes memory; and where no thread unlinks them there is nothing to wait for."""
    monkeypatch.setattr(delivery, "LAG_FILES", 2)
    for number in range(3):
        write(world, number)
    world.cleaning.beside = True
    store(world)
    assert world.loop.lags
    write(world, 3)
    world.loop.step()
    assert world.in_flight.files == 3

    world.cleaning.work(0)  # the thread has come back, so the loop must go on with it
    assert not world.loop.lags
    world.run(2)
    assert world.tally.taken.total() == 4


def test_while_much_waits_to_be_uploaded_no_file_is_read(world: World) -> None:
    """A bucket slower than the disk fills memory otherwise, up to -memory-max."""
    write(world, 1)
    world.loop.step()
    world.loop.seal_all()
    world.in_flight.sending_bytes += MEMORY_MAX // SENDING_SHARE
    write(world, 2)
    world.loop.step()
    assert world.in_flight.files == 1

    world.in_flight.sending_bytes -= MEMORY_MAX // SENDING_SHARE
    world.run(2)
    world.loop.seal_all()
    world.run(2)

    assert set(world.bucket.stored()) == {1, 2}
    assert world.in_flight.sending_bytes == 0


def test_a_bundle_that_waits_for_its_index_is_not_counted_as_waiting_for_its_upload(
    world: World,
) -> None:
    """It may wait for ever, and others must not."""
    world.bucket.faults[1] = "index1"
    write(world, 1)
    store(world)
    assert world.in_flight.sealed_bytes > 0
    assert world.in_flight.sending_bytes == 0


def test_reading_ahead_takes_good_files_and_leaves_the_rest_of_the_line(world: World) -> None:
    """The bad file, and those behind it, are there for the next round; nothing is written."""
    for number, good in ((1, True), (2, True), (3, False), (4, True)):
        path = f"{DAY}/m{number}.json"
        world.write(path, content_of(number, good=good), rename=True, announced=True)

    while world.loop.read_ahead():
        pass

    assert world.tally.taken["foo1"] == 2
    assert not world.tally.rejected
    assert not list(world.root.glob("state/*.sealed"))
    assert len(list(world.files())) == 4
    assert [arrival.path[-7:] for arrival in world.loop.todo] == ["m3.json", "m4.json"]

    store(world)
    assert set(world.bucket.stored()) == {1, 2, 4}
    assert world.tally.rejected.total() == 1


def test_a_file_that_fills_no_bundle_is_not_read_ahead(world: World) -> None:
    """It would be rejected, and with -bad-files delete unlinked."""
    path = f"{DAY}/big.json"
    world.write(path, content_of(1)[:-1] + b" " * MAX_BYTES + b"}", rename=True, announced=True)

    assert world.loop.read_ahead() is None

    assert [arrival.path for arrival in world.loop.todo] == [str(world.spool / path)]
    assert not world.tally.rejected


def test_while_the_bucket_fails_nothing_is_read_ahead(world: World) -> None:
    world.bucket.faults = dict.fromkeys(range(100), "down")
    write(world, 1)
    store(world)
    assert world.loop.fails
    write(world, 2)
    assert world.loop.read_ahead() is None


def test_on_a_full_disk_undeletable_files_hold_up_no_other_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their record keeps the journal's reserve, for which the next one does not wait."""
    with small_disk(tmp_path / "disk", 20) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with closing(World()) as world:
            write(world, 1)
            world.write(f"{DAY}/m2.json", content_of(2), rename=True, announced=False)
            fill(disk / "ballast")
            world.disk.undeletable = {"m1.json"}
            store(world)
            world.run(1)
            assert world.in_flight.undeletable
            world.arrived.append(Arrival(str(world.spool / DAY / "m2.json"), How.EVENT))
            store(world)
            world.run(1)
            assert set(world.bucket.stored()) == {1, 2}
