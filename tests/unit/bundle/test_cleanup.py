"""Clean-up: what is durable is unlinked, and nothing else."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Cleanup, Confined, Entry, Journal, OpenBundle, Record, Stored
from jostler.bundle.file import content_hash, read_file
from jostler.log import EveryMinute
from tests.unit.bundle.parts import header

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.bundle import Outcome


class Spool:
    """Files in a directory, and the bundle that holds all of them."""

    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.paths = [f"foo1/2026/01/02/{name}" for name in names]
        for path in self.paths:
            self.write(path, b'{"UUID":"first"}')

    def write(self, path: str, content: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def record(self) -> Record:
        opened = OpenBundle(header(), opened_s=0.0)
        for path in self.paths:
            read = read_file(Confined(str(self.root)), path, 1000)
            entry = Entry(path, read.state, 10**15, content_hash(read.content))
            opened.add(entry, opened.row(entry.filename, read.content))
        return Record.of(opened.seal())


class Undeletable:
    """unlink(2) that refuses some names, as a directory of another user does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        self._unlink = os.unlink
        monkeypatch.setattr(os, "unlink", self)

    def __call__(self, path: str, *, dir_fd: int | None = None) -> None:
        if os.path.basename(path) in self.names:  # noqa: PTH119 - as os.unlink takes it
            raise PermissionError(13, "Permission denied", path)
        self._unlink(path, dir_fd=dir_fd)


def to_the_end(cleanup: Cleanup) -> Outcome:
    while (outcome := cleanup.step(1)) is None:
        pass
    return outcome


def test_a_second_clean_up_looks_only_at_what_the_first_could_not_unlink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given back or is gone may by now be in another bundle."""
    spool = Spool(tmp_path / "spool", "gone.json", "changed.json", "stays.json")
    journal = Journal(tmp_path / "state")
    with journal.open() or pytest.fail("locked"):
        record = replace(spool.record(), stored=True)
        journal.write(record)
        undeletable = Undeletable(monkeypatch)
        undeletable.names = {"stays.json"}
        gone, changed, stays = spool.paths
        spool.write(changed, b'{"UUID":"second"}')
        files = Confined(str(spool.root))
        cleanup = Cleanup(Stored(record=record, started_s=0.0), files, journal, EveryMinute())
        first = to_the_end(cleanup)
        assert (first.gone, first.again) == ({gone}, {changed})
        assert first.undeletable

        spool.write(gone, b'{"UUID":"third"}')
        undeletable.names = set()
        second = to_the_end(first.undeletable)

        assert (second.gone, second.again, second.undeletable) == ({stays}, frozenset(), None)
        assert journal.load() == ([], [])
        assert (spool.root / gone).read_bytes() == b'{"UUID":"third"}'
        assert (spool.root / changed).read_bytes() == b'{"UUID":"second"}'
