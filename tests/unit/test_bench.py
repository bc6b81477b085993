"""The bench: what it has archived is good, and what it found is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench import page, simulate
from bench.files import KINDS, NO_UUID, SCHEMA, document, documents
from bench.files import Kind as FileKind
from bench.fleet import Fleet, Kind, forecast
from jostler.schema import Judge, parse_datatype_schema

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_files_are_good_and_as_large_as_they_are_called(kind: FileKind) -> None:
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


def between(page: str, name: str) -> str:
    return page.split(f"<!-- {name} -->\n", 1)[1].split(f"\n<!-- end of {name} -->", 1)[0]


def test_the_page_about_size_shows_what_the_model_says() -> None:
    """Else a changed number of the model would leave the page as it was."""
    text = (ROOT / "docs/scaling.md").read_text()
    made = [forecast(Fleet(nodes=nodes)) for nodes in simulate.NODES]
    compacted = [forecast(Fleet(nodes=nodes, compacted=True)) for nodes in simulate.NODES]
    assert between(text, "numbers") == simulate.numbers(made)
    assert between(text, "limits") == simulate.limits(made)
    assert between(text, "limits compacted") == simulate.limits(compacted)


def test_the_model_of_a_fleet_grows_with_it_and_follows_its_settings() -> None:
    small, large = (forecast(Fleet(nodes=nodes)) for nodes in (100, 1000))
    for name in ("rows", "objects", "put_calls", "verify_cpu_s", "packed_bytes"):
        assert getattr(large, name) == pytest.approx(10 * getattr(small, name))
    assert large.load_jobs == small.load_jobs  # a day's, not a node's
    rare = forecast(Fleet(nodes=1000, bundle_age_h=6))
    assert rare.objects < large.objects / 5
    assert rare.seconds_50 > large.seconds_50 + 2 * 3600
    often = forecast(Fleet(nodes=1000, every_h=0.25))
    assert often.seconds_99 < large.seconds_99
    assert often.load_jobs > 3 * large.load_jobs
    assert often.get_calls > 3 * large.get_calls
    kept = forecast(Fleet(nodes=10_000)), forecast(Fleet(nodes=10_000, compacted=True))
    assert kept[0].first.part > 1 > kept[1].first.part


def test_a_day_is_what_its_files_are_made_of() -> None:
    """One node with one kind: counted by hand."""
    kind = Kind(name="x", files_h=60, file_bytes=1_000, ratio=4)
    made = forecast(Fleet(nodes=1, kinds=(kind,), sample=0))
    bundles = 24 / (1 + 1 / 60)
    assert made.rows == 1440
    assert made.bundles == pytest.approx(bundles)
    assert made.packed_bytes == pytest.approx(1440 * (250 + 40) + bundles * 400)
    assert made.get_calls == pytest.approx((24.5 / 2 + 1 + 0.25) * bundles, rel=0.02)


def test_what_three_measurements_say_predicts_a_fourth() -> None:
    def took(bundles: int, files: int) -> simulate.Measured:
        cpu_s = 2 + bundles * 1e-3 + bundles * files * 1e-5
        facts = {"make_cpu_s": 1.0, "list_s": 1.0, "wall_s": 9.0, "rss_bytes": 10**8}
        return simulate.Measured(bundles=bundles, files=files, cpu_s=cpu_s, **facts)

    found = [took(500, 10), took(1000, 10), took(1000, 60), took(2000, 30)]
    assert simulate.fitted(found) == pytest.approx((2.0, 1e-3, 1e-5))
    assert simulate.compared(found).splitlines()[5].endswith("| 4.60 | 100 | 4.60 |")
