"""A batch holds what the same files give one by one, and ends before the first unusual one."""

from __future__ import annotations

import fcntl
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from msgspec.structs import replace

from jostler.bundle import Batch, BatchRules, FileState, content_hash, read_batch
from jostler.bundle.batch import BATCH_BYTES, SMALL_BYTES
from jostler.format.row import row
from jostler.schema import json_object_flaw
from tests.unit.agent.parts import refuse_leases
from tests.unit.bundle.parts import open_below

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEAD = b'{"date":"2026-01-02","archiver":{"Version":"v","Filename":'
FOLDER = "2026/01/02/"


def count_good(documents: Sequence[bytes]) -> int:
    flaws = map(json_object_flaw, documents)
    return next((nth for nth, flaw in enumerate(flaws) if flaw), len(documents))


RULES = BatchRules(
    head=HEAD,
    folder=FOLDER,
    room_bytes=1 << 20,
    count_good=count_good,
    ask_writer=False,
    lease_suffices=False,
    settled_ns=0,
)


class Directory:
    """A directory whose files are taken together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []

    def write(self, name: str, content: bytes = b'{"a":1}') -> Path:
        file = self.path / name
        file.write_bytes(content)
        self.names.append(name)
        return file

    def read(self, rules: BatchRules = RULES) -> Batch:
        directory = os.open(self.path, os.O_RDONLY)
        try:
            return read_batch(directory, self.names, rules)
        finally:
            os.close(directory)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_each_file_gives_its_row_its_state_and_its_hash(directory: Directory) -> None:
    """As one by one: on one line, and hashed as the row has it."""
    contents = [b'{"a":1}', b'{"a":\n [1,\r\n2]}\n', b"{}", b'{"a":"\xc3\xa9"}\r\n\r\n']
    files = [directory.write(f"m{n}.json", content) for n, content in enumerate(contents)]
    raws = [b'{"a":1}', b'{"a": [1,2]}', b"{}", b'{"a":"\xc3\xa9"}']

    before_us = time.time_ns() // 1000
    batch = directory.read()
    after_us = time.time_ns() // 1000

    filenames = [orjson.dumps(f"{FOLDER}{file.name}") for file in files]
    assert batch.rows == [row(HEAD, name, raw) for name, raw in zip(filenames, raws, strict=True)]
    assert batch.hashes == list(map(content_hash, raws))
    states = [tuple(batch.numbers[at : at + 4]) for at in range(0, 20, 5)]
    assert states == [FileState.of(file.stat()) for file in files]
    # Later than the read, a change after it would be taken for one before it.
    assert all(before_us <= us <= after_us for us in batch.numbers[4::5])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"a":',
        b'{"a":1}{"a":2}',
        b'{"a":1}\n{"a":2}',
        b'{"a":"\n"}',
        b"\xef\xbb\xbf{}",
        b" {}",
        b'{"a":"' + b"x" * SMALL_BYTES + b'"}',
    ],
)
def test_a_file_about_which_there_is_something_to_decide_ends_it(
    directory: Directory, content: bytes
) -> None:
    """Good or bad, it is looked at alone; the files before it are taken."""
    directory.write("a.json")
    directory.write("b.json", content)
    directory.write("c.json")
    batch = directory.read()
    assert len(batch.rows) == 1
    assert batch.is_cut


@pytest.mark.parametrize("kind", ["nothing", "link", "directory", "pipe"])
def test_what_is_no_file_ends_it(directory: Directory, kind: str) -> None:
    """No link is followed, and no open waits for the other end of a pipe."""
    directory.write("a.json")
    file = directory.write("b.json")
    file.unlink()
    if kind == "link":
        file.symlink_to(directory.path / "a.json")
    elif kind == "directory":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    assert len(directory.read().rows) == 1


def test_the_rows_never_exceed_the_room(directory: Directory) -> None:
    for number in range(9):
        directory.write(f"m{number}.json", b'{"a":%d}' % number)
    size = len(directory.read().rows[0])
    for room_bytes in (0, size - 1, size, 3 * size, 3 * size + 1, 9 * size):
        batch = directory.read(replace(RULES, room_bytes=room_bytes))
        assert len(batch.rows) == room_bytes // size
        assert batch.is_cut == (len(batch.rows) < 9)


def test_a_batch_ends_when_it_has_read_enough(directory: Directory) -> None:
    """What is judged together must not grow with the number of files."""
    for number in range(9):
        directory.write(f"m{number}.json", b'{"a":"' + b"x" * (BATCH_BYTES // 5) + b'"}')
    batch = directory.read()
    assert len(batch.rows) == 5
    assert not batch.is_cut


@pytest.mark.parametrize(
    ("lease_suffices", "settled", "leases", "taken"),
    [
        (True, False, True, 2),
        (False, False, True, 0),
        (False, True, True, 2),
        (True, True, False, 2),
        (True, False, False, 0),
    ],
)
def test_a_file_that_a_scan_found_is_taken_if_nobody_writes_it(
    directory: Directory,
    monkeypatch: pytest.MonkeyPatch,
    *,
    lease_suffices: bool,
    settled: bool,
    leases: bool,
    taken: int,
) -> None:
    """By what the kernel says or, where that tells too little, by its age."""
    directory.write("a.json")
    directory.write("b.json")
    if not leases:
        monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    settled_ns = (directory.path / "b.json").stat().st_ctime_ns if settled else 0
    rules = replace(RULES, ask_writer=True, lease_suffices=lease_suffices, settled_ns=settled_ns)
    assert len(directory.read(rules).rows) == taken


def test_a_file_that_somebody_has_open_for_writing_ends_it(directory: Directory) -> None:
    """However old it is."""
    directory.write("a.json")
    file = directory.write("b.json")
    rules = replace(RULES, ask_writer=True, lease_suffices=True, settled_ns=1 << 62)
    with file.open("r+b"):
        assert len(directory.read(rules).rows) == 1
    assert len(directory.read(rules).rows) == 2


def test_a_file_that_was_moved_lately_is_not_settled_however_old_its_content(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy keeps the time of its original, and the time of its last change shows the copying."""
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    file = directory.write("a.json")
    os.utime(file, (1, 1))
    changed_ns = file.stat().st_ctime_ns
    for settled_ns, taken in ((changed_ns - 1, 0), (changed_ns, 1)):
        rules = replace(RULES, ask_writer=True, settled_ns=settled_ns)
        assert len(directory.read(rules).rows) == taken


def test_a_file_that_grows_while_it_is_read_ends_it(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there first may be a good document of its own."""
    directory.write("a.json")
    file = directory.write("b.json")
    fstat = os.fstat

    def and_then_it_grows(fd: int) -> os.stat_result:
        status = fstat(fd)
        if status.st_ino == file.stat().st_ino:
            with file.open("ab") as more:
                more.write(b" ")
        return status

    monkeypatch.setattr(os, "fstat", and_then_it_grows)
    assert len(directory.read().rows) == 1


def test_a_file_whose_numbers_need_more_than_64_bits_ends_it(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone they are made to fit; nothing of it is left in the batch."""
    directory.write("a.json")
    file = directory.write("b.json")
    odd = file.stat().st_ino
    fstat = os.fstat

    def of_another_file_system(fd: int) -> Any:  # noqa: ANN401 - as much as is asked
        status = fstat(fd)
        if status.st_ino != odd:
            return status
        return SimpleNamespace(
            st_ino=1,
            st_size=status.st_size,
            st_mode=status.st_mode,
            st_mtime_ns=1 << 63,
            st_ctime_ns=1,
        )

    monkeypatch.setattr(os, "fstat", of_another_file_system)
    batch = directory.read()
    assert (len(batch.rows), len(batch.numbers), batch.is_cut) == (1, 5, True)


def test_no_descriptor_stays_open(directory: Directory) -> None:
    """Whether the file is taken or not."""
    for content in (b'{"a":1}', b"", b"[]"):
        directory.write(f"m{len(directory.names)}.json", content)
    directory.read()
    assert open_below(directory.path) == 0
