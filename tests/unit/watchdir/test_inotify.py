"""What the kernel tells, on a real file system."""

from __future__ import annotations

import mmap
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from jostler.watchdir import Arrival, How, ScanReason

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.watchdir.conftest import Reader

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
