"""Clean-up: what is durable is unlinked, and nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Cleaned, Cleanup, Confined, Entry
from jostler.bundle.entry import Entries
from jostler.bundle.file import read_file
from jostler.format.row import content_hash

if TYPE_CHECKING:
    from collections.abc import Container
    from pathlib import Path


class Spool:
    """Files in a directory, as they were read."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.files = Confined(str(root))
        self.paths = [f"foo1/2026/01/02/{name}" for name in names]
        for path in self.paths:
            self.write(path, b'{"UUID":"first"}')
        self.entries = [self._entry(path) for path in self.paths]

    def write(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def _entry(self, path: str) -> Entry:
        read = read_file(self.files, path, 1000)
        return Entry(path, read.state, 10**15, content_hash(read.content))

    def cleaned(self, mine: Container[str] | None = None, files: Confined | None = None) -> Cleaned:
        """Clean up to the end, one file at a time."""
        files = files or self.files
        entries = Entries(self.entries)
        cleanup = Cleanup(entries, lambda path: mine is None or path in mine, files)
        while not cleanup.step(1):
            pass
        return cleanup.cleaned


class Undeletable:
    """unlink(2) that refuses some names, as a directory of another user does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.names = set(names)
        self._unlink = os.unlink
        monkeypatch.setattr(os, "unlink", self)

    def __call__(self, path: str, *, dir_fd: int | None = None) -> None:
        if os.path.basename(path) in self.names:  # noqa: PTH119 - as os.unlink takes it
            raise PermissionError(13, "Permission denied", path)
        self._unlink(path, dir_fd=dir_fd)


def test_each_file_ends_as_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlinked if it is what was stored; else given back, remembered or told of."""
    spool = Spool(tmp_path, "same.json", "changed.json", "gone.json", "stays.json", "big.json")
    Undeletable(monkeypatch, "stays.json")
    same, changed, gone, stays, big = spool.paths
    spool.write(changed, b'{"UUID":"second"}')
    (tmp_path / gone).unlink()
    spool.entries[-1] = spool.entries[-1]._replace(hash=b"")

    cleaned = spool.cleaned()

    assert cleaned.unlinked == [same]
    assert cleaned.changed == [changed]
    assert cleaned.vanished == {gone: spool.entries[2].hash}
    assert cleaned.failed == [stays]
    assert "Permission denied" in cleaned.error
    assert cleaned.kept == {big: spool.entries[-1].state}
    assert (tmp_path / changed).read_bytes() == b'{"UUID":"second"}'
    assert not (tmp_path / same).exists()


def test_a_path_that_another_bundle_has_is_not_looked_at(tmp_path: Path) -> None:
    """Its file is that bundle's to unlink, though its bytes may be equal."""
    spool = Spool(tmp_path, "mine.json", "theirs.json")
    mine, theirs = spool.paths

    cleaned = spool.cleaned(mine=[mine])

    assert cleaned.unlinked == [mine]
    assert not cleaned.changed
    assert (tmp_path / theirs).exists()


@pytest.mark.parametrize("what", ["directory", "link", "pipe", "file-above"])
def test_what_took_the_place_of_a_stored_file_is_nobodys_to_unlink(
    tmp_path: Path, what: str
) -> None:
    """The file itself is gone: nothing is left to wait for."""
    spool = Spool(tmp_path, "m.json")
    path = tmp_path / spool.paths[0]
    path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "link":
        path.symlink_to(tmp_path)
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.parent.rmdir()
        path.parent.write_bytes(b"")

    cleaned = spool.cleaned()

    assert list(cleaned.vanished) == spool.paths
    assert not cleaned.failed
