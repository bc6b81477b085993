"""The unit for nodes without Kubernetes, as systemd itself reads it."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from jostler.cli.command_line import configure, parse_flags

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "jostler.service"
DOCS = PACKAGING.parent / "docs/agent.md"
EXPOSURE_MAX = 2.0
"""Of 10, by `systemd-analyze security`; a unit without hardening has 9.6."""


def analyze(*argv: str | Path) -> str:
    """Run systemd-analyze; skip where there is none."""
    program = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed")
    done = subprocess.run([program, *argv], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_finds_no_fault_in_the_unit() -> None:
    assert analyze("verify", UNIT) == ""


def test_the_unit_is_hardened() -> None:
    found = re.search(
        r"exposure level for jostler.service: ([0-9.]+)",
        analyze("security", "--offline=true", UNIT),
    )
    assert found
    assert float(found[1]) <= EXPOSURE_MAX


def test_the_time_to_stop_covers_the_agents_own() -> None:
    """Systemd kills what has not ended; the agent uploads for -flush-timeout before."""
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(UNIT)
    lines = (PACKAGING / "jostler.env").read_text().splitlines()
    environ = dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    config = configure(parse_flags([], environ), lambda path: pytest.fail(f"reads {path}"))

    stop_s = float(unit["Service"]["TimeoutStopSec"].removesuffix("s"))
    assert stop_s > config.flush_timeout_s + 10
    assert config.node == "node1"
    assert str(config.local_data_dir) == unit["Service"]["ReadWritePaths"]


def test_the_page_names_each_file_to_install() -> None:
    text = DOCS.read_text().partition("## Without Kubernetes")[2]
    assert {path.name for path in PACKAGING.iterdir()} <= set(re.findall(r"jostler\.\w+", text))
