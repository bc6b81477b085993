"""The script for operators with an account, run against the servers that stand in here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.loader.world import World

SCRIPT = Path(__file__).parents[2] / "examples/real-service-check"


@pytest.mark.long
def test_the_check_finds_nothing_that_differs_and_leaves_nothing_behind(world: World) -> None:
    """Each line says OK; bucket and project are as empty as before."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--bucket", world.url, "--project", world.project],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
        cwd=SCRIPT.parents[1],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DIFFERS" not in done.stdout
    assert done.stdout.count("OK ") > 20
    assert list(world.client.list_datasets()) == []
    assert world.names() == []
