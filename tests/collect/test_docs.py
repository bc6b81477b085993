"""docs/collect.md has every key, flag, class and metric, and what it shows is good."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.cli.collect import FLAGS
from jostler.cli.flags import duration
from jostler.producer.collect.answers import Failure
from jostler.producer.collect.feeds_file import KEYS, read_feeds
from jostler.producer.collect.metrics import COUNTERS, FAILURES, GAUGES, PROCESS, SECONDS

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs/collect.md").read_text()


def table(heading: str) -> dict[str, list[str]]:
    """Return the rows of the last table below a heading, by what is first in backquotes."""
    section = re.split(r"\n## ", PAGE.split(f"\n## {heading}\n", 1)[1], maxsplit=1)[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {re.findall(r"`([^`]+)`", row[0])[0]: [cell.strip() for cell in row] for row in rows}


def test_every_key_is_described() -> None:
    """Of a feed."""
    assert tuple(table("The configuration")) == KEYS


def test_every_class_of_failure_is_described() -> None:
    """In the order of the code."""
    assert list(table("How a fetch can end")) == list(Failure)


def test_every_flag_is_described() -> None:
    """With its variable and its default."""
    rows = table("Flags")
    assert set(rows) == {f"-{flag.name}" for flag in FLAGS}
    for flag in FLAGS:
        _, variable, default, _ = rows[f"-{flag.name}"]
        assert re.findall(r"`([^`]+)`", variable) == flag.variables
        if flag.default:
            assert default == f"`{flag.default}`"


def test_every_metric_is_described() -> None:
    """By the name that a scrape shows, with its labels."""
    rows = table("Page and metrics")
    feeds = {f"{row.name}_total" for row in COUNTERS} | {row.name for row in GAUGES}
    own = {name for name, _, _ in PROCESS} | {"jostler_collect_build_info"}
    assert set(rows) == feeds | own | {f"{FAILURES[0]}_total", SECONDS[0]}
    assert {name for name, row in rows.items() if "`feed`" in row[2]} == set(rows) - own


def test_the_configuration_of_the_page_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the variable and the file that it names."""
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "client-id").write_text("c")
    (tmp_path / "feeds.toml").write_text(example)

    feeds = read_feeds(tmp_path / "feeds.toml", {"NEWS_TOKEN": "t"}, seconds=duration)

    assert [feed.id for feed in feeds] == ["bus", "news"]
