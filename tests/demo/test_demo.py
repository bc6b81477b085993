"""The demo itself, as a person runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


def start(tmp_path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )


def left_behind(tmp_path: Path) -> list[str]:
    """Return the command lines of processes that the demo's environment marks as its own."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={tmp_path}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # ended meanwhile, or not ours to look at
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_runs_to_its_end_and_adds_up(tmp_path: Path) -> None:
    """Written = loaded + rejected, on a page of 100 columns, and nothing is left."""
    process = start(tmp_path)
    told, _ = process.communicate(timeout=800)

    assert process.returncode == 0, told
    assert "written 2000 = loaded 1900 + rejected 100\n" in told
    assert "nothing to do" in told
    assert "1 file saved" in told
    assert "8 rows of two replicas are 4 versions" in told
    assert "Byte for byte what was written" in told
    assert max(map(len, told.splitlines())) <= 100
    assert list(tmp_path.glob("jostler-demo-*")) == []
    assert left_behind(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_an_interrupted_demo_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    """Status 1, and the directory is kept to look into."""
    process = start(tmp_path)
    assert process.stdout
    while "2. " not in process.stdout.readline():
        pass
    until_s = time.monotonic() + 300
    while len(left_behind(tmp_path)) < 3:
        assert time.monotonic() < until_s
    process.send_signal(number)
    told, _ = process.communicate(timeout=300)

    assert process.returncode == 1, told
    assert "interrupted" in told
    assert left_behind(tmp_path) == []
