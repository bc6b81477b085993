"""How fast a day of many small bundles is compacted, and that SQL over it answers the same.

usage: python -m bench.compact [--bundles 5000] [--rows 100] [--nodes 100] [--kind "1 KiB"] [--sql]

The archive is made up, in a directory bucket below the temporary directory.  MB are of rows,
uncompressed; "per core" is by CPU time of all threads.  With --sql the embedded BigQuery is asked
before and after.  `jostler audit` must find nothing after compaction, and with --sql, which lets it
look into BigQuery too, nothing after the second load.  On a machine that has other things to do,
compare CPU time alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from bench.files import KINDS, SCHEMA, document, documents
from jostler.archive.compact import THREADS, compact
from jostler.archive.compact_days import days
from jostler.archive.compact_plan import SMALL_BYTES, TARGET_BYTES, groups
from jostler.format.names import INDEX
from jostler.schema import INDEX1_FIELDS, fields_from_api, table_schema, to_json
from jostler.storage import open_storage
from tests.support.bundles import PLACE, bundle

if TYPE_CHECKING:
    from bench.files import Kind
    from jostler.archive.compact import Done
    from jostler.storage import Storage

PROJECT = "demo"
DATATYPE = "foo1"
DAY = date(2026, 1, 2)
SQL = (
    "SELECT COUNT(*) AS n, COUNT(DISTINCT archiver.Filename) AS files,"
    " MIN(raw.UUID) AS least, MAX(raw.UUID) AS greatest, SUM(raw.Port) AS ports,"
    " MIN(archiver.Filename) AS first, MAX(archiver.Filename) AS last"
    f" FROM raw_{PLACE.experiment}.{DATATYPE} WHERE date = '{DAY}'"
)


def make(root: Path, bundles: int, rows: int, kind: Kind, nodes: int) -> None:
    """Write the bundles of a day, and the table schemas."""
    made_of = documents(kind)
    storage = open_storage(root.as_uri())
    columns = to_json(table_schema(fields_from_api(SCHEMA)))
    storage.put_new(PLACE.table_schema(DATATYPE), columns, {})
    storage.put_new(PLACE.table_schema(INDEX), to_json(table_schema(INDEX1_FIELDS)), {})
    for number in range(bundles):
        files = [
            (f"m{number}-{line}.json", document(made_of, number * rows + line))
            for line in range(rows)
        ]
        made = bundle(
            files,
            node=f"node{number % nodes:04}",
            number=number,
            bucket=storage.url,
            datatype=DATATYPE,
        )
        for one in made:  # without the bucket's fsync: 10,000 of them would take minutes
            path = root / one.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(one.data)


def compact_day(storage: Storage) -> list[Done]:
    """Compact in this process, one group after the other."""
    found = []
    for _day, members, _others in days(storage, PLACE, DATATYPE, DAY, DAY):
        for group in groups(members, small_bytes=SMALL_BYTES, target_bytes=TARGET_BYTES):
            done = compact(
                storage, group, target_bytes=TARGET_BYTES, version="jostler@bench", threads=THREADS
            )
            assert not done.left, done.left
            found += done.done
    return found


class BigQuery:
    """The embedded BigQuery in a process of its own, and the loader."""

    def __init__(self, home: Path, bucket: str) -> None:
        self._bucket = bucket
        self._process = subprocess.Popen(
            [*(sys.executable, "-m", "embedded"), "--data-dir", str(home), "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        url = self._process.stdout.readline().split("listens on ")[1].split(",")[0]
        self._environ = {**os.environ, "BIGQUERY_EMULATOR_HOST": url}

    @property
    def environ(self) -> dict[str, str]:
        """For a command that shall find it."""
        return self._environ

    def answer(self) -> str:
        """Load the day and ask."""
        load = ["-m", "loader", "--bucket", self._bucket, "--project", PROJECT]
        load += ["--start", f"{DAY:%Y/%m/%d}", "--datatype", DATATYPE, "--master", "local[2]"]
        subprocess.run([sys.executable, *load], env=self._environ, check=True)
        asked = [
            sys.executable,
            "-m",
            "loader.cli.sql",
            "--project",
            PROJECT,
            "--format",
            "json",
            SQL,
        ]
        return subprocess.run(
            asked, env=self._environ, check=True, capture_output=True, text=True
        ).stdout

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def audit(bucket: str, when: str, bigquery: BigQuery | None) -> bool:
    """Run `jostler audit` over the day, print what it says; return whether it found nothing."""
    command = [*(sys.executable, "-m", "jostler", "audit", "-bucket", bucket)]
    command += ["-experiment", PLACE.experiment, "-datatype", DATATYPE]
    command += ["-start", str(DAY), "-end", str(DAY)]
    if bigquery:
        command += ["-project", PROJECT]
    environ = bigquery.environ if bigquery else None
    ended = subprocess.run(command, env=environ, check=False, stdout=subprocess.PIPE, text=True)
    print(f"jostler audit {when}, exit status {ended.returncode}:\n{ended.stdout.rstrip()}")
    return ended.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bundles", type=int, default=5000)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], default="1 KiB")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--sql", action="store_true")
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bench-compact-"))
    bigquery = None
    try:
        root = home / "bucket"
        kind = next(kind for kind in KINDS if kind.name == given.kind)
        make(root, given.bundles, given.rows, kind, given.nodes)
        storage = open_storage(root.as_uri())
        if given.sql:
            bigquery = BigQuery(home / "bigquery", storage.url)
        before = bigquery.answer() if bigquery else ""
        audit(storage.url, "before compaction", bigquery)  # may tell of many small bundles
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        done = compact_day(storage)
        wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
        plain = sum(one.plain_bytes for one in done)
        objects = sum(one.objects_before for one in done), sum(one.objects_after for one in done)
        sizes = sum(one.bytes_before for one in done), sum(one.bytes_after for one in done)
        print(
            f"{plain / 1e6:.0f} MB of rows: {objects[0]} objects became {objects[1]},"
            f" {sizes[0] / 1e6:.1f} MB became {sizes[1] / 1e6:.1f} MB;"
            f" {wall_s:.1f} s, {plain / 1e6 / wall_s:.0f} MB/s;"
            f" {cpu_s:.1f} s of CPU, {plain / 1e6 / cpu_s:.0f} MB/s per core"
        )
        clean = audit(storage.url, "after compaction", None)
        if not bigquery:
            return 0 if clean else 1
        after = bigquery.answer()
        clean = audit(storage.url, "after the second load", bigquery) and clean
        print(f"SQL before: {before.strip()}\nSQL after:  {after.strip()}")
        return 0 if clean and before == after else 1
    finally:
        if bigquery:
            bigquery.stop()
        shutil.rmtree(home)


if __name__ == "__main__":
    sys.exit(main())
