"""The sample archive of docs/query.md: in a bucket by an agent, and in BigQuery by the loader."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from loader.cli.main import main as load

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples/query"


def jostler(*argv: str, cwd: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "jostler", *argv],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def make(home: Path) -> str:
    """Store the sample rows as docs/query.md says; return the URL of the bucket."""
    (home / "spool/datatypes").mkdir(parents=True)
    for schema in SAMPLE.glob("*.json"):
        shutil.copy(schema, home / "spool/datatypes")
    bucket = home / "bucket"
    for file in sorted(SAMPLE.glob("*.jsonl")):
        datatype, _, node = file.stem.partition("-")
        spool = ("-experiment", "demo", "-local-data-dir", "spool", "-datatype", datatype)
        spool += ("-index-field", f"{datatype}:Start=StartTime")
        jostler("push", *spool, str(file), cwd=home)
        jostler(
            *("-gcs-bucket", bucket.as_uri(), "-node-name", node, *spool),
            *("-once", "-missed-age", "0s", "-prometheusx.listen-address", ""),
            cwd=home,
        )
    shutil.copytree(SAMPLE / "lookups", bucket / "lookups")
    return bucket.as_uri()


def load_into_bigquery(bucket: str, project: str) -> None:
    """Load the sample archive into the embedded BigQuery of the environment."""
    assert load(["--bucket", bucket, "--project", project, "--period", "everything"]) == 0
