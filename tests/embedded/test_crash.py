"""What is left after kill -9, and after a proper end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from google.api_core.exceptions import Conflict, GoogleAPICallError, NotFound
from google.cloud import bigquery
from google.cloud.bigquery import LoadJobConfig, SchemaField

from embedded import EmbeddedBigQuery, InUseError
from tests.embedded.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.long  # a server is killed and started anew in each

ROWS = 20_000
REPLACE = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", write_disposition="WRITE_TRUNCATE")


def write_rows(path: Path, version: int) -> str:
    line = json.dumps({"date": "2022-09-29", "v": version, "text": "x" * 200})
    path.write_text(f"{line}\n" * ROWS)
    return path.as_uri()


def make_table(client: bigquery.Client) -> None:
    client.create_dataset("ds")
    schema = [
        SchemaField("date", "DATE"),
        SchemaField("v", "INTEGER"),
        SchemaField("text", "STRING"),
    ]
    table = bigquery.Table("proj.ds.t", schema=schema)
    table.time_partitioning = bigquery.TimePartitioning(field="date")
    client.create_table(table)


def versions(client: bigquery.Client) -> dict[int, int]:
    rows = client.query_and_wait("SELECT v, COUNT(*) AS c FROM ds.t GROUP BY v")
    return {row.v: row.c for row in rows}


def until(reached: Callable[[], bool]) -> None:
    """Wait for a moment in the life of the server; the test fails if it does not come."""
    deadline = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < deadline


def size_of(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths if path.exists())


MOMENTS = ("accepted", "begins to judge", "has judged half", "writes", "has written", "is done")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_load_leaves_old_rows_or_new_rows(tmp_path: Path, moment: str) -> None:
    """Never a mixture; and the job's id is spent, whichever way it went."""
    old, new = (write_rows(tmp_path / f"{v}.jsonl", v) for v in (1, 2))
    data = tmp_path / "data"
    with serving(data) as server:
        client = server.client()
        make_table(client)
        client.load_table_from_uri(old, "ds.t$20220929", job_config=REPLACE, job_id="one").result()
        staged = data / "staging" / "proj.US.two"
        files = (data / "bigquery.duckdb", data / "bigquery.duckdb.wal")
        before = size_of(*files)
        client.load_table_from_uri(new, "ds.t$20220929", job_config=REPLACE, job_id="two")
        until(
            {
                "accepted": lambda: True,
                "begins to judge": staged.exists,
                "has judged half": lambda: size_of(staged) > 2 * 2**20,
                "writes": lambda: size_of(*files) > before + 2**14,
                "has written": lambda: size_of(*files) > before + 2**18,
                "is done": lambda: client.get_job("two").done(),
            }[moment]
        )
        server.kill()

    with serving(data) as server:
        client = server.client()
        job = client.get_job("two", location="US")
        assert job.state == "DONE"
        loaded = job.error_result is None
        assert versions(client) == {2 if loaded else 1: ROWS}
        for name in ("one", "two"):
            with pytest.raises(Conflict):
                client.load_table_from_uri(new, "ds.t", job_config=REPLACE, job_id=name)
        if not loaded:
            assert job.error_result["reason"] == "backendError"
            again = client.load_table_from_uri(
                new, "ds.t$20220929", job_config=REPLACE, job_id="three"
            )
            again.result()
            assert versions(client) == {2: ROWS}


def test_everything_is_there_after_a_proper_end(tmp_path: Path) -> None:
    """SIGTERM ends it with 0; tables, rows, views and jobs are found again."""
    uri = write_rows(tmp_path / "rows.jsonl", 1)
    with serving(tmp_path / "data") as server:
        client = server.client()
        make_table(client)
        client.load_table_from_uri(uri, "ds.t", job_config=REPLACE, job_id="one").result()
        view = bigquery.Table("proj.ds.v")
        view.view_query = "SELECT v FROM ds.t"
        client.create_table(view)
        etag = client.get_table("ds.t").etag
        assert server.stop() == 0
    with serving(tmp_path / "data") as server:
        client = server.client()
        assert versions(client) == {1: ROWS}
        assert client.get_table("ds.t").etag == etag
        assert client.get_job("one").output_rows == ROWS
        (row,) = client.query_and_wait("SELECT COUNT(*) AS c FROM ds.v")
        assert row.c == ROWS
        assert list((tmp_path / "data" / "staging").iterdir()) == []


def test_it_says_in_one_line_where_it_listens_and_how_to_reach_it(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as server:
        client = server.client()
        assert list(client.list_datasets()) == []
        assert f"BIGQUERY_EMULATOR_HOST={server.url}" in server.line


def test_a_directory_is_served_once(tmp_path: Path) -> None:
    """The second server says so and ends with 2."""
    with serving(tmp_path / "data"):
        second = subprocess.run(
            [sys.executable, "-m", "embedded", "--data-dir", str(tmp_path / "data")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert second.returncode == 2
    assert "is it served already?" in second.stderr


def test_a_port_is_taken_once(tmp_path: Path) -> None:
    """The data directory of the one that failed is free again."""
    with EmbeddedBigQuery(tmp_path / "a") as first:
        with pytest.raises(OSError, match="ddress"):
            EmbeddedBigQuery(tmp_path / "b", port=first.port)
        with EmbeddedBigQuery(tmp_path / "b") as second:
            assert second.url != first.url
        with pytest.raises(InUseError):
            EmbeddedBigQuery(tmp_path / "a")


def test_results_of_queries_end_with_the_server(tmp_path: Path) -> None:
    """A page token from before is refused, not answered with other rows."""
    with serving(tmp_path / "data") as server:
        job = server.client().query("SELECT 1 AS x", job_id="q", job_retry=None)
        job.result()
    with serving(tmp_path / "data") as server:
        with pytest.raises(NotFound, match="kept until the server stops"):
            server.client().get_job("q").result(job_retry=None)
        with pytest.raises(GoogleAPICallError):
            server.client().query("SELECT 1", job_id="q", retry=None, job_retry=None).result()


def test_a_second_signal_does_no_harm(tmp_path: Path) -> None:
    """The end is proper all the same."""
    with serving(tmp_path / "data") as server:
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGTERM)
        assert server.stop() == 0
