"""What a run of the loader costs that has little to do, or nothing.

usage: python -m bench.runs [--bundles 10000] [--rounds 3]

  unchanged   an archive of small bundles of 20 days, loaded; then a run with nothing new, and runs
              with one more bundle
  hourly      ten days of twenty small bundles with their indexes, loaded; then one more bundle for
              each day: the days by their index or read in full, with Spark and without

Each run is a process of its own, with the embedded BigQuery; seconds are those of the process, from
its start to its end, and CPU seconds those of it and all that it started.  Ways take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from bench.bundles import DAY, FLAT, PLACE, header
from bench.loads import descendants
from bench.server import bigquery
from jostler.bundle import Entry, FileState, OpenBundle, content_hash
from jostler.bundle.bundle import index_object
from jostler.format.names import Day
from jostler.schema import fields_from_api, table_schema, to_json
from jostler.storage import upload_id
from jostler.storage.directory import DirectoryStorage

TABLE = to_json(table_schema(fields_from_api(FLAT)))
WAYS = (
    ("index", ()),
    ("index, with Spark", ("--engine", "spark")),
    ("full", ("--verify", "full")),
    ("full, with Spark", ("--verify", "full", "--engine", "spark")),
)


@dataclass
class Archive:
    """A bucket in a directory, with bundles of ten files as agents leave them."""

    bucket: DirectoryStorage
    bundles: int = 0

    def __post_init__(self) -> None:
        self.bucket.put_new(PLACE.table_schema("foo1"), TABLE, {})
        self.bucket.put_new(PLACE.kept_schema("foo1", upload_id(TABLE)), TABLE, {})

    def put(self, day: date) -> None:
        """Store a bundle and its index, with the metadata that the agent gives them."""
        number, self.bundles = self.bundles, self.bundles + 1
        made = header(self.bucket.url, number, day)
        opened = OpenBundle(made, 0.0)
        for n in range(number * 10, number * 10 + 10):
            document = json.dumps({"UUID": f"u{n}", "Count1": n}).encode()
            path = f"foo1/{Day(day).path}/m{n}.json"
            entry = Entry(path, FileState(n, len(document), 1, 1), 10**15, content_hash(document))
            opened.add(entry, opened.row(entry.filename, document))
        sealed = opened.seal()
        metadata = {"rows": "10", "schema": upload_id(TABLE)}
        self.bucket.put_new(str(made.name), sealed.data, metadata)
        metadata = {"rows": "10", "data-upload-id": sealed.attempt.upload_id}
        self.bucket.put_new(str(made.index_name), index_object(made, sealed.attempt), metadata)


def load(bucket: str, url: str, *more: str) -> tuple[float, float, str]:
    """Run the loader; return its seconds, its CPU seconds and the last line of what it says."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "loader", "--bucket", bucket, "--project", "bench"),
            *("--period", "everything", *more),
        ],
        env={**os.environ, "BIGQUERY_EMULATOR_HOST": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    cpu_s: dict[int, float] = {}
    while process.poll() is None:
        cpu_s |= {one.pid: one.cpu_s for one in descendants(process.pid)}
        time.sleep(0.05)
    spent_s = time.perf_counter() - began
    assert process.stdout
    output = process.stdout.read()
    process.stdout.close()
    assert process.returncode == 0, output
    return spent_s, sum(cpu_s.values()), output.splitlines()[-1]


def unchanged(root: Path, bundles: int, rounds: int) -> None:
    """Load an archive of small bundles, then run again over it."""
    archive = Archive(DirectoryStorage(root / "archive"))
    for n in range(bundles):
        archive.put(DAY + timedelta(days=n % 20))
    with bigquery(root / "bq") as url:
        for run in range(2 * rounds + 1):
            what = "nothing new" if run % 2 else "first load"
            if run and not run % 2:
                what = "one more"
                archive.put(DAY)
            spent_s, cpu_s, summary = load(archive.bucket.url, url)
            print(
                f"{bundles:,} bundles, {what}: {spent_s:.1f} s, CPU {cpu_s:.1f} s; {summary}",
                flush=True,
            )


def hourly(root: Path, rounds: int) -> None:
    """Load ten days of twenty small bundles, each changed by one more bundle, in all ways."""
    archive = Archive(DirectoryStorage(root / "hourly"))
    for n in range(200):
        archive.put(DAY + timedelta(days=n % 10))
    seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with bigquery(root / "hourly-bq") as url:
        load(archive.bucket.url, url)
        for _ in range(rounds):
            for way, more in WAYS:
                for day in range(10):
                    archive.put(DAY + timedelta(days=day))
                spent_s, cpu_s, summary = load(archive.bucket.url, url, *more)
                assert summary.startswith("20 success"), summary  # and ten days of index1
                seconds[way].append((spent_s, cpu_s))
    for way, found in seconds.items():
        spent_s, cpu_s = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"10 days of 20 bundles, one more each, {way}: {spent_s:.1f} s, CPU {cpu_s:.1f} s")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bundles", type=int, default=10_000, help="unchanged ones; 0: none")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
        hourly(Path(home), options.rounds)
        if options.bundles:
            unchanged(Path(home), options.bundles, options.rounds)


if __name__ == "__main__":
    main()
