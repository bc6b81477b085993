"""When the disk lacks space: begin and end, flushes and giving up, as a pure state."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from jostler.agent.disk_lack import FLUSH_S, FLUSH_SELDOM_S, PATIENCE_S, Lack, Space
from jostler.agent.low_disk import space_of
from jostler.config import MinFree
from tests.support.disk import small_disk

if TYPE_CHECKING:
    import pytest

SIZE, LIMIT, ENOUGH = 100_000, 5_000, 6_250


def space(free: int, *, size: int = SIZE, limit: int = LIMIT) -> Space:
    return Space(free_bytes=free, size_bytes=size, limit_bytes=limit)


def lacking(now_s: float = 0.0, free: int = LIMIT - 1) -> Lack:
    return Lack().seen(space(free), now_s, held_up=True)


@given(frees=st.lists(st.integers(0, SIZE), max_size=100))
def test_a_lack_begins_below_the_limit_and_ends_a_quarter_above(frees: list[int]) -> None:
    """Whatever the disk does; in between nothing changes."""
    lack = Lack()
    for second, free in enumerate(frees):
        before, lack = lack, lack.seen(space(free), float(second), held_up=False)
        assert lack.lacks == (free < LIMIT or (before.lacks and free < ENOUGH))


@given(
    frees=st.lists(st.integers(LIMIT, ENOUGH - 1), min_size=1, max_size=100), began=st.booleans()
)
def test_space_that_wavers_around_the_limit_changes_nothing(
    frees: list[int], *, began: bool
) -> None:
    lack = lacking() if began else Lack()
    for second, free in enumerate(frees):
        lack = lack.seen(space(free), float(second), held_up=True)
        assert lack.lacks == began


@given(
    steps=st.lists(
        st.tuples(st.integers(0, SIZE), st.integers(0, 10_000), st.floats(0.0, 100.0)), max_size=200
    )
)
def test_bundles_are_flushed_at_most_once_a_minute(
    steps: list[tuple[int, int, float]],
) -> None:
    """However space and bundles come and go; seldom, if they hold little; never without a lack."""
    lack, now_s = Lack(), 0.0
    flushes: list[float] = []
    for free, open_bytes, later_s in steps:
        now_s += later_s
        seen = space(free)
        lack = lack.seen(seen, now_s, held_up=False)
        if lack.flush_due(seen, open_bytes, now_s):
            assert lack.lacks
            assert open_bytes
            if flushes and open_bytes <= LIMIT // 100:
                assert now_s - flushes[-1] >= FLUSH_SELDOM_S
            flushes.append(now_s)
            lack = lack.flushed(now_s)
    assert all(b - a >= FLUSH_S for a, b in pairwise(flushes))


def test_the_first_flush_is_at_once() -> None:
    assert lacking().flush_due(space(LIMIT - 1), 1, 0.0)
    assert not lacking().flush_due(space(LIMIT - 1), 0, 0.0)


def test_files_are_kept_while_they_can_be_sent() -> None:
    """However full the disk is."""
    lack = Lack()
    for second in range(1000):
        lack = lack.seen(space(0), float(second), held_up=False)
        assert not lack.gives_up


def test_files_are_kept_for_a_minute_unless_half_of_the_limit_is_gone() -> None:
    assert lacking(free=LIMIT // 2 - 1).gives_up
    lack = lacking(0.0)
    assert not lack.seen(space(LIMIT - 1), PATIENCE_S - 1, held_up=True).gives_up
    assert lack.seen(space(LIMIT - 1), PATIENCE_S, held_up=True).gives_up


def test_files_are_kept_while_space_comes_back() -> None:
    """By more than a hundredth of the limit each minute."""
    lack = lacking(0.0, free=3000)
    for minute in range(1, 30):
        lack = lack.seen(space(3000 + 51 * minute), minute * 59.0, held_up=True)
        assert not lack.gives_up


def test_a_little_space_that_comes_back_does_not_put_off_the_giving_up() -> None:
    """A byte each minute would keep all files, and the disk full."""
    lack = lacking(0.0, free=3000)
    for minute in range(1, 40):
        lack = lack.seen(space(3000 + minute), minute * 59.0, held_up=True)
    assert lack.gives_up


def test_giving_up_goes_on_until_there_is_enough_or_files_can_be_sent() -> None:
    lack = lacking(free=100)
    for free in (LIMIT // 2, LIMIT, ENOUGH - 1):
        lack = lack.seen(space(free), 1.0, held_up=True)
        assert lack.gives_up
    assert not lack.seen(space(ENOUGH), 2.0, held_up=True).gives_up
    assert not lack.seen(space(LIMIT), 2.0, held_up=False).gives_up


@given(size=st.integers(0, 1 << 45), limit=st.integers(0, 1 << 45))
def test_every_lack_can_end(size: int, limit: int) -> None:
    """On a disk that is larger than the limit: so much can be free that it ends."""
    enough = space(0, size=size, limit=limit).enough_bytes
    assert limit <= enough <= max((limit + size) / 2, limit)
    assert enough <= limit * 5 / 4


def test_the_limit_is_a_share_or_bytes() -> None:
    assert MinFree(share=0.05).of(1000) == 50
    assert MinFree(size_bytes=7).of(1000) == 7
    assert not Lack().seen(space(0, limit=0), 0.0, held_up=True).lacks


def test_inodes_count_if_they_are_the_scarcer(tmp_path: Path) -> None:
    """Small files use them up first; their share is compared with the limit's."""
    with small_disk(tmp_path / "disk", 20, inodes=1000) as disk:
        (disk / "large").write_bytes(bytes(1 << 20))
        bytes_count = space_of(disk, MinFree(share=0.05))
        for number in range(960):
            (disk / f"{number}").touch()
        seen = space_of(disk, MinFree(share=0.05))
        (disk / "more").touch()
        less = space_of(disk, MinFree(share=0.05))
        free = os.statvfs(disk).f_favail
    assert bytes_count.inode_bytes == 0
    assert bytes_count.free_bytes == 19 << 20
    assert Lack().seen(seen, 0.0, held_up=False).lacks
    assert seen.free_bytes - less.free_bytes == seen.of_file(7) == (20 << 20) // 1000
    assert less.shown(less.free_bytes) == f"{free} inodes"
    assert bytes_count.of_file(7) == 7
    assert bytes_count.shown(bytes_count.limit_bytes) == "1.0 MiB"


def test_a_disk_that_counts_no_inodes_lacks_none(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        assert os.statvfs(disk).f_files == 0
        assert space_of(disk, MinFree(share=0.05)).free_bytes == 1 << 20


def test_what_ext4_keeps_for_root_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services do not run as root."""
    kept = os.statvfs_result((4096, 4096, 1000, 100, 60, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: kept)
    assert space_of(Path("/"), MinFree(share=0.05)).free_bytes == 60 * 4096
