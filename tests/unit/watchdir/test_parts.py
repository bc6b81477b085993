"""The parts that need no kernel: names, roots, mounts, the inbox, scans, walking, notices."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.log import RateLimitedLog
from jostler.watchdir import Arrival, How, ScanReason
from jostler.watchdir.inbox import Inbox
from jostler.watchdir.roots import (
    devices_of,
    distinct,
    network_mounts,
    parse,
    remote_type,
)
from jostler.watchdir.scans import Scans
from jostler.watchdir.walk import BREATH_ENTRIES, Wanted, walk

if TYPE_CHECKING:
    from collections.abc import Generator

JSON = Wanted((".json",))
MOUNTINFO = rb"""22 27 0:21 / / rw - overlay overlay rw
23 22 0:22 / /spool rw shared:1 - ext4 /dev/vda rw
24 22 0:23 / /spool/far rw - nfs4 host:/ rw
25 22 0:24 / /mnt/with\040space rw - fuse.gcsfuse bucket rw
26 22 0:25 / /twice rw - nfs host:/ rw
27 26 0:26 / /twice rw - tmpfs tmpfs rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data", ""),
        ("/spool/near", ""),
        ("/spool/far", "nfs4"),
        ("/spool/far/deep", "nfs4"),
        ("/spool/farther", ""),
        ("/spool", "nfs4"),
        ("/mnt/with space/x", "fuse.gcsfuse"),
        ("/twice/x", ""),
    ],
)
def test_a_network_file_system_at_or_below_a_root_is_recognised(path: str, kind: str) -> None:
    """What is mounted last at the longest mount point decides, and what lies below counts."""
    assert remote_type(parse(MOUNTINFO), path) == kind


def test_the_devices_of_network_file_systems_are_known() -> None:
    """Whatever lies above or below them."""
    assert devices_of(MOUNTINFO) == {os.makedev(0, minor) for minor in (23, 24, 25)}


def test_a_local_directory_is_local(tmp_path: Path) -> None:
    """The real table of mounts is understood."""
    assert network_mounts([str(tmp_path)]) == {}


def test_roots_that_another_covers_are_left_out(tmp_path: Path) -> None:
    """Below a hidden directory nothing is covered, for that is not entered."""
    names = ["a", "a/", "a/b", "ab", "a/.x/c", "."]
    roots = distinct([tmp_path / "r" / name for name in names[:-1]], JSON)
    assert [os.path.relpath(root, tmp_path / "r") for root in roots] == ["a", "ab", "a/.x/c"]


def test_the_inbox_holds_each_path_once_and_never_too_many() -> None:
    """What closes was not merely met, in either order; what does not fit is refused."""
    inbox = Inbox(limit=2, hint_after_s=1.0)
    assert inbox.met("a")
    assert inbox.closed("b")
    assert not inbox.closed("c")
    assert not inbox.met("c")
    assert inbox.closed("a")
    assert inbox.met("b")

    assert [inbox.pop(), inbox.pop()] == [Arrival("a", How.EVENT), Arrival("b", How.EVENT)]
    assert len(inbox) == 0


def test_a_creation_is_a_hint_until_its_close_or_its_time() -> None:
    """link(2) gives no other event, and every ordinary file begins with one."""
    inbox = Inbox(limit=2, hint_after_s=1.0)
    inbox.created("closed", 10.0)
    inbox.created("linked", 10.5)
    inbox.closed("closed")
    assert inbox.hint_due_s() == 11.5
    assert inbox.release(11.4)
    assert len(inbox) == 1

    assert inbox.release(11.5)
    assert [inbox.pop(), inbox.pop()] == [("closed", How.EVENT), ("linked", How.SCAN)]
    assert inbox.hint_due_s() is None


def test_creations_that_do_not_fit_are_held_early_and_then_refused() -> None:
    """Files made and never closed cannot fill the memory."""
    inbox = Inbox(limit=2, hint_after_s=1.0)
    assert all(inbox.created(name, 0.0) for name in "abcd")
    assert not inbox.created("e", 0.0)
    assert not inbox.release(1.0)
    assert [inbox.pop().path, inbox.pop().path] == ["a", "b"]


def test_a_scan_asked_for_during_a_scan_follows_it() -> None:
    """A request is neither lost nor stacked."""
    scans = Scans(lambda: (path for path in ("a", None, "b")))
    assert scans.take(5) == []
    scans.ask(ScanReason.START)
    assert scans.take(0) == []
    assert scans.take(5) == ["a"]
    scans.ask(ScanReason.OVERFLOW)
    scans.ask(ScanReason.BACKLOG)
    assert scans.take(1) == ["b"]
    assert scans.take(1) == []
    assert scans.scanning
    assert [*scans.take(9), *scans.take(9)] == ["a", "b"]
    assert not scans.scanning
    assert scans.begun == {ScanReason.START: 1, ScanReason.OVERFLOW: 1}


def walk_all(top: Path, **options: object) -> list[str | None]:
    return list(walk(str(top), JSON, enter=lambda _: True, failed=fail, **options))


def fail(path: str, error: OSError) -> None:
    raise AssertionError(path) from error


def test_a_walk_meets_days_in_order_and_skips_what_is_not_wanted(tmp_path: Path) -> None:
    """Hidden names, links, fifos and other extensions are passed over in silence."""
    for name in ("2026/01/02/x.json", "2025/12/31/y.json", "2026/01/01/z.json", ".h/h.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    for name in (".a.json", "a.txt", "top.json"):
        (tmp_path / name).touch()
    (tmp_path / "dir.json").mkdir()
    (tmp_path / "dir.json/in.json").touch()
    (tmp_path / "to").symlink_to(tmp_path / "2026")
    (tmp_path / "to.json").symlink_to(tmp_path / "a.txt")
    os.mkfifo(tmp_path / "fifo.json")

    assert [os.path.relpath(path, tmp_path) for path in walk_all(tmp_path)] == [
        "top.json",
        "2025/12/31/y.json",
        "2026/01/01/z.json",
        "2026/01/02/x.json",
        "dir.json/in.json",
    ]


def test_a_walk_may_begin_at_a_link_only_when_told(tmp_path: Path) -> None:
    """A root may be a link; a directory replaced by one while we walk is not followed."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.json").touch()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert walk_all(tmp_path / "link") == []
    assert walk_all(tmp_path / "link", follow_top=True) == [f"{tmp_path}/link/a.json"]
    assert walk_all(tmp_path / "absent") == []


def test_a_walk_is_lazy_takes_breath_and_closes_what_it_opened(tmp_path: Path) -> None:
    """A directory full of unwanted files does not hold up the caller; one is open at a time."""
    for n in range(BREATH_ENTRIES + 1):
        (tmp_path / f"{n}.txt").touch()
    before = len(list(Path("/proc/self/fd").iterdir()))
    walking: Generator[str | None] = walk(str(tmp_path), JSON, enter=lambda _: True, failed=fail)
    assert next(walking) is None
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 2
    walking.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_directory_that_cannot_be_read_is_told_and_passed(tmp_path: Path) -> None:
    """The rest is still walked."""
    deep = "d" * 255
    (tmp_path / "b").mkdir()
    (tmp_path / "b/a.json").touch()
    told: list[str] = []

    def enter(path: str) -> bool:
        return not path.endswith("skipped")

    long = f"{tmp_path}/" + "/".join([deep] * 20)
    assert list(walk(long, JSON, enter=enter, failed=lambda path, _: told.append(path))) == []
    assert told == [long]


def test_a_repeating_notice_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """An overflow seldom comes alone."""
    notices = RateLimitedLog("jostler.watchdir")
    for path in "ab":
        notices.warning("watch.overflowed", path=path)
    notices.warning("watch.lost", path="c")

    assert [(r.message, r.fields) for r in caplog.records] == [
        ("watch.overflowed", {"path": "a", "times": 1}),
        ("watch.lost", {"path": "c", "times": 1}),
    ]
    assert {r.levelno for r in caplog.records} == {logging.WARNING}
    last_s, count = notices._every_minute._last["watch.overflowed"]
    notices._every_minute._last["watch.overflowed"] = (last_s - 61, count)
    notices.warning("watch.overflowed", path="d")
    assert caplog.records[-1].fields == {"path": "d", "times": 2}
