"""What happens when the queue, the buffer or the watches run out."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from inotify_simple import INotify

from jostler.watchdir import How, Pace, ScanReason
from jostler.watchdir.inotify import InotifyArrivals, Watches
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.watchdir.conftest import Reader, Watch

EVENT, SCAN = How.EVENT, How.SCAN


def write_nothing(root: Path) -> None:
    (root / "a.json").touch()


def link_in(root: Path) -> None:
    (root.parent / "out").touch()
    os.link(root.parent / "out", root / "a.json")


def test_every_file_of_an_overflow_is_reported(reader: Reader, root: Path) -> None:
    """The kernel keeps 16,384 events and drops the rest; a scan makes up for them."""
    (root / "2026").mkdir()
    reader.until_linked()
    names = {f"2026/{n}.json" for n in range(10_000)}  # two events each
    for name in names:
        os.close(os.open(f"{root}/{name}", os.O_CREAT | os.O_WRONLY))
    (root / "2027").mkdir()
    (root / "2027" / "a.json").touch()

    assert names | {"2027/a.json"} <= {a.path for a in reader.until_idle()}
    counts = reader.arrivals.counts
    assert counts.overflows == 1
    assert counts.scans[ScanReason.OVERFLOW] == 1
    (root / "2027" / "b.json").touch()
    assert reader.until_linked() == [("2027/b.json", EVENT)]  # its own creation was dropped


@pytest.mark.parametrize("make", [write_nothing, link_in], ids=["closed", "linked"])
def test_every_file_is_reported_when_the_buffer_is_full(
    watch: Watch, root: Path, make: Callable[[Path], None]
) -> None:
    """What does not fit is found by a scan once the buffer has drained."""
    reader = watch(Pace(buffer_limit=10, hint_after_s=0.05))
    names = {f"{n}/a.json" for n in range(100)}
    for name in names:
        (root / name).parent.mkdir()
    reader.until_linked()
    for name in names:
        make((root / name).parent)

    taken = reader.until(lambda taken: names <= {a.path for a in taken}, most=7)
    assert {a.path for a in taken} >= names
    assert reader.arrivals.counts.dropped > 0
    assert reader.arrivals.counts.scans[ScanReason.BACKLOG] > 0


def test_files_are_counted_when_they_are_closed_and_not_when_there_is_room(
    watch: Watch, root: Path
) -> None:
    """Nobody takes any for a while; those that are left to a scan are counted apart."""
    reader = watch(Pace(buffer_limit=2))
    for name in ("a.json", "b.json", "c.json", "d.json"):
        (root / name).touch()
    (root / "a.json").write_bytes(b"{}")  # still in line: no arrival of its own
    assert reader.arrivals.take(0) == []

    counts = reader.arrivals.counts

    assert counts.closed == {str(root): 4}
    assert counts.unheld == {str(root): 2}


def test_a_link_that_falls_due_while_the_buffer_is_full_is_reported(
    watch: Watch, root: Path
) -> None:
    """A hint leaves its own place before it finds one among the arrivals."""
    reader = watch(Pace(buffer_limit=2, hint_after_s=0.05))
    names = {"0.json", "1.json", "2.json"}
    for name in sorted(names)[:2]:
        (root / name).touch()
    os.link(root / "0.json", root / "2.json")
    reader.arrivals.pause(0.1)

    assert {a.path for a in reader.until_seen(names)} == names


def test_a_new_directory_larger_than_the_buffer_is_reported_whole(watch: Watch, root: Path) -> None:
    """Reading it at once must not hold it all in memory."""
    reader = watch(Pace(buffer_limit=10))
    (root.parent / "out").mkdir()
    names = {f"day/{n}.json" for n in range(100)}
    for name in names:
        (root.parent / "out" / name.removeprefix("day/")).touch()
    (root.parent / "out").rename(root / "day")

    reader.arrivals.take(0)
    assert reader.arrivals.waiting == 10
    assert {a.path for a in reader.until_seen(names)} == names


def test_only_a_root_may_be_a_link(tmp_path: Path) -> None:
    """A directory that is replaced by a link between our two looks at it is not watched."""
    (tmp_path / "link").symlink_to(tmp_path)
    with INotify() as kernel:
        watches = Watches(kernel)
        with pytest.raises(NotADirectoryError):
            watches.add(f"{tmp_path}/link", follow=False)
        watches.add(f"{tmp_path}/link", follow=True)
        assert list(watches.paths.values()) == [f"{tmp_path}/link"]


class Scarce(INotify):
    """An inotify instance with few watches."""

    left = 2

    def add_watch(self, path: str, mask: int) -> int:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.left -= 1
        return super().add_watch(path, mask)


def test_directories_without_a_watch_are_scanned_until_they_get_one(
    watch: Watch, root: Path
) -> None:
    """ENOSPC leaves a part to scans, which is said, and mended as soon as there are watches."""
    for name in ("a", "b", "c"):
        (root / name).mkdir()
    kernel = Scarce()
    pace = Pace(scan_every_s=0.05)
    arrivals = InotifyArrivals((str(root),), Wanted((".json",)), pace, kernel)
    reader = watch(arrivals=arrivals)

    assert arrivals.counts.unwatched > 0
    assert "without a watch" in arrivals.degraded
    (root / "c" / "a.json").touch()
    assert reader.until_seen({"c/a.json"}) == [("c/a.json", SCAN)]

    kernel.left = 100
    reader.until(lambda _: not arrivals.degraded)
    assert arrivals.degraded == ""
    assert arrivals.counts.watches == 4
    (root / "c" / "b.json").touch()
    assert ("c/b.json", EVENT) in reader.until_seen({"c/b.json"})
