"""What the agent does while the spool's disk lacks space, each action by itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jostler.agent.disk_lack import Space
from jostler.agent.low_disk import NOTHING_TO_GIVE_UP_S, LowDisk
from jostler.config import DiskLackAction
from jostler.full_sign import RENEW_S, FullSign, is_full, path_of
from tests.unit.agent.world import World, content_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FLUSH, STOP, REMOVE_OLDEST = DiskLackAction
FULL = Space(free_bytes=100, size_bytes=10_000, limit_bytes=1_000)
EMPTY = Space(free_bytes=9_000, size_bytes=10_000, limit_bytes=1_000)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


class Watched:
    """A disk that has what it is told to have; None: it cannot be looked at."""

    def __init__(self, world: World, action: DiskLackAction, space: Space | None = FULL) -> None:
        self.space = space
        self.low = LowDisk(
            action,
            self._look,
            FullSign(world.spool),
            giving_up=world.giving_up,
            open_bundles=world.open_bundles,
            in_flight=world.in_flight,
        )

    def _look(self) -> Space:
        if self.space is None:
            raise FileNotFoundError
        return self.space


def write(world: World, number: int, *, taken: bool = False) -> None:
    path = f"foo1/2026/01/02/m{number}.json"
    world.write(path, content_of(number), rename=True, announced=taken)
    if taken:
        world.loop.step()


def waiting(world: World) -> int:
    return len(list(world.files()))


@pytest.mark.parametrize("action", DiskLackAction)
def test_files_are_given_up_only_if_that_is_asked_for(world: World, action: DiskLackAction) -> None:
    """However full the disk is, and whatever fails."""
    write(world, 1)
    disk = Watched(world, action).low
    for now_s in range(100):
        disk.keep(float(now_s), fails=True, held_up=True)
    gone = action is REMOVE_OLDEST
    assert waiting(world) == (not gone)
    assert bool(disk.view.given_up_s) == gone


def test_while_bundles_cannot_be_stored_none_is_sealed_early(world: World) -> None:
    """Smaller bundles would free nothing; when they can be stored again, they are sealed."""
    write(world, 1, taken=True)
    disk = Watched(world, FLUSH).low
    assert not disk.keep(0.0, fails=True, held_up=True)
    assert world.open_bundles.open_bundles
    assert not disk.keep(1.0, fails=False, held_up=False)
    assert not world.open_bundles.open_bundles
    assert len(world.uploads.jobs) == 1


def test_where_nothing_can_be_given_up_the_spool_is_not_read_each_second(world: World) -> None:
    disk = Watched(world, REMOVE_OLDEST).low
    assert not disk.keep(0.0, fails=True, held_up=True)
    write(world, 1)
    assert not disk.keep(NOTHING_TO_GIVE_UP_S - 1, fails=True, held_up=True)
    assert disk.keep(NOTHING_TO_GIVE_UP_S, fails=True, held_up=True)


def test_with_stop_one_bundle_goes_after_the_other(world: World) -> None:
    """Until its files are gone; one that fails by itself holds up none."""
    disks = {action: Watched(world, action).low for action in DiskLackAction}
    for disk in disks.values():
        disk.watch(0.0)

    def refusing() -> list[DiskLackAction]:
        return [action for action, disk in disks.items() if disk.refuses]

    write(world, 1, taken=True)
    assert refusing() == []
    world.loop.seal_all()
    assert refusing() == [STOP]
    world.cleaning.beside = True
    world.uploads.carry(20)
    world.loop.deliver()
    assert refusing() == [STOP]
    world.cleaning.work(20)
    world.loop.deliver()
    assert (refusing(), waiting(world)) == ([], 0)

    world.bucket.next_taken = "index1"
    write(world, 2, taken=True)
    world.loop.seal_all()
    world.uploads.carry(20)
    world.loop.deliver()
    assert (refusing(), waiting(world)) == ([], 1)


def test_the_status_says_since_when_it_lacks_and_for_how_much(world: World) -> None:
    """A disk that cannot be looked at has changed in nothing."""
    watched = Watched(world, STOP, EMPTY)
    disk = watched.low
    disk.watch(0.0)
    assert (disk.view.lacks, disk.view.since_s) == (False, 0.0)
    watched.space = FULL
    disk.watch(1.0)
    seen = disk.view
    assert (seen.lacks, seen.limit_bytes, seen.limit) == (True, 1_000, "1000 B")
    assert seen.since_s > 0
    disk.watch(2.0)
    watched.space = None
    disk.watch(3.0)
    assert disk.view == seen
    watched.space = EMPTY
    disk.watch(4.0)
    assert (disk.view.lacks, disk.view.since_s) == (False, 0.0)


@pytest.mark.parametrize("action", DiskLackAction)
def test_only_with_stop_services_are_told(world: World, action: DiskLackAction) -> None:
    """The sign's directory is there before the disk has no room for it."""
    sign = path_of(world.spool)
    watched = Watched(world, action, EMPTY)
    with watched.low.watching():
        assert sign.parent.is_dir() == (action is STOP)
        watched.space = FULL
        watched.low.watch(0.0)
        assert sign.exists() == (action is STOP)
    assert not sign.exists()
    sign.parent.mkdir(exist_ok=True)
    sign.touch()  # by an agent that had another action and was killed
    with watched.low.watching():
        assert not sign.exists()


def test_the_sign_is_renewed_each_minute(world: World) -> None:
    """One that is not renewed means nothing; a link in its place leads nowhere."""
    sign, path = FullSign(world.spool), path_of(world.spool)
    sign.show(0.0)
    os.utime(path, (0, 0))
    sign.show(RENEW_S - 1)
    assert not is_full(world.spool)
    sign.show(RENEW_S)
    assert is_full(world.spool)
    path.unlink()
    target = world.root / "of-another"
    path.symlink_to(target)
    sign.show(2 * RENEW_S)
    assert not target.exists()
    sign.clear()
    assert not path.is_symlink()
