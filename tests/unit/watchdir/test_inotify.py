"""What the kernel tells, on a real file system."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from inotify_simple import INotify

from jostler.watchdir import Arrival, How, Pace, ScanReason, open_arrivals
from jostler.watchdir.inotify import InotifyArrivals
from jostler.watchdir.wanted import Wanted
from jostler.watchdir.watches import Watches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.watchdir.conftest import Reader, Watch

EVENT, SCAN = How.EVENT, How.SCAN


def write(root: Path) -> None:
    (root / "a.json").write_text("{}")


def write_nothing(root: Path) -> None:
    (root / "a.json").touch()


def copy(root: Path) -> None:
    shutil.copyfile(__file__, root / "a.json")


def rename_in(root: Path) -> None:
    (root.parent / "out").touch()
    (root.parent / "out").rename(root / "a.json")


def rename_here(root: Path) -> None:
    (root / "a.json.tmp").touch()
    (root / "a.json.tmp").rename(root / "a.json")


def rename_from_hidden(root: Path) -> None:
    (root / ".a.json").touch()
    (root / ".a.json").rename(root / "a.json")


def link_in(root: Path) -> None:
    (root.parent / "out").touch()
    os.link(root.parent / "out", root / "a.json")


def link_unnamed(root: Path) -> None:
    unnamed = os.open(root, os.O_TMPFILE | os.O_WRONLY)
    os.link(f"/proc/self/fd/{unnamed}", root / "a.json", src_dir_fd=unnamed, follow_symlinks=True)
    os.close(unnamed)


def map_and_close(root: Path) -> None:
    with (root / "a.json").open("w+b") as file:
        file.truncate(10)
        with mmap.mmap(file.fileno(), 10) as memory:
            memory[:2] = b"{}"


def fifo(root: Path) -> None:
    os.mkfifo(root / "a.json")
    reader = os.open(root / "a.json", os.O_RDONLY | os.O_NONBLOCK)
    os.close(os.open(root / "a.json", os.O_WRONLY))
    os.close(reader)


def symlink(root: Path) -> None:
    (root.parent / "out").touch()
    (root / "a.json").symlink_to(root.parent / "out")


def rename_symlink_in(root: Path) -> None:
    (root.parent / "link").symlink_to(__file__)
    (root.parent / "link").rename(root / "a.json")


def other_extension(root: Path) -> None:
    (root / "a.txt").touch()
    (root / "a.json.tmp").touch()


def hidden(root: Path) -> None:
    (root / ".a.json").touch()


def in_hidden_directory(root: Path) -> None:
    (root / ".state").mkdir()
    (root / ".state" / "a.json").touch()


def in_linked_directory(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    (root / "2026").symlink_to(root.parent / "elsewhere")
    (root / "2026" / "a.json").touch()


def removed(root: Path) -> None:
    (root / "a.json").touch()
    (root / "a.json").unlink()


def read_only(root: Path) -> None:
    (root.parent / "out").touch()
    (root.parent / "out").read_bytes()


def directory_with_extension(root: Path) -> None:
    (root / "a.json").mkdir()


@pytest.mark.parametrize(
    ("happens", "how"),
    [
        (write, EVENT),
        (write_nothing, EVENT),
        (copy, EVENT),
        (rename_in, EVENT),
        (rename_here, EVENT),
        (rename_from_hidden, EVENT),
        (map_and_close, EVENT),
        (link_in, SCAN),
        (link_unnamed, SCAN),
        (fifo, None),
        (symlink, None),
        (rename_symlink_in, None),
        (other_extension, None),
        (hidden, None),
        (in_hidden_directory, None),
        (in_linked_directory, None),
        (removed, None),
        (read_only, None),
        (directory_with_extension, None),
    ],
)
def test_each_way_to_make_a_file_is_reported_once(
    reader: Reader, root: Path, happens: Callable[[Path], None], how: How | None
) -> None:
    """A file closed or renamed in is an event, a link is merely met, all else is nothing."""
    happens(root)

    expected = [] if how is None else [Arrival("a.json", how)]
    assert reader.until_linked() == expected
    reader.arrivals.scan(ScanReason.PERIODIC)
    assert {a.path for a in reader.until_idle()} == {a.path for a in expected}


def test_a_file_still_open_is_met_and_then_reported_at_its_last_close(
    reader: Reader, root: Path
) -> None:
    """CREATE makes a hint; a duplicated descriptor keeps the file open; the close is an event."""
    file = os.open(root / "a.json", os.O_CREAT | os.O_WRONLY)
    again = os.dup(file)
    os.close(file)

    assert reader.until_linked() == [("a.json", SCAN)]
    os.close(again)
    assert reader.until_linked() == [("a.json", EVENT)]


def test_a_name_that_is_created_anew_is_not_reported_as_closed(reader: Reader, root: Path) -> None:
    """The event of a file that was removed says nothing of its successor, which is still open."""
    (root / "a.json").touch()
    reader.arrivals.take(0)
    (root / "a.json").unlink()

    with (root / "a.json").open("w"):
        assert reader.until_linked() == [("a.json", SCAN)]


def test_odd_names_come_back_as_they_are(reader: Reader, root: Path) -> None:
    """A name is bytes; those that are not UTF-8 arrive as surrogates."""
    names = {"\udcff\udc80.json", "new\nline.json", "two  spaces.json", "\u00e9.json"}
    for name in names:
        (root / name).touch()

    assert {a.path for a in reader.until_linked()} == names
    reader.arrivals.scan(ScanReason.PERIODIC)
    assert {a.path for a in reader.until_idle()} == names


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

    assert {a.path for a in reader.until_seen(names, timeout_s=2)} == names


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
