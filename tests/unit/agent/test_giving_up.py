"""Give up the oldest unsent files: which go, and what must be written before."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from jostler.agent import giving_up
from jostler.agent.disk_lack import Space
from jostler.agent.low_disk import space_of
from jostler.agent.oldest import oldest
from jostler.bundle import FileState, InFlightBundles, Journal, Rejection, State
from jostler.config import MinFree
from jostler.format.row import DISK_LACK
from tests.support.disk import fill, small_disk
from tests.unit.agent.world import PLENTY, World, content_of
from tests.unit.bundle.parts import header, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.bundle import Record

DAY = "foo1/2026/01/02"


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def write(world: World, *names: str) -> None:
    for number, name in enumerate(names):
        content = content_of(number)
        world.write(f"{DAY}/{name}.json", content, rename=False, announced=False)


def left(world: World) -> list[str]:
    return [path.stem for path in world.files()]


def test_each_file_that_goes_has_one_row(world: World) -> None:
    """And is counted once."""
    write(world, "a", "b")
    world.left.overdue.add(f"{DAY}/a.json")
    assert world.give_up() == 2
    assert (left(world), world.left.overdue) == ([], set())
    world.run(3)
    assert world.bucket.given_up() == {f"{DAY}/a.json": 1, f"{DAY}/b.json": 1}
    assert world.tally.given_up == {"foo1": 2}
    assert world.journal.load() == ([], [])


def test_no_more_go_than_is_needed(world: World) -> None:
    """The oldest of the oldest day."""
    write(world, "a", "b", "c")
    for nth, name in enumerate(("b", "c", "a")):  # their ctime is that of the test
        time_ns = 4 * 10**18 + nth * 10**9
        os.utime(world.spool / DAY / f"{name}.json", ns=(time_ns, time_ns))
    found = oldest(str(world.spool), ["foo1"], lambda path, name: True, 10)
    assert [Path(file.path).stem for file in found] == ["b", "c", "a"]
    space = Space(free_bytes=999, size_bytes=2000, limit_bytes=800, inode_bytes=1)
    assert world.giving_up.give_up(space) == 2  # the record takes an inode, too
    assert left(world) == ["a"]


def test_files_of_bundles_stay(world: World) -> None:
    """They may be stored already."""
    write(world, "a")
    world.scan()
    world.loop.step()
    write(world, "b")
    assert world.give_up() == 1
    assert left(world) == ["a"]


def test_nothing_goes_if_the_record_cannot_be_written(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even without a reserve, where a bundle may go without; later all do, each named."""
    write(world, "a", "b")

    def full(_journal: Journal, _record: Record) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_write", full)
        patch.setattr("jostler.bundle.reserve.Reserve.write", lambda *_: False)
        assert world.give_up() == 0
        assert left(world) == ["a", "b"]
        world.write(f"{DAY}/c.json", content_of(2), rename=False, announced=False)
        assert world.give_up() == 0
        assert world.in_flight.files == 2  # one list waits, not one more each second
    world.run(3)
    assert left(world) == ["c"]
    assert world.bucket.given_up().total() == world.tally.given_up["foo1"] == 2
    named = [one.fields["file"] for one in caplog.records if one.message == "file.given_up"]  # type: ignore[attr-defined]
    assert named == [f"{DAY}/a.json", f"{DAY}/b.json"]


def test_on_a_disk_that_is_full_again_at_once_list_after_list_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a reserve: what the files before it have freed, before the disk is full again."""
    monkeypatch.setattr(giving_up, "FILES_MOST", 1)
    with small_disk(tmp_path / "disk", 20) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with closing(World()) as world:
            for number in range(3):
                content = content_of(number).ljust(200_000)
                world.write(f"{DAY}/{number}.json", content, rename=False, announced=False)
            for _ in range(3):
                fill(disk / "ballast")
                assert world.give_up() == 1
            world.run(5)
            assert world.bucket.given_up().total() == 3


def test_a_file_that_cannot_be_unlinked_is_listed_once_and_never_taken(world: World) -> None:
    write(world, "a", "b")
    world.disk.undeletable = {"a.json"}
    assert world.give_up() == 2
    assert world.giving_up.give_up(structs.replace(PLENTY, free_bytes=0)) == 0
    world.scan()
    world.run(3)
    assert left(world) == ["a"]
    world.disk.undeletable.clear()
    world.run(5)
    assert left(world) == []
    assert world.bucket.given_up().total() == 2
    assert not world.bucket.stored()


def test_a_list_whose_name_another_has_gets_a_new_one(world: World) -> None:
    """Its files are gone; nothing else tells of them."""
    write(world, "a", "b")
    world.bucket.faults[1] = "data"
    world.give_up()
    world.run(5)
    assert world.bucket.foreign
    assert world.bucket.given_up().total() == 2


@pytest.mark.parametrize("is_newer_first", [True, False])
def test_a_process_that_dies_with_both_lists_in_the_journal_leaves_one_bundle(
    world: World, *, is_newer_first: bool
) -> None:
    """The next one gives the older list up again, and has the newer one already."""
    write(world, "a", "b")
    world.disk.undeletable = {"b.json"}
    world.bucket.next_taken = "data"
    world.give_up()
    # The new record gets its name; its directory cannot be synced, nor can it be written again.
    world.disk.failing_syncs = {world.disk.syncs + 1, world.disk.syncs + 2}
    world.loop.step()
    world.uploads.carry(6)
    assert len(world.journal.load()[0]) == 2

    world.start()
    if is_newer_first:
        world.uploads.jobs.rotate()
        world.uploads.carry(20)
        world.uploads.jobs.rotate()
    world.run(1)
    world.start()  # and once more, wherever that one was
    world.disk.undeletable.clear()
    world.run(5)

    assert world.bucket.given_up() == {f"{DAY}/a.json": 1, f"{DAY}/b.json": 1}
    assert world.journal.load() == ([], [])
    assert (world.in_flight.files, list(world.files())) == (0, [])


def test_a_list_takes_no_path_from_an_older_bundle() -> None:
    """That has been open since before, and has the new file of a path that was given up."""
    bundles = InFlightBundles()
    older, listed = record_of(1, header()), record_of(1, header(microsecond=2))
    (path,) = older.paths
    why = Rejection(datatype="foo1", reason=DISK_LACK, detail="")
    first = bundles.replay(older, 0.0)
    bundles.replay(replace(listed, rejections={path: why}), 0.0)
    assert bundles.owner(path) is first


def test_lists_that_wait_take_no_memory(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only their names are kept, however many there are; they are sent one after the other."""
    monkeypatch.setattr(giving_up, "FILES_MOST", 1)
    write(world, "a", "b", "c")
    while world.give_up():
        pass
    assert world.giving_up.unsent == 3
    assert world.in_flight.held_bytes == 0
    world.giving_up.send()
    world.giving_up.send()
    assert [one.state for one in world.in_flight] == [State.JOURNALLED]
    world.run(5)
    assert world.bucket.given_up().total() == 3


def test_the_oldest_day_goes_first_whatever_the_datatype(tmp_path: Path) -> None:
    """Hidden files, links and what may not go are passed over."""
    for path in ("b1/2026/01/01/x.json", "a1/2026/01/02/y.json", "b1/2026/01/01/.h.json"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "a1/2026/01/01").symlink_to(tmp_path)

    def paths(but: str = "") -> list[str]:
        found = oldest(str(tmp_path), ["a1", "b1"], lambda path, _: path != but, 10)
        return [file.path for file in found]

    assert paths() == ["b1/2026/01/01/x.json"]
    assert paths("b1/2026/01/01/x.json") == ["a1/2026/01/02/y.json"]


def test_a_file_that_was_moved_here_waits_since_then(tmp_path: Path) -> None:
    """Its time of change may be years ago."""
    day = tmp_path / DAY
    day.mkdir(parents=True)
    here, moved = day / "here.json", day / "a-moved.json"
    here.touch()
    moved.touch()
    while moved.stat().st_ctime_ns <= here.stat().st_ctime_ns:  # within one tick of the clock
        os.utime(moved, (0, 0))
    found = oldest(str(tmp_path), ["foo1"], lambda path, name: True, 10)
    assert [Path(file.path).name for file in found] == ["here.json", "a-moved.json"]


def test_a_list_that_cannot_be_stored_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another's index has its name."""
    monkeypatch.setattr(giving_up, "FILES_MOST", 1)
    write(world, "a", "b", "c")
    while world.give_up():
        pass
    world.bucket.next_taken = "index1"
    world.run(5)
    assert world.bucket.given_up().total() == 2


def test_what_the_agent_never_takes_does_not_go(world: World) -> None:
    """Whatever it is, it is not the agent's."""
    write(world, "a")
    (world.spool / DAY / "a.txt").touch()
    assert world.give_up() == 1
    assert (world.spool / DAY / "a.txt").exists()


def test_a_bad_file_that_stays_does_not_go(world: World) -> None:
    """Somebody is to look at it: its bytes are nowhere else."""
    write(world, "bad", "b")
    world.left.finish(f"{DAY}/bad.json", FileState.of((world.spool / DAY / "bad.json").stat()))
    assert world.give_up() == 1
    assert left(world) == ["bad"]


def test_a_file_that_is_written_or_has_just_changed_does_not_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its service has not closed it yet, or may not have."""
    write(world, "a", "b")
    monkeypatch.setattr(world.giving_up, "_young_ns", 3_600_000_000_000)
    space = structs.replace(PLENTY, free_bytes=0)
    assert world.giving_up.give_up(space) == 0
    assert (world.giving_up.unsent, world.journal.load()) == (0, ([], []))  # no list of none
    monkeypatch.setattr(world.giving_up, "_young_ns", -1)
    seen = giving_up._seen

    def writing(directories: Any, path: str) -> Any:  # noqa: ANN401 - some file systems have no leases
        state, at_us, _ = seen(directories, path)
        return state, at_us, path.endswith("a.json")

    monkeypatch.setattr(giving_up, "_seen", writing)
    assert world.give_up() == 1
    assert left(world) == ["a"]


@pytest.mark.parametrize("inodes", [0, 400])
def test_small_files_go_until_the_disk_has_enough_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inodes: int
) -> None:
    """Each takes a block and an inode, and so does their record: not all go for nothing."""
    with small_disk(tmp_path / "disk", 40, inodes) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with closing(World()) as world:
            for number in range(300):
                content = content_of(number)
                world.write(f"{DAY}/{number}.json", content, rename=False, announced=False)
            seen = space_of(disk, MinFree(size_bytes=1))
            assert bool(seen.inode_bytes) == bool(inodes)
            block = seen.inode_bytes or 4096
            min_free = MinFree(size_bytes=(seen.free_bytes + 40 * block) * 4 // 5 - 100)
            assert 40 <= world.giving_up.give_up(space_of(disk, min_free)) <= 60
            after = space_of(disk, min_free)
            assert after.free_bytes >= after.enough_bytes
