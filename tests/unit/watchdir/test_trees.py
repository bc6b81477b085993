"""Directories and roots that come, go and change places."""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.watchdir import How, Pace, ScanReason, open_arrivals
from jostler.watchdir.inotify import InotifyArrivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.watchdir.conftest import Reader, Watch

EVENT, SCAN = How.EVENT, How.SCAN


def test_nothing_is_lost_when_directories_are_made_and_written_to_at_once(
    reader: Reader, root: Path
) -> None:
    """Making parents and a write race with the adding of watches, five hundred times."""
    names = {f"{n:03}/01/{m}/{m}.json" for n in range(250) for m in ("02", "03")}

    def produce() -> None:
        for name in sorted(names):
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text("{}")

    producer = threading.Thread(target=produce)
    producer.start()
    taken = reader.until_seen(names)
    producer.join()

    assert {a.path for a in taken} == names
    assert set(reader.arrivals.counts.scans) == {ScanReason.START}


def test_a_directory_moved_in_is_read_and_watched(reader: Reader, root: Path) -> None:
    """Only MOVED_TO tells of it; what it holds is met, what comes later is an event."""
    day = root.parent / "out" / "01" / "02"
    day.mkdir(parents=True)
    (day / "a.json").touch()

    (root.parent / "out").rename(root / "2026")
    assert reader.until_linked() == [("2026/01/02/a.json", SCAN)]
    (root / "2026/01/02/b.json").touch()
    assert reader.until_linked() == [("2026/01/02/b.json", EVENT)]


def kernel_watches(reader: Reader) -> int:
    """Ask the kernel how many watches there are (proc(5))."""
    assert isinstance(reader.arrivals, InotifyArrivals)
    fdinfo = Path(f"/proc/self/fdinfo/{reader.arrivals._inotify.fileno()}")
    return fdinfo.read_text().count("inotify wd:")


def test_a_directory_moved_out_is_forgotten(reader: Reader, root: Path) -> None:
    """Its watches would go on reporting files under paths where they are not."""
    (root / "2026/01/02").mkdir(parents=True)
    reader.until_linked()
    assert reader.arrivals.counts.watches == 4

    (root / "2026").rename(root.parent / "out")
    reader.until_linked()
    assert reader.arrivals.counts.watches == kernel_watches(reader) == 1
    (root / "2026/01/02").mkdir(parents=True)
    (root / "2026/01/02/a.json").touch()
    reader.until_linked()
    (root.parent / "out/01/02/a.json").touch()

    assert reader.until_linked() == []
    assert reader.arrivals.counts.watches == 4


def rename_thrice(root: Path) -> None:
    (root / "a").rename(root / "c")
    (root / "b").rename(root / "a")
    (root / "c").rename(root / "b")


def exchange(root: Path) -> None:
    here, both = -100, 2  # AT_FDCWD, RENAME_EXCHANGE: two renames, of which each undoes a watch
    names = (os.fsencode(root / name) for name in "ab")
    assert ctypes.CDLL(None).renameat2(here, next(names), here, next(names), both) == 0


@pytest.mark.parametrize("change", [rename_thrice, exchange])
def test_directories_that_change_places_are_both_watched(
    reader: Reader, root: Path, change: Callable[[Path], None]
) -> None:
    """Renames that follow each other before anybody reads leave each path its own directory."""
    for name in ("a/x", "b/x"):
        (root / name).mkdir(parents=True)
    reader.until_linked()

    change(root)
    reader.until_linked()
    (root / "a/x/1.json").touch()
    (root / "b/x/2.json").touch()

    assert set(reader.until_linked()) == {("a/x/1.json", EVENT), ("b/x/2.json", EVENT)}


def test_a_directory_renamed_onto_another_takes_its_place(reader: Reader, root: Path) -> None:
    """One path has one watch, though two directories had the name."""
    for name in ("a", "b"):
        (root / name).mkdir()
    reader.until_linked()

    (root / "a").rename(root / "b")
    (root / "b" / "1.json").touch()
    reader.until_linked()
    (root / "b" / "2.json").touch()

    assert reader.until_linked() == [("b/2.json", EVENT)]
    assert reader.arrivals.counts.watches == 2


def test_everything_is_watched_before_the_first_scan(root: Path) -> None:
    """What comes while the first scan works through a backlog is an event, and comes first."""
    (root / "a/b").mkdir(parents=True)
    (root / "a/1.json").touch()
    with open_arrivals([root], extensions=(".json",)) as arrivals:
        assert arrivals.counts.watches == 3
        (root / "a/b/2.json").touch()

        assert arrivals.take(1) == [(f"{root}/a/b/2.json", EVENT)]
        assert arrivals.take(1) == [(f"{root}/a/1.json", SCAN)]
        assert arrivals.scanning


def test_a_directory_that_comes_back_is_watched_again(reader: Reader, root: Path) -> None:
    """Removing strikes out the watch, whatever inode number the successor gets."""
    for _ in range(20):
        (root / "day").mkdir()
        (root / "day" / "a.json").touch()
        assert [a.path for a in reader.until_linked()] == ["day/a.json"]
        shutil.rmtree(root / "day")
    assert reader.until_linked() == []
    assert reader.arrivals.counts.watches == 1


@pytest.mark.parametrize("away", [shutil.rmtree, lambda root: root.rename(root.parent / "away")])
def test_a_root_that_comes_back_is_watched_and_scanned(
    reader: Reader, root: Path, away: Callable[[Path], object]
) -> None:
    """A lost root is counted, looked for, and read once it is there."""
    away(root)
    reader.until(lambda _: reader.arrivals.counts.lost == 1)
    assert reader.arrivals.counts.watches == 0

    root.mkdir()
    (root / "a.json").touch()
    reader.until_seen({"a.json"})
    (root / "b.json").touch()

    assert ("b.json", EVENT) in reader.until_seen({"b.json"})
    assert reader.arrivals.counts.scans[ScanReason.LOST_WATCH] == 1


def test_a_root_whose_parent_is_replaced_is_noticed(watch: Watch, root: Path) -> None:
    """No watch tells of it, for the root's own inode neither moves nor goes."""
    (root / "data").mkdir()
    with open_arrivals(
        [root / "data"], extensions=(".json",), pace=Pace(look_every_s=0.05)
    ) as arrivals:
        reader = watch(arrivals=arrivals)
        root.rename(root.parent / "away")
        (root / "data").mkdir(parents=True)
        (root / "data" / "a.json").touch()

        assert reader.until_seen({"data/a.json"})
        assert arrivals.counts.lost == 1


def test_a_root_that_does_not_exist_is_waited_for(watch: Watch, root: Path) -> None:
    """The service may start after the agent."""
    roots = [root / "first", root / "second" / "deep"]
    with open_arrivals(roots, extensions=(".json",), pace=Pace(look_every_s=0.05)) as arrivals:
        reader = watch(arrivals=arrivals)
        for path in roots:
            path.mkdir(parents=True)
            (path / "a.json").touch()

        reader.until_seen({"first/a.json", "second/deep/a.json"})
        (roots[1] / "b.json").touch()
        assert ("second/deep/b.json", EVENT) in reader.until_seen({"second/deep/b.json"})
        assert ScanReason.APPEARED in arrivals.counts.scans
