"""The flags of the commands that read an archive: each does what it says, over made-up indexes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.cache import FILE
from jostler.cli import cat
from jostler.cli.main import main
from tests.support.archive import DAY, Entry, MadeArchive, at

if TYPE_CHECKING:
    from pathlib import Path

Names = Callable[..., list[str]]
NEXT_DAY = DAY + timedelta(days=1)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeArchive:
    """An archive, which the environment names; home and caches are the test's own."""
    made = MadeArchive(tmp_path / "bucket")
    made.put([Entry(name="a.json", start=at(1), work_id="job-1")])
    made.put([Entry(name="b.json", start=at(2))], node="n2")
    made.put([Entry(name="c.json", start=at(26))], day=NEXT_DAY)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "GCS_BUCKET", "DATATYPE", "CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BUCKET", made.url)
    monkeypatch.setenv("EXPERIMENT", "exp")
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def names(made: MadeArchive, capsys: pytest.CaptureFixture[str]) -> Names:
    """Return a function that runs a command, and returns the names of the files that it lists."""

    def ran(*argv: str) -> list[str]:
        status = main([*argv, "-format", "jsonl"])
        captured = capsys.readouterr()
        assert status == 0, captured.err
        rows: list[dict[str, Any]] = [json.loads(line) for line in captured.out.splitlines()]
        return [row["Filename"].rpartition("/")[2] for row in rows]

    return ran


def test_each_flag_narrows_a_listing(names: Names, made: MadeArchive) -> None:
    """By node, job, hash and the days of the folders."""
    assert names("list", "-cache-dir", "-") == ["a.json", "b.json", "c.json"]
    assert names("list", "-node", "n2") == ["b.json"]
    assert names("list", "-work-id", "JOB-1") == ["a.json"]
    digest = next(r["raw"]["Hash"] for r in made.rows if r["raw"]["Filename"].endswith("c.json"))
    assert names("list", "-hash", digest) == ["c.json"]
    assert names("list", "-first-day", str(NEXT_DAY)) == ["c.json"]
    assert names("list", "-last-day", str(DAY)) == ["a.json", "b.json"]
    assert names("list", "-collapse-repeats", "-limit", "2") == ["a.json", "b.json"]


def test_a_repeat_does_not_count_for_the_limit(names: Names, made: MadeArchive) -> None:
    """The limit is of what is listed, not of what was looked at."""
    made.put([Entry(name="d.json", start=at(2.1), content=f"{DAY:%Y/%m/%d}/b.json".encode())])
    assert names("list", "-collapse-repeats", "-limit", "3") == ["a.json", "b.json", "c.json"]


def test_the_old_name_of_the_bucket_is_taken(
    names: Names, made: MadeArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the Go agent has it."""
    monkeypatch.delenv("BUCKET")
    assert names("list", "-gcs-bucket", made.url, "-node", "n2") == ["b.json"]


def test_a_directory_that_is_not_there_is_no_empty_archive(
    made: MadeArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped bucket would look as if nothing had been stored."""
    assert main(["list", "-bucket", f"{made.url}x"]) == 1
    assert f"{made.url}x: there is no such directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [
        ["list", "-collapse-repeats", "-newest-first"],
        ["retrieve", "-keep-packed", "-collapse-repeats", "-start", "2026-01-01", "-end"],
    ],
)
def test_flags_that_exclude_one_another_are_refused(
    made: MadeArchive, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    """With status 2."""
    words = ["2026-01-02", "to"] if argv[0] == "retrieve" else []
    assert main([*argv, *words]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_days_have_a_limit_too(made: MadeArchive, capsys: pytest.CaptureFixture[str]) -> None:
    """It counts the lines that are shown."""
    assert main(["list", "-days", "-limit", "1", "-format", "jsonl"]) == 0
    (row,) = capsys.readouterr().out.splitlines()
    assert json.loads(row)["Day"] == str(DAY)


def test_the_latest_file_is_looked_for_within_lookback(names: Names, made: MadeArchive) -> None:
    """And in the folder of tomorrow, which a node whose clock is ahead writes to."""
    now = datetime.now(UTC)
    days = [now.date() + timedelta(days=days) for days in (1, -3)]
    made.put([Entry(name="ahead.json", start=now + timedelta(hours=1))], day=days[0])
    old = [Entry(name="old.json", start=now - timedelta(days=3))]
    made.put(old, day=days[1], node="n2")
    assert names("latest", "foo1") == ["ahead.json", "old.json"]
    assert names("latest", "foo1", "-lookback", "24h") == ["ahead.json"]
    assert names("latest", "foo1", "n2") == ["old.json"]


def kept(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM objects").fetchone()
    return int(count)


def test_the_cache_lies_where_it_is_told_and_is_as_large_as_it_may_be(
    names: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By flag, by the directory of caches, in the home, or nowhere."""
    names("list", "-cache-dir", "-")
    assert not list(tmp_path.rglob(FILE))
    names("list")
    assert kept(tmp_path / "home/.cache/jostler" / FILE) == 3
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    names("list")
    assert kept(tmp_path / "xdg/jostler" / FILE) == 3
    names("list", "-cache-dir", str(tmp_path / "told"), "-cache-max", "1")
    assert kept(tmp_path / "told" / FILE) == 0


def test_a_terminal_gets_no_character_that_deceives(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A pipe gets the file's own bytes."""
    raw = '{"a":"\u202e"}'.encode()
    cat._write(raw, alone=True)
    assert capsysbinary.readouterr().out == raw
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    cat._write(raw, alone=True)
    assert capsysbinary.readouterr().out == b'{"a":"\\u202e"}\n'
