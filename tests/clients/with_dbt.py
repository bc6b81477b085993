"""Ten steps with dbt-bigquery: seed, view, table, incremental, test."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from steps import run

URL = os.environ["BIGQUERY_EMULATOR_HOST"]
DATASET = f"dbt_{uuid.uuid4().hex[:8]}"
CLIENT = bigquery.Client("proj", AnonymousCredentials(), client_options={"api_endpoint": URL})
HERE = Path(__file__).parent / "dbt"
TARGET = tempfile.mkdtemp()


def dbt(*arguments: str) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("dbt")), "--no-use-colors",
            "--no-send-anonymous-usage-stats",
            "--log-path", TARGET, *arguments,
            "--project-dir", str(HERE), "--profiles-dir", str(HERE),
        ],
        env={**os.environ, "DBT_DATASET": DATASET, "DBT_TARGET_PATH": TARGET},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stdout[-700:] if "-v" not in sys.argv else done.stdout)


def rows(table: str) -> list[tuple[object, ...]]:
    found = CLIENT.query_and_wait(f"SELECT id, name FROM {DATASET}.{table} ORDER BY id")
    return [tuple(row.values()) for row in found]


def table() -> None:
    dbt("run", "--select", "a_table")
    assert rows("a_table") == [(1, "A"), (2, "B")]


def incremental() -> None:
    dbt("run", "--select", "merged")
    assert rows("merged") == [(1, "A"), (2, "B")]


def again() -> None:
    dbt("run", "--select", "merged")
    assert rows("merged") == [(1, "A"), (2, "B"), (3, "C")]


def overwrite() -> None:
    dbt("run", "--select", "replaced")
    dbt("run", "--select", "replaced")
    assert rows("replaced") == [(1, "A"), (2, "B")]


if __name__ == "__main__":
    run(
        "dbt-bigquery",
        [
            ("debug", lambda: dbt("debug")),
            ("seed", lambda: dbt("seed")),
            ("view", lambda: dbt("run", "--select", "a_view")),
            ("table with partitions and clusters", table),
            ("incremental, first run", incremental),
            ("incremental, merge", again),
            ("incremental, insert_overwrite", overwrite),
            ("test", lambda: dbt("test")),
            ("show", lambda: dbt("show", "--select", "a_table")),
            ("docs generate", lambda: dbt("docs", "generate")),
        ],
    )
