"""The loader's commands where only the agent's packages are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from loader.cli import metrics

# Python imports sitecustomize at its start, so this stands for packages that are not there.
WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
"""
LOAD = ("loader", "--bucket", "gs://bkt", "--project", "p")


@pytest.mark.parametrize(
    ("lacking", "argv", "told"),
    [
        (["google.cloud.bigquery"], LOAD, "google.cloud.bigquery is not installed"),
        (["pyspark", "xxhash"], LOAD, "pyspark, xxhash are not installed"),
        (["google.cloud.bigquery"], ("loader.cli.sql", "SELECT 1"), "google.cloud.bigquery is not"),
    ],
)
def test_what_is_not_installed_is_told_in_one_line(
    tmp_path: Path, lacking: list[str], argv: tuple[str, ...], told: str
) -> None:
    """With the command that installs it."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(names=lacking))
    done = subprocess.run(
        [sys.executable, "-m", *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        timeout=60,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert told in line
    assert line.endswith("pip install 'jostler[loader]'")


def test_a_file_can_be_looked_for_without_the_client_of_bigquery(tmp_path: Path) -> None:
    """`jostler why` says that this one place could not be asked, and why."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT.format(names=["google.cloud.bigquery"]))
    argv = ["jostler", "why", "foo1/2026/01/02/x.json", "-address", "", "-project", "p"]
    done = subprocess.run(
        [sys.executable, "-m", *argv, "-experiment", "exp", "-local-data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"},
        timeout=60,
    )
    assert done.stderr == ""
    assert "pip install 'jostler[loader]'" in done.stdout


def test_each_metric_says_what_it_counts() -> None:
    """In its HELP line, which is all that somebody at a Prometheus sees."""
    facts = metrics.Facts(
        outcomes=(), tables=[("e", "d")], period="daily", well=True, ended_s=1, spent_s=1
    )
    for registry in (metrics.of_load(facts, None), metrics.of_comparison(3)):
        lines = generate_latest(registry).decode().splitlines()
        helps = [line.split(" ", 3)[3] for line in lines if line.startswith("# HELP")]
        assert len(helps) >= 1
        for text in helps:
            assert len(text.split()) > 3
            assert ".md" not in text
