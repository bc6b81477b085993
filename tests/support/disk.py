"""A small disk that a test can fill."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def mounted(path: Path, mib: int, inodes: int = 0) -> bool:
    """Mount an empty file system of this size at a directory; return whether that is allowed."""
    # nr_inodes=0: as many as there is memory for (tmpfs(5)).
    options = f"size={mib}m,nr_inodes={inodes}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(path: Path, mib: int, inodes: int = 0) -> Iterator[Path]:
    """Make a directory that is a disk of this size; skip the test where nobody may mount one."""
    path.mkdir()
    if not mounted(path, mib, inodes):
        pytest.skip("cannot mount")
    try:
        yield path
    finally:  # lazily: a process of a failed test may still have files open there
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Write zeros to the end of a file until its disk has no free block."""
    with path.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
