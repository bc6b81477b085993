"""docs/tutorial.md, run as a newcomer would run it, from the second block on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gcs import free_port

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs/tutorial.md"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_tutorial_ends_with_the_answers_that_it_promises(tmp_path: Path) -> None:
    """Only the installation is left out: these are the programs of this checkout."""
    install, *blocks = re.findall(r"```sh\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    assert "pip install" in install
    script = "set -e\n" + "\n".join(blocks).replace("9050", str(free_port()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    for name in ("STORAGE_EMULATOR_HOST", "BIGQUERY_EMULATOR_HOST"):
        environ.pop(name, None)

    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 bundles, rows: 50 readings, 1 rejected1; 0 problems" in done.stdout
    assert "its row is in a data bundle" in done.stdout
    assert re.search(r"^s4 +10 +15\.0$", done.stdout, re.MULTILINE)
    assert re.search(r"odd\.json +wrong-type +Celsius$", done.stdout, re.MULTILINE)
    assert re.search(r"readings +2026-01-02 +success +50 +0$", done.stdout, re.MULTILINE)
