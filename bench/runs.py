"""How long runs of the loader take that find little to do: no new bundle, or a small one a day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from bench.bundles import DAY, FLAT, PLACE, header
from bench.server import bigquery
from jostler.bundle import Entry, FileState, OpenBundle, content_hash
from jostler.bundle.bundle import index_object
from jostler.format.blocks import BlockWriter
from jostler.format.compression import Compression, Method
from jostler.format.names import Day
from jostler.format.row import Archiver, row, row_head
from jostler.schema import fields_from_api, table_schema, to_json
from jostler.storage import upload_id
from jostler.storage.directory import DirectoryStorage

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path


def hourly(root: Path) -> None:
    """Load ten days of twenty small bundles, each changed by one more bundle, in both ways."""
    print()
    for way in ("index", "full"):
        home = root / way
        bucket = DirectoryStorage(home / "bucket")
        table = table_schema(fields_from_api(FLAT))
        bucket.put_new(PLACE.table_schema("foo1"), to_json(table), {})
        schema = upload_id(to_json(table))
        bucket.put_new(PLACE.kept_schema("foo1", schema), to_json(table), {})
        for n in range(200):
            put_pair(bucket, DAY + timedelta(days=n % 10), n, schema)
        with bigquery(home / "bq") as url:
            for run in range(3):
                for day in range(10 if run else 0):
                    number = 200 + run * 10 + day
                    put_pair(bucket, DAY + timedelta(days=day), number, schema)
                spent, summary = load(bucket.url, url, "--verify", way, "--datatype", "foo1")
                what = "one more bundle each" if run else "first load"
                print(f"10 days of 20 bundles, --verify {way}, {what}: {spent:.1f} s; {summary}")


def put_pair(bucket: DirectoryStorage, day: date, number: int, schema: str) -> None:
    """Store a bundle of ten files and its index, with the metadata that the agent gives them."""
    head = header(bucket.url, number, day)
    opened = OpenBundle(head, 0.0)
    for n in range(number * 10, number * 10 + 10):
        document = json.dumps({"UUID": f"u{n}", "Count1": n}).encode()
        path = f"foo1/{Day(day).path}/m{n}.json"
        entry = Entry(path, FileState(n, len(document), 1, 1), 10**15, content_hash(document))
        opened.add(entry, opened.row(entry.filename, document))
    sealed = opened.seal()
    data_id = sealed.attempt.upload_id
    bucket.put_new(str(head.name), sealed.data, {"rows": "10", "schema": schema})
    index = index_object(head, sealed.attempt)
    metadata = {"rows": "10", "data-upload-id": data_id}
    bucket.put_new(str(head.index_name), index, metadata)


def load(bucket: str, bigquery: str, *more: str) -> tuple[float, str]:
    """Run the loader; return its seconds and the last line of what it says."""
    argv = ["--bucket", bucket, "--project", "bench", "--period", "everything", *more]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "loader", *argv],
        env={**os.environ, "BIGQUERY_EMULATOR_HOST": bigquery},
        capture_output=True,
        text=True,
        check=False,
    )
    spent = time.perf_counter() - began
    assert done.returncode == 0, done.stdout + done.stderr
    return spent, done.stdout.splitlines()[-1]


def unchanged(root: Path, bundles: int) -> None:
    """Load an archive of small bundles, then run again over it."""
    bucket = root / "archive"
    days = 20
    schema = bucket / "autoload/v1/tables/exp"
    schema.mkdir(parents=True)
    (schema / "foo1.table.json").write_bytes(_table_json())
    for n in range(bundles):
        day = Day(DAY + timedelta(days=n % days))
        folder = bucket / f"autoload/v1/exp/foo1/{day.path}"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"20260301T000000.{n:06}Z-foo1-node1-exp-data.jsonl.gz"
        head = row_head(Archiver(version="v1", commit="c"), day, f"{bucket.as_uri()}/{name}")
        writer = BlockWriter(Compression(Method.ISAL, 1))
        document = json.dumps({"UUID": f"u{n}", "Count1": n}).encode()
        writer.add(row(head, json.dumps(f"{day.path}/m{n}.json").encode(), document))
        (folder / name).write_bytes(writer.finish())
    print()
    with bigquery(root / "bq") as url:
        for run in ("first load", "again: nothing new"):
            spent, summary = load(bucket.as_uri(), url)
            print(f"{bundles:,} bundles, {run}: {spent:.1f} s; {summary}")


def _table_json() -> bytes:
    return to_json(table_schema(fields_from_api(FLAT)))
