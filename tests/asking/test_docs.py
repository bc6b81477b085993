"""docs/query.md describes the options of `jostler-query` and `jostler-load index`."""

from __future__ import annotations

from pathlib import Path

import pytest

from loader.cli import index_options, query_options

PAGE = (Path(__file__).parents[2] / "docs/query.md").read_text()


@pytest.mark.parametrize(
    ("head", "options"),
    [("option", query_options.HELP), ("option of `jostler-load index`", index_options.HELP)],
)
def test_the_options_are_described_with_their_defaults(
    head: str, options: tuple[tuple[str, str, str, str], ...]
) -> None:
    table = PAGE.split(f"| {head} | default | meaning |", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    described = {row[0].strip(" `-"): row[1].strip(" `") for row in cells}
    assert described == {name: default for name, _, default, _ in options}
