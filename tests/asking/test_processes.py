"""`jostler-query` as a process of its own: interrupted on BigQuery, and sent to a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from tests.asking.test_command import ROOT, WAIT_S, children
from tests.support.spark_cluster import standalone, submit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.asking.archive import Archive
    from tests.loader.world import BigQueryServer

pytestmark = pytest.mark.long

SLOW_S = 900
ENDED_S = 200


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("reply_s", [0, 4], ids=["known", "not known yet"])
def test_an_interrupt_cancels_the_job_of_bigquery(
    archive: Archive,
    warehouse: BigQueryServer,
    tmp_path: Path,
    number: signal.Signals,
    reply_s: int,
) -> None:
    """It says so, with status 130; no row, no file and no process is left.

    BigQuery may have the job before the command has the answer that says so.
    """
    archive.put([{"Count": 1}])
    project = f"i{uuid.uuid4().hex[:12]}"
    client = bigquery.Client(
        project, AnonymousCredentials(), client_options={"api_endpoint": warehouse.url}
    )
    temporary, out = tmp_path / "tmp", tmp_path / "rows.csv"
    temporary.mkdir()
    warehouse.fault("job_slow", seconds=SLOW_S)
    if reply_s:
        warehouse.fault("slow_after", method="POST", path="/(jobs|queries)$", seconds=reply_s)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "loader.cli.query", "--bucket", archive.url, "--bigquery"),
            *("--project", project, "--format", "csv", "--out", str(out)),
            "SELECT COUNT(*) AS n FROM foo1 WHERE date = '2026-01-02'",
        ],
        env={
            **os.environ,
            "BIGQUERY_EMULATOR_HOST": warehouse.url,
            "TMPDIR": str(temporary),
            "PYTHONPATH": str(ROOT),
        },
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline_s = time.monotonic() + WAIT_S
        while not (jobs := [job for job in client.list_jobs() if job.state != "DONE"]):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        process.send_signal(number)
        printed, told = process.communicate(timeout=ENDED_S)
        left = children(process.pid)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        warehouse.clear()

    assert (process.returncode, printed) == (130, ""), told
    assert told == "jostler-query: interrupted: the work for this question is cancelled\n"
    [job] = jobs
    with pytest.raises(Exception, match="cancelled"):
        client.get_job(job.job_id).result(timeout=ENDED_S)
    client.close()
    assert left == set()
    assert list(temporary.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"bucket", "tmp"}


def test_a_question_is_sent_to_a_cluster_by_spark_submit(
    archive: Archive, environment: None, tmp_path: Path
) -> None:
    """Executors have the libraries; the code comes as a zip."""
    del environment
    for nth in range(6):
        archive.put([{"Count": nth}, {"Count": 10}], node=f"n{nth}")
    home = tmp_path / "home"
    home.mkdir()
    question = "table from=20260102 to=20260103 foo1 | stats count, sum(raw.Count) as n"

    with standalone(home) as master:
        ran = submit(master, home, "query", "--bucket", archive.url, "--format", "csv", question)

    assert ran.returncode == 0, ran.stderr[-3000:]
    head, row = ran.stdout.splitlines()
    assert (head, row) == ("count,n", "12,75")
    assert {executor.parent.name for executor in (home / "work").glob("app-*/*")}
