"""The spool's files are opened without any link leading out of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import (
    Confined,
    NotAFileError,
    confined,
    read_file,
)
from tests.unit.bundle.test_cleanup import Spool

if TYPE_CHECKING:
    from jostler.bundle.confined import Opener

DAY = "foo1/2026/01/02"
OPENERS = [confined.open_by_kernel, confined.open_by_components]


@pytest.fixture(params=OPENERS, ids=["kernel", "components"])
def opener(request: pytest.FixtureRequest) -> Opener:
    chosen: Opener = request.param
    return chosen


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def make_it_a_link(directory: Path, target: Path) -> None:
    """Put a link in the place of a directory, which is renamed away."""
    directory.rename(directory.with_name("away"))
    directory.symlink_to(target)


@pytest.mark.parametrize("part", ["foo1", "foo1/2026", DAY])
def test_a_directory_that_became_a_link_is_not_entered(
    opener: Opener, tmp_path: Path, part: str
) -> None:
    """Neither to read a file, nor to look at it, nor to unlink one that has the same bytes."""
    outside = Spool(tmp_path / "outside", "secret.json")
    spool = Spool(tmp_path / "spool", "secret.json")
    (path,) = spool.paths
    files = Confined(str(spool.root), opener=opener)
    make_it_a_link(spool.root / part, outside.root / part)

    cleaned = spool.cleaned(files=files)

    for look in (lambda: read_file(files, path, 100), lambda: files.status(path)):
        with pytest.raises(NotAFileError):
            look()
    assert list(cleaned.vanished) == [path]
    assert (outside.root / path).exists()


@pytest.mark.parametrize(
    "path", ["../secret", f"{DAY}/../../../../../secret", "/secret", f"{DAY}/.."]
)
def test_no_path_leads_upwards(opener: Opener, tmp_path: Path, path: str) -> None:
    spool = Spool(tmp_path / "spool", "good.json")
    (tmp_path / "secret").write_bytes(b"{}")
    files = Confined(str(spool.root), opener=opener)
    with pytest.raises(NotAFileError):
        read_file(files, path, 100)
    with pytest.raises(NotAFileError), files.directories() as directories:
        directories.of(path)


def test_what_is_no_link_is_told_as_the_system_tells_it(opener: Opener, tmp_path: Path) -> None:
    """A file that is gone, a file in a directory's place, and the good one beside them."""
    spool = Spool(tmp_path / "spool", "good.json")
    files = Confined(str(spool.root), opener=opener)
    assert read_file(files, spool.paths[0], 100).content == b'{"UUID":"first"}'
    assert files.status(spool.paths[0]).st_size == 16
    for path, error in (
        (f"{DAY}/none.json", FileNotFoundError),
        ("foo1/1999/x.json", FileNotFoundError),
        (f"{DAY}/good.json/x.json", NotADirectoryError),
    ):
        with pytest.raises(error):
            read_file(files, path, 100)
        with pytest.raises(error):
            files.status(path)


def test_no_descriptor_is_left_open(opener: Opener, tmp_path: Path) -> None:
    """Whatever fails on the way."""
    spool = Spool(tmp_path / "spool", "good.json")
    files = Confined(str(spool.root), opener=opener)
    before = descriptors()
    for path in (*spool.paths, f"{DAY}/none.json", "foo1/2026/x/y", DAY):
        for look in (lambda p=path: read_file(files, p, 9), lambda p=path: files.status(p)):
            try:
                look()
            except OSError:
                continue
    assert descriptors() == before


def test_links_above_the_spool_are_the_operators(opener: Opener, tmp_path: Path) -> None:
    """They are followed, and looked up again when they lead elsewhere."""
    first, second = Spool(tmp_path / "first", "a.json"), Spool(tmp_path / "second", "b.json")
    (tmp_path / "spool").symlink_to(first.root)
    files = Confined(str(tmp_path / "spool"), valid_s=0.0, opener=opener)
    assert read_file(files, first.paths[0], 100).content
    (tmp_path / "spool").unlink()
    (tmp_path / "spool").symlink_to(second.root)
    assert read_file(files, second.paths[0], 100).content
