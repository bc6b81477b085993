"""What whole runs of the loader take: days a minute with slow load jobs; memory at the extremes.

usage: python -m bench.loads [--days 1000] [--many-days 3000] [--bundles 12000] [--bad-mb 1000]

Each archive lies in a directory, and is loaded into the embedded BigQuery, by a process of its own:

  slow jobs   days of four datatypes, a small bundle each; every load job takes 3 s, those of ledger
              and rejects too
  days        the same without slowness, for memory
  bundles     one day of many small bundles
  bad rows    one day with rows of 60 KB that are all bad, loaded with --max-bad-fraction 1 and,
              refused, without; and a good day beside it

Memory is resident memory, looked at each 0.1 s: the driver, Spark's JVM, and all Python workers
together with the largest of them.  0 leaves an archive out.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import urllib.request
from datetime import date, timedelta
from pathlib import Path

from bench.server import bigquery
from bench.watched import watched_load
from jostler.format.blocks import BlockWriter
from jostler.format.compression import Compression, Method
from jostler.format.names import Day
from jostler.format.row import Archiver, row, row_head
from jostler.schema import fields_from_api, table_schema, to_json

FIRST = date(2015, 1, 1)
SCHEMA = [{"name": "UUID", "type": "STRING"}, {"name": "Count", "type": "INTEGER"}]
DATATYPES = ("foo1", "foo2", "foo3", "foo4")
SLOW_S = 3.0
BUNDLE_BYTES = 20 * 1024 * 1024
BAD_ROW_BYTES = 60_000


class Archive:
    """A bucket in a directory."""

    def __init__(self, root: Path) -> None:
        self.url = root.as_uri()
        self._root = root
        self._made = 0
        tables = root / "autoload/v1/tables/exp"
        tables.mkdir(parents=True)
        schema = to_json(table_schema(fields_from_api(SCHEMA)))
        for datatype in DATATYPES:
            (tables / f"{datatype}.table.json").write_bytes(schema)

    def put(self, day: date, documents: list[bytes], datatype: str = DATATYPES[0]) -> None:
        """Store a bundle."""
        self._made += 1
        path = Day(day)
        folder = self._root / f"autoload/v1/exp/{datatype}/{path.path}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"20260301T000000.{self._made:06}Z-{datatype}-node1-exp-data.jsonl.gz"
        head = row_head(Archiver(version="v1", commit="c"), path, f"{self.url}/{name}")
        writer = BlockWriter(Compression(Method.ISAL, 1))
        for number, document in enumerate(documents):
            filename = f"{path.path}/m{self._made}-{number}.json"
            writer.add(row(head, json.dumps(filename).encode(), document))
        (folder / name).write_bytes(writer.finish())

    def put_days(self, count: int) -> None:
        """Store a small bundle for each of so many days, of all datatypes in turn."""
        for number in range(count):
            day = FIRST + timedelta(days=number // len(DATATYPES))
            self.put(day, [b'{"UUID":"u","Count":1}'] * 3, DATATYPES[number % len(DATATYPES)])


def load(what: str, url: str, archive: Archive, *more: str, status: int = 0) -> float:
    """Load an archive; say how long it took, how much memory, and how it ended; return seconds."""
    done = watched_load(archive.url, url, *more, status=status)
    print(f"{what}: {done.wall_s:.1f} s; {done.memory}; {done.last_line}", flush=True)
    return done.wall_s


def slow_jobs(home: Path, count: int) -> None:
    """Load days with load jobs that take their time."""
    archive = Archive(home / "bucket")
    archive.put_days(count)
    with bigquery(home / "bq") as url:
        fault = {"fault": "job_slow", "seconds": SLOW_S, "times": 10**9}
        headers = {"Content-Type": "application/json"}
        body = json.dumps(fault).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{url}/_faults", body, headers)):
            pass
        spent_s = load(f"{count:,} days, {SLOW_S:g} s for each load job", url, archive)
        print(f"  {count / spent_s * 60:,.0f} days a minute, Spark's start included")


def many_days(home: Path, count: int) -> None:
    """Load days as fast as it goes."""
    archive = Archive(home / "bucket")
    archive.put_days(count)
    with bigquery(home / "bq") as url:
        spent_s = load(f"{count:,} days", url, archive)
        print(f"  {count / spent_s * 60:,.0f} days a minute, Spark's start included")


def many_bundles(home: Path, count: int) -> None:
    """Load a day of many bundles."""
    archive = Archive(home / "bucket")
    for _ in range(count):
        archive.put(FIRST, [b'{"UUID":"u","Count":1}'] * 3)
    with bigquery(home / "bq") as url:
        load(f"{count:,} bundles in a day", url, archive)


def bad_rows(home: Path, size: int) -> None:
    """Load a day of large bad rows, and a good one."""
    archive = Archive(home / "bucket")
    rng = random.Random(1)
    words = [f"{rng.randrange(10**6):x}" for _ in range(1000)]
    texts = [" ".join(rng.choices(words, k=BAD_ROW_BYTES // 6)) for _ in range(20)]
    made = [json.dumps({"UUID": text, "Count": "many"}).encode() for text in texts]
    archive.put(FIRST, [b'{"UUID":"u","Count":1}'] * 100)
    total = rows = 0
    while total < size:
        bundle = [made[n % len(made)] for n in range(BUNDLE_BYTES // len(made[0]))]
        archive.put(FIRST + timedelta(days=1), bundle)
        total, rows = total + sum(map(len, bundle)), rows + len(bundle)
    what = f"{rows:,} bad rows, {total / 1e6:,.0f} MB"
    with bigquery(home / "bq") as url:
        load(f"{what}, refused", url, archive, status=1)
        load(f"{what}, to the rejects", url, archive, "--max-bad-fraction", "1")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=1000, help="with slow load jobs")
    parser.add_argument("--many-days", type=int, default=3000)
    parser.add_argument("--bundles", type=int, default=12_000)
    parser.add_argument("--bad-mb", type=int, default=1000)
    parser.add_argument("--dir", default=None, help="where archives are made")
    options = parser.parse_args()
    for count, measure in (
        (options.bad_mb * 10**6, bad_rows),
        (options.bundles, many_bundles),
        (options.many_days, many_days),
        (options.days, slow_jobs),
    ):
        if count:
            with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
                measure(Path(home), count)


if __name__ == "__main__":
    main()
