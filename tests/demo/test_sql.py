"""jostler-sql, as a process, against an embedded BigQuery that is one too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from demo.processes import Processes, start_bigquery
from loader.cli.sql import main

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def bigquery_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the embedded BigQuery."""
    home = tmp_path_factory.mktemp("sql")
    with Processes(home) as processes:
        yield start_bigquery(processes, home / "bigquery")


def sql(url: str, *argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "loader.cli.sql", *argv],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "BIGQUERY_EMULATOR_HOST": url},
    )


QUESTION = """
SELECT 1 AS n, 'é' AS text, NULL AS nothing, [STRUCT(1.5 AS x, 'a' AS y)] AS nested, b'ab' AS raw,
  DATE '2026-01-02' AS day
UNION ALL
SELECT 1000, 'two\\nlines', NULL, [], NULL, NULL
ORDER BY n
"""


def test_the_answer_is_a_table_with_aligned_columns(bigquery_url: str) -> None:
    """Numbers to the right, NULL as NULL, nested values as JSON, one line for a row."""
    done = sql(bigquery_url, QUESTION)

    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "   n  text        nothing  nested                  raw   day",
        "----  ----------  -------  ----------------------  ----  ----------",
        '   1  é              NULL  [{"x": 1.5, "y": "a"}]  YWI=  2026-01-02',
        "1000  two\\nlines     NULL  []                      NULL  NULL",
    ]


def test_json_is_one_object_a_line(bigquery_url: str) -> None:
    """As a load job would take them; the statement may come from standard input."""
    done = sql(bigquery_url, "-", "--format", "json", stdin=QUESTION)

    first, second = map(json.loads, done.stdout.splitlines())
    assert first["nested"] == [{"x": 1.5, "y": "a"}]
    assert first["day"] == "2026-01-02"
    assert second["text"] == "two\nlines"
    assert second["raw"] is None


def test_csv_has_a_head_and_empty_fields_for_null(bigquery_url: str) -> None:
    """Nested values are JSON in a quoted field."""
    done = sql(bigquery_url, "--format=csv", QUESTION)

    assert done.stdout.splitlines()[:2] == [
        "n,text,nothing,nested,raw,day",
        '1,é,,"[{""x"": 1.5, ""y"": ""a""}]",YWI=,2026-01-02',
    ]


def test_no_rows_leave_the_head(bigquery_url: str) -> None:
    """An empty answer still names its columns."""
    done = sql(bigquery_url, "SELECT n FROM UNNEST([1]) AS n WHERE n > 1")

    assert done.stdout == "n\n-\n"


@pytest.mark.parametrize(
    ("statement", "told"),
    [("SELECT nope", "nope"), ("SELEC 1", ""), ("SELECT * FROM no.such", "Not found")],
)
def test_an_error_is_one_line_and_status_1(bigquery_url: str, statement: str, told: str) -> None:
    """With BigQuery's own sentence, and nothing on standard output."""
    done = sql(bigquery_url, statement)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("jostler-sql: ")
    assert done.stderr.count("\n") == 1
    assert told in done.stderr


@pytest.mark.parametrize("argv", [[], ["SELECT 1", "--format", "xml"], ["  "], ["--nope", "x"]])
def test_wrong_use_is_status_2(argv: list[str]) -> None:
    """Before anything is asked."""
    with pytest.raises(SystemExit) as ended:
        main(argv)

    assert ended.value.code == 2
