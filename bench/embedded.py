"""Measure the embedded BigQuery: `python -m bench.embedded [ROWS]`.

One load job of ROWS (100,000) rows of about 1 KB into a day partition, gzip, from a file; then the
same day replaced, and a query over it.  Prints seconds, MB/s of uncompressed rows, and the
server's peak memory.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from google.cloud.bigquery import LoadJobConfig, SchemaField

DAY = "2022-09-29"
SCHEMA = [
    SchemaField("date", "DATE"),
    SchemaField(
        "raw",
        "RECORD",
        fields=[
            SchemaField("id", "STRING"),
            SchemaField("start", "TIMESTAMP"),
            SchemaField("rate", "FLOAT"),
            SchemaField("bytes", "INTEGER"),
            SchemaField("note", "STRING"),
            SchemaField(
                "samples",
                "RECORD",
                "REPEATED",
                fields=[SchemaField("at", "INTEGER"), SchemaField("rtt", "FLOAT")],
            ),
        ],
    ),
]


def row(number: int, rng: random.Random) -> bytes:
    raw: dict[str, Any] = {
        "id": f"{rng.getrandbits(128):032x}",
        "start": f"{DAY}T{number % 24:02}:{number % 60:02}:00.123456789Z",
        "rate": rng.random() * 1000,
        "bytes": rng.getrandbits(40),
        "note": f"{rng.getrandbits(1200):x}",
        "samples": [{"at": i, "rtt": round(rng.random() * 100, 3)} for i in range(16)],
    }
    return json.dumps({"date": DAY, "raw": raw}).encode() + b"\n"


def peak_mb(process: subprocess.Popen[str]) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.jsonl.gz"
        size = 0
        with gzip.open(path, "wb", compresslevel=1) as out:
            for number in range(count):
                line = row(number, rng)
                size += len(line)
                out.write(line)
        measure(Path(name), path, count, size)


def measure(directory: Path, path: Path, count: int, size: int) -> None:
    command = [sys.executable, "-m", "embedded", "--port", "0"]
    command += ["--data-dir", str(directory / "data")]
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split("listens on ")[1].split(",")[0]
        print(f"start            {time.monotonic() - begun:6.2f} s")
        client = bigquery.Client(
            "bench", AnonymousCredentials(), client_options={"api_endpoint": url}
        )
        client.create_dataset("ds")
        table = bigquery.Table("bench.ds.t", schema=SCHEMA)
        table.time_partitioning = bigquery.TimePartitioning(field="date")
        client.create_table(table)
        print(f"idle             {peak_mb(server):6.0f} MB peak")
        config = LoadJobConfig(
            source_format="NEWLINE_DELIMITED_JSON", write_disposition="WRITE_TRUNCATE"
        )
        for what in ("load", "replace"):
            job = client.load_table_from_uri(
                path.as_uri(), "bench.ds.t$20220929", job_config=config
            )
            job.result()
            assert job.output_rows == count
            took_s = (job.ended - job.started).total_seconds()
            print(
                f"{what:<8} {count:>7} {took_s:6.2f} s {size / took_s / 1e6:6.0f} MB/s"
                f" {peak_mb(server):6.0f} MB peak ({size / count:.0f} bytes a row)"
            )
        begun = time.monotonic()
        sql = "SELECT AVG(s.rtt), COUNT(*) FROM ds.t, UNNEST(raw.samples) AS s"
        (found,) = client.query_and_wait(sql)
        assert found[1] == count * 16
        print(f"query            {time.monotonic() - begun:6.2f} s        over {found[1]} samples")
        begun = time.monotonic()
        rows = sum(1 for _ in client.list_rows("bench.ds.t", max_results=20_000))
        print(
            f"list_rows {rows:>6} {time.monotonic() - begun:6.2f} s {peak_mb(server):14.0f} MB peak"
        )
        server.terminate()


if __name__ == "__main__":
    main()
