"""docs/query.md describes the options of `jostler-query`, and nothing else."""

from __future__ import annotations

from pathlib import Path

from loader.cli.query_options import HELP

PAGE = (Path(__file__).parents[2] / "docs/query.md").read_text()


def test_the_options_are_described_with_their_defaults() -> None:
    table = PAGE.split("| option | default | meaning |", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    described = {row[0].strip(" `-"): row[1].strip(" `") for row in cells}
    assert described == {name: default for name, _, default, _ in HELP}
