"""Repeats of bodies: what several collectors of one feed save, seen as one."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_repeats import WholeDay, compact_day
from jostler.archive.repeats import collapse_repeats, identity
from jostler.cli.main import main
from jostler.format.names import Place
from jostler.producer.naming import timed_name
from jostler.storage import open_storage
from tests.support.agent import run
from tests.support.bucket import url_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


PLACE = Place(data_dir="autoload/v1", organization="", experiment="e")


def collapsed(rows: str) -> str:
    """Collapse rows of one feed, each a letter."""
    return "".join(collapse_repeats(rows, lambda _: 0, lambda row: row))


def test_only_the_row_before_counts() -> None:
    """A A B A: the last A is news, for the feed had changed."""
    assert collapsed("AABA") == "ABA"
    assert collapsed("AAAA") == "A"
    assert collapsed("") == ""


def test_feeds_do_not_interrupt_one_another() -> None:
    """Each has a last body of its own."""
    rows = [("x", "A"), ("y", "A"), ("x", "A"), ("y", "B"), ("x", "B")]

    kept = list(collapse_repeats(rows, lambda row: row[0], lambda row: row[1]))

    assert kept == [("x", "A"), ("y", "A"), ("y", "B"), ("x", "B")]


@given(st.lists(st.sampled_from("ABC")))
def test_what_is_left_has_no_repeat_and_lost_no_change(rows: list[str]) -> None:
    """Collapsed again it is the same, and each change is still there."""
    left = collapsed("".join(rows))
    changes = [now for before, now in zip(["", *rows], rows, strict=False) if before != now]
    assert left == "".join(changes)
    assert collapsed(left) == left


def test_a_body_is_told_by_its_name_or_else_by_its_hash() -> None:
    """Two wrapped answers have other Hashes; two files without any are not equal."""
    when, later = datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 4, tzinfo=UTC)
    first, second = (timed_name(at, b"body", prefix="bus_") for at in (when, later))

    assert identity(f"2026/01/02/{first}", "h1") == identity(f"2026/01/02/{second}", "h2")
    assert identity(first, "")[0] == "bus_"
    assert identity("a.json", "h") == identity("b.json", "h") == ("", "h")
    assert identity("a.json", "") != identity("b.json", "")


def test_two_collectors_are_listed_and_retrieved_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stored by two nodes, over midnight: the first file of each run is there."""
    seen = {"n": [(22, b"A"), (23, b"B"), (25, b"A")], "s": [(22.5, b"A"), (24.5, b"B")]}
    bucket = url_of(tmp_path / "bucket")
    for node, saved in seen.items():
        spool = tmp_path / node
        for hour, letter in saved:
            at = datetime.fromtimestamp(hour * 3600, UTC).replace(year=2026, month=1)
            body = json.dumps({"x": letter.decode()}).encode()
            path = spool / f"e/bus/{at:%Y/%m/%d}" / timed_name(at, body, prefix="bus_")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            os.utime(path, (at.timestamp(), at.timestamp()))
        (spool / "datatypes").mkdir()
        (spool / "datatypes/bus.json").write_text('[{"name": "x", "type": "STRING"}]')
        argv = ["-gcs-bucket", bucket, "-experiment", "e", "-datatype", "bus", "-node-name", node]
        done = run(*argv, "-local-data-dir", str(spool), "-once", "-missed-age", "0s")
        assert done.returncode == 0, done.stdout
    where = ["-bucket", bucket, "-experiment", "e", "-cache-dir", "-", "-collapse-repeats"]

    assert main(["list", "bus", "-format", "jsonl", *where]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    times = sorted((row["Start"][8:13], row["Node"]) for row in told)
    assert times == [("01T22", "n"), ("01T23", "n"), ("02T01", "n")]

    both = ["-first-day", "2026-01-01", "-last-day", "2026-01-02"]
    assert main(["retrieve", str(tmp_path / "to"), *both, *where]) == 0
    assert len(list((tmp_path / "to").rglob("*.json"))) == 3

    storage = open_storage(bucket)
    for day, members, _ in days(storage, PLACE, "bus", FIRST, LAST):
        whole = WholeDay(
            place=PLACE,
            datatype="bus",
            day=day,
            schema="",
            members=tuple(members),
            small_bytes=1 << 20,
        )
        (done,) = compact_day(storage, whole, target_bytes=1 << 20, version="jostler@2").done
        assert done.collapsed == (1 if day.date.day == 1 else 0)  # the other lies over midnight
    assert main(["list", "bus", "-format", "jsonl", *where]) == 0
    after = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((row["Start"][8:13], row["Node"]) for row in after) == times

    for flag in ("-newest-first", "-bundles", "-days"):
        assert main(["list", *where, flag]) == 2
