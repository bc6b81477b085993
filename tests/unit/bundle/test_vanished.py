"""Stored files whose path was gone, remembered over restarts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jostler.bundle import Journal, vanished
from tests.support.disk import fill, small_disk


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    """The latest content of a path counts; a line that was cut off is passed over."""
    file = tmp_path / "vanished"
    assert vanished.read(file) == {}

    vanished.append(file, {"foo1/2026/01/02/a.json": b"\1" * 16, "foo1/2026/01/02/b.json": b"\2"})
    vanished.append(file, {"foo1/2026/01/02/a.json": b"\3" * 16, "bad\udcff.json": b"\4"})
    os.truncate(file, len(file.read_bytes().rstrip(b"\0")))
    with file.open("ab") as out:
        out.write(b'["foo1/2026/01/02/c.js')

    expected = {"foo1/2026/01/02/a.json": b"\3" * 16, "foo1/2026/01/02/b.json": b"\2"}
    assert vanished.read(file) == expected
    vanished.append(file, {"foo1/2026/01/02/d.json": b"\5"})
    assert vanished.read(file) == {**expected, "foo1/2026/01/02/d.json": b"\5"}


def test_the_file_and_its_name_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file whose directory was not synced may be gone after a power failure."""
    file = tmp_path / "vanished"
    synced: list[Path] = []
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink())
    )

    vanished.append(file, {"a.json": b"\1"})

    assert synced == [file, tmp_path]


def test_only_the_latest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file does not grow for ever."""
    monkeypatch.setattr(vanished, "REMEMBERED_MOST", 3)
    file = tmp_path / "vanished"
    vanished.append(file, {f"{n}.json": bytes([n]) for n in range(9)})

    assert list(vanished.read(file)) == ["6.json", "7.json", "8.json"]
    assert file.read_bytes().count(b".json") == 3


def test_a_full_disk_forgets_nothing(tmp_path: Path) -> None:
    """Space for the lines was allocated while there was some."""
    with small_disk(tmp_path / "disk", 20) as disk:
        journal = Journal(disk / "state")
        with journal.open() or pytest.fail("locked"):
            fill(disk / "ballast")
            gone = {f"foo1/2026/01/02/{n}.json": bytes([n]) * 16 for n in range(200)}
            journal.add_vanished(gone)
            assert Journal(disk / "state").vanished() == gone
