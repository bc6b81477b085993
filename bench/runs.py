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
import statistics
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from bench.bundles import DAY, put_files, put_schema
from bench.server import bigquery
from bench.watched import watched_load
from jostler.storage.directory import DirectoryStorage

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
        put_schema(self.bucket)

    def put(self, day: date) -> None:
        """Store a bundle and its index, with the metadata that the agent gives them."""
        put_files(self.bucket, self.bundles, day, 10)
        self.bundles += 1


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
            done = watched_load(archive.bucket.url, url)
            spent = f"{done.wall_s:.1f} s, CPU {done.cpu_s:.1f} s"
            print(f"{bundles:,} bundles, {what}: {spent}; {done.last_line}", flush=True)


def hourly(root: Path, rounds: int) -> None:
    """Load ten days of twenty small bundles, each changed by one more bundle, in all ways."""
    archive = Archive(DirectoryStorage(root / "hourly"))
    for n in range(200):
        archive.put(DAY + timedelta(days=n % 10))
    seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with bigquery(root / "hourly-bq") as url:
        watched_load(archive.bucket.url, url)
        for _ in range(rounds):
            for way, more in WAYS:
                for day in range(10):
                    archive.put(DAY + timedelta(days=day))
                done = watched_load(archive.bucket.url, url, *more)
                # Ten days, and ten of index1.
                assert done.last_line.startswith("20 success"), done.last_line
                seconds[way].append((done.wall_s, done.cpu_s))
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
