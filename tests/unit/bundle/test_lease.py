"""The kernel says whether somebody has a file open for writing."""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from typing import TYPE_CHECKING

import pytest

from jostler.bundle.lease import has_writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_bytes(b'{"a":1}')
    return path


@pytest.fixture
def fd(path: Path) -> Iterator[int]:
    """The file, open for reading; where no lease is to be had there is nothing to test."""
    fd = os.open(path, os.O_RDONLY)
    if has_writer(fd) is None:
        pytest.skip("this file system gives no leases")
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    yield fd
    os.close(fd)


def test_readers_are_no_writers(path: Path, fd: int) -> None:
    with path.open("rb"):
        assert has_writer(fd) is False


def test_a_writer_is_seen_until_it_lets_go(path: Path, fd: int) -> None:
    """By closing the file or, if it has it mapped, by unmapping it."""
    with path.open("r+b") as file:
        assert has_writer(fd) is True
        mapped = mmap.mmap(file.fileno(), 7)
    assert has_writer(fd) is True
    mapped.close()
    assert has_writer(fd) is False


def test_who_opens_it_meanwhile_waits_and_nobody_is_killed(path: Path, fd: int) -> None:
    """The kernel's signal, which by default ends a process, is one that is ignored."""
    assert has_writer(fd) is False
    writer = threading.Thread(target=lambda: path.write_bytes(b'{"a":2}'))
    writer.start()
    while fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK:
        pass  # until the writer has come
    assert os.read(fd, 100) == b'{"a":1}'
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    writer.join(60)
    assert path.read_bytes() == b'{"a":2}'
