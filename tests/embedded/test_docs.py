"""What docs/embedded.md says, done as it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from embedded.jobs import faults

if TYPE_CHECKING:
    from tests.embedded.conftest import Server

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "embedded.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    """From an empty directory, with nothing set."""
    (code,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[1]\n", "")


def test_the_emulator_variable_is_enough_of_an_address(server: Server, tmp_path: Path) -> None:
    """`BIGQUERY_EMULATOR_HOST` and anonymous credentials."""
    code = (
        "from google.auth.credentials import AnonymousCredentials\n"
        "from google.cloud import bigquery\n"
        "client = bigquery.Client('demo', AnonymousCredentials())\n"
        "print([row.x for row in client.query_and_wait('SELECT 1 AS x')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "BIGQUERY_EMULATOR_HOST": server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "[1]\n", done.stderr


def test_the_line_of_the_page_is_the_line_that_is_printed(server: Server) -> None:
    """But for port and directory."""
    (line,) = [block for block in blocks("text") if "listens on" in block]
    plain = line.replace("http://127.0.0.1:9050", server.url)
    assert server.line == plain.replace("data in bigquery;", f"data in {server.data_dir};")


def test_every_fault_is_described() -> None:
    """And the example is one."""
    (example,) = blocks("json")
    faults.Fault(**json.loads(example))
    for name in faults.REQUEST_FAULTS | faults.JOB_FAULTS:
        assert f"`{name}`" in TEXT
