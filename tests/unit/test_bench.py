"""The bench: what it has archived is good, and what it found is written down."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import page
from bench.files import KINDS, NO_UUID, SCHEMA, Kind, document, documents
from jostler.schema import Judge, parse_datatype_schema


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_files_are_good_and_as_large_as_they_are_called(kind: Kind) -> None:
    """A rejected file would be measured as if it were archived."""
    judge = Judge(parse_datatype_schema(json.dumps(SCHEMA).encode(), source="bench"))
    made = documents(kind, different=3)
    for number in (0, 1, len(made) + 1):
        content = document(made, number)
        assert judge.flaw(content) is None
        assert NO_UUID not in content
        assert 0.9 * kind.size < len(content) < 1.15 * kind.size
    assert document(made, 1) != document(made, len(made) + 1)


def row(program: str, kind: str = "1 KiB", bucket: str = "directory", **more: float) -> page.Row:
    return {
        "kind": kind,
        "bucket": bucket,
        "program": program,
        "runs": 3,
        "files": 1000,
        "file_bytes": 10**6,
        "wall_s": 0.5,
        "cpu_s": 1.0,
        "rss": 50e6,
        "stored": 3e5,
        "missed": 0,
        **more,
    }


FOUND: dict[str, Any] = {
    "machine": {"cpu": "a & b", "processors": 2, "kernel": "6.1", "load": 0.1},
    "rows": [
        row("ours"),
        row("go", wall_s=1.5),
        row("floor", stored=0, rss=0),
        row("ours native", wall_s=0.25),
        row("ours", kind="20 KiB", file_bytes=20e6),
        row("start", kind="start", bucket="http", wall_s=0.25, cpu_s=0.2),
        row("idle", kind="idle", bucket="http", files=0, cpu_s=7.0),
        row("spread", kind="20 datatypes"),
        row("ours burst", kind="burst", missed=7),
        *(row(name, bucket="") for name in page.PARTS),
        *(row(page.N, files=files) for files in (100, 1000, 10_000)),
    ],
}


def test_the_figures_stand_between_the_comments_of_the_page() -> None:
    """However often they are written, the rest of the page stays."""
    before = page.PAGE.read_text(encoding="utf-8")

    after = page.fill(page.fill(before, "the first run"), page.figures(FOUND))

    assert after.partition(page.BEGIN)[0] == before.partition(page.BEGIN)[0]
    assert after.partition(page.END)[2] == before.partition(page.END)[2]
    assert "the first run" not in after
    assert "| 1,000 of 1 KiB | directory | ours | 2,000 | 2 | 1.0 | 50 | 300 |" in after
    assert "| 1,000 of burst | directory | ours burst | 0.5 s after the last; 7 missed |" in after
    assert "| 1 KiB | 2 | 2 | 2 | 2 | 2 |" in after
    assert "| 667 files/s | 2,000 files/s, 3.0 times Go | 4,000 files/s, 6.0 times Go |" in after
    assert "- from the start to the first file, bucket http: 0.25 s, of which 0.20 s CPU" in after
    assert "- an hour with nothing to do, bucket http: 7.0 s CPU" in after
    assert "| 1,000 of 1 KiB in 20 datatypes | directory | 2,000 | 50 |" in after


def test_speeds_of_the_go_agent_of_another_run_say_so() -> None:
    """Their ratio is indicative only."""
    shown = page.beside(FOUND["rows"])
    assert "| 20 KiB | directory | 72 MB/s ¹ | 40 MB/s, 0.6 times Go |  |" in shown
    assert page.GO_NOTE in shown
    assert page.GO_NOTE not in page.beside(FOUND["rows"][:2])


def test_a_page_without_the_comments_is_refused() -> None:
    """Rather than overwritten."""
    with pytest.raises(ValueError, match="the page has no"):
        page.fill("# Performance\n", "figures")


@pytest.mark.parametrize("rows", [FOUND["rows"], FOUND["rows"][:1], []])
def test_drawings_are_drawn_of_whatever_was_measured(rows: list[page.Row]) -> None:
    """They are well-formed SVG and lie within their frame."""
    for drawn in (page.bars(rows), page.curve(rows)):
        tree = ET.fromstring(drawn)
        assert tree.tag.endswith("svg")
        for shape in tree.iter("{http://www.w3.org/2000/svg}rect"):
            assert 0 <= float(shape.get("y", 0)) <= page.HEIGHT
            assert float(shape.get("height", 0)) >= 0


def test_figures_of_a_busy_machine_say_so() -> None:
    """Nobody should take them for the program's speed."""
    busy = {**FOUND, "machine": {**FOUND["machine"], "load": 9.0}}
    assert "kept the machine busy" in page.figures(busy)
    assert "kept the machine busy" not in page.figures(FOUND)
