"""Keepers of an archive are killed, as a small sample of `make torture-keeping`."""

from __future__ import annotations

import subprocess
import sys


def test_keepers_that_are_killed_beside_one_another_lose_nothing() -> None:
    """With agents, compactions and deletions in one bucket; each ends clean when it is repeated."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.keepers", "--kills", "12", "--runs", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'killed': " in done.stdout


def test_killed_keepers_lose_nothing_and_end_clean() -> None:
    """In a process without threads, which can be forked."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.keeping", "--runs", "4", "--kills", "12"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "no row is lost, each ends clean" in done.stdout
