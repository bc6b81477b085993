"""Loaders are killed while people ask for days, as a small sample of `make torture`."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long  # a server of its own, and some loaders as processes


def test_killed_loaders_lose_no_row_and_answer_each_request() -> None:
    """Without Spark; with this seed the first one stays with --every, and is killed."""
    words = ["--runs", "6", "--seed", "3", "--without-spark"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.loaders", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout
    assert '"requests"' in done.stdout
    assert '"stayed"' in done.stdout
