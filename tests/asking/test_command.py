"""`jostler-query`: what it prints, what it says besides, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

from loader.cli.query import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.asking.archive import Archive

pytestmark = pytest.mark.long  # Spark compiles many queries

ROOT = Path(__file__).parents[2]
WAIT_S = 120.0
RATES = "SELECT raw.UUID AS name, raw.Rate, raw.Samples FROM foo1 WHERE date = '2026-01-02'"


@pytest.fixture
def asked(spark: SparkSession, archive: Archive) -> Archive:
    archive.put([{"UUID": "a,b", "Rate": 1.5, "Samples": [{"T": 1}]}, {"UUID": "é\n"}])
    return archive


def query(archive: Archive, *argv: str) -> int:
    return main(["--bucket", archive.url, *argv])


def test_each_format_has_the_rows(
    asked: Archive, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """NULL as NULL, as nothing or as null; nested values as JSON."""
    assert query(asked, RATES) == 0
    shown = capsys.readouterr()
    assert sorted(shown.out.splitlines()) == [
        "----  ----  ------------------------",
        'a,b    1.5  [{"T": 1, "Note": null}]',
        "name  Rate  Samples",
        "é\\n   NULL  []",
    ]
    assert shown.err == ""

    assert query(asked, "--format", "csv", RATES) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["name", "Rate", "Samples"]
    assert sorted(rows[1:]) == [["a,b", "1.5", '[{"T": 1, "Note": null}]'], ["é\n", "", "[]"]]

    out = tmp_path / "rows.jsonl"
    assert query(asked, "--format", "jsonl", "--out", str(out), RATES) == 0
    found = sorted(map(json.loads, out.read_text().splitlines()), key=lambda row: row["name"])
    assert found == [
        {"name": "a,b", "Rate": 1.5, "Samples": [{"T": 1, "Note": None}]},
        {"name": "é\n", "Rate": None, "Samples": []},
    ]

    out = tmp_path / "rows.parquet"
    assert query(asked, "--format", "parquet", "--out", str(out), RATES) == 0
    assert sorted(parquet.read_table(out)["name"].to_pylist()) == ["a,b", "é\n"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bucket",
        "rows.jsonl",
        "rows.parquet",
    ]


def test_what_is_left_out_is_told_and_strict_fails(
    asked: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.put([{"Rate": "fast"}, {"Rate": 2}], node="n2", judged=False)
    asked.put([{"UUID": "a,b"}], names=["1-0.json"], node="n2")
    asked.put([{"UUID": "a,b"}], names=["1-0.json"], node="n2")
    count = "SELECT COUNT(*) FROM foo1 WHERE date = '2026-01-02'"

    assert query(asked, "--format", "csv", count) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1] == "4"
    assert shown.err == "jostler-query: left out: 1 bad rows, 1 rows of files stored twice\n"
    assert query(asked, "--strict", "--format", "csv", count) == 1


def test_a_question_that_is_not_understood_is_marked(
    asked: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, the line and the place."""
    assert query(asked, "SELECT raw.UUID\nFROM nowhere") == 2

    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("jostler-query: unknown-table at ")
    assert err[1:] == ["  FROM nowhere", "       ^^^^^^^"]


def test_explain_and_sql_read_nothing(asked: Archive, capsys: pytest.CaptureFixture[str]) -> None:
    assert query(asked, "--explain", RATES) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["table    foo1", "days     1: 2026-01-02 to 2026-01-02", "bundles  1"]
    assert lines[4] == "columns  date, raw.Rate, raw.Samples, raw.UUID"

    assert query(asked, "--sql", "--now", "2026-01-03", "table duration=1d foo1 | stats count") == 0
    sql = capsys.readouterr().out
    assert "COUNT(*)" in sql
    assert "2026-01-02" in sql


def test_a_timechart_is_laid_out_and_drawn(
    asked: Archive, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One column for each key; a file of --plot; bars."""
    pytest.importorskip("matplotlib")
    asked.put([{"Rate": 3}], node="n2")
    chart = "table duration=1d foo1 | timechart span=1d count by archiver.Node"
    plot = tmp_path / "chart.svg"
    now = ("--now", "2026-01-03")

    assert query(asked, *now, "--plot", str(plot), "--format", "csv", chart) == 0
    head, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert (head[1:], row) == (["n1", "n2"], ["2026-01-02T00:00:00Z", "2", "1"])
    assert plot.read_text().count("<svg") == 1

    assert query(asked, *now, "--bars", chart) == 0
    assert capsys.readouterr().out == (
        f"n1:\n  2026-01-02 00:00:00  {'█' * 40} 2\nn2:\n  2026-01-02 00:00:00  {'█' * 40} 1\n"
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "QUESTION: is needed"),
        (["x", "--limit", "none"], "--limit: 'none' is not a number"),
        (["x", "--plot", "a.pdf"], "--plot: 'a.pdf' ends with neither .svg nor .png"),
        (["x", "--lookup", "a"], "--lookup: 'a' is not NAME=FILE"),
        (["x", "--explain", "--bigquery"], "--explain and --bigquery"),
        (["x", "--now", "soon"], "--now: 'soon' is not an instant"),
    ],
)
def test_wrong_use_is_told(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bucket", "file:///nowhere", *argv]) == 2
    assert said in capsys.readouterr().err


def children(pid: int) -> set[int]:
    """Return all processes of a session."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(session) == pid and state != "Z":
            found.add(int(path.name))
    return found


def workers(pid: int) -> set[int]:
    """Return the Python workers of Spark in a session."""
    found = set()
    for child in children(pid):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark.daemon" in words:
            found.add(child)
    return found


def test_an_interrupt_leaves_nothing(archive: Archive, tmp_path: Path) -> None:
    """No row of an aggregate, no process, no file; status 130."""
    archive.put([{"Count": nth} for nth in range(300)])
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    sums = " + ".join(f"{one}.raw.`Count`" for one in "abcd")
    sql = f"SELECT COUNT(*) FROM foo1 a, foo1 b, foo1 c, foo1 d WHERE {sums} > 3"
    out = tmp_path / "rows.csv"
    options = f"-Djava.io.tmpdir={temporary} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environ = {
        **os.environ,
        "TMPDIR": str(temporary),
        "SPARK_LOCAL_DIRS": str(temporary),
        "JAVA_TOOL_OPTIONS": options,
        "PYTHONPATH": str(ROOT),
    }
    printed, told = tmp_path / "printed", tmp_path / "told"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "loader.cli.query", "--bucket", archive.url),
            *("--master", "local[1]", "--format", "csv", "--out", str(out), sql),
        ],
        env=environ,
        start_new_session=True,
        # Files, because the end of a pipe would come only with the end of the JVM.
        stdout=os.open(printed, os.O_WRONLY | os.O_CREAT),
        stderr=os.open(told, os.O_WRONLY | os.O_CREAT),
    )
    try:
        deadline_s = time.monotonic() + WAIT_S
        # The daemon of Python workers, and a worker: a task is running.
        while len(workers(process.pid)) < 2 and process.poll() is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(WAIT_S)
        left = children(process.pid)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    said = told.read_text()
    assert (process.returncode, printed.read_text()) == (130, ""), said
    assert said.endswith("interrupted: the work for this question is cancelled\n")
    assert left == set()
    assert [path.name for path in temporary.iterdir() if "hsperfdata" not in path.name] == []
    assert not out.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"bucket", "printed", "told", "tmp"}


@pytest.mark.long
def test_a_script_that_closes_nothing_ends(archive: Archive) -> None:
    """Spark is ended with the script, which does not wait for ever for it."""
    archive.put([{"Count": nth} for nth in range(3)])
    script = (
        "import jostler\n"
        f"archive = jostler.open({archive.url!r}, master='local[1]')\n"
        "print(archive.query('SELECT SUM(raw.Count) AS n FROM foo1').table()['n'][0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
