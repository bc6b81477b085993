"""How fast the loader verifies bundles, beside Spark's own JSON reader over the same objects.

usage: python -m bench.loader [--mb 1500] [--rounds 3] [--archive 10000]

Two shapes of rows, in bundles of 20 MiB as agents make them, on one core and on two:

  flat   1 KiB, a few columns and short text
  ndt7   32 KiB, NDT7's shape: a header and a repeated record of counters

  index    what the job does before it loads a trusted day: read the indexes, and 1 % of the
           bundles, and find out whether a name occurs twice (loader.spark.index)
  full     what it does before it loads any other: read, inflate, judge each row as BigQuery would,
           take keys, find repeats and bad rows over all bundles (loader.spark.engine, .steps)
  spark    spark.read.json with the table's schema, every column parsed, nothing kept; it accepts
           what BigQuery refuses and drops what it does not know, so this is less work

MB are 10**6 bytes of uncompressed rows.  Starting the JVM and a first round are not counted.  Ways
take turns in one run; the best round counts.

Then an archive of many small bundles is loaded into the embedded BigQuery, and the loader is run
again over it: nothing is new, so it lists and stops.  Then hourly runs: ten days of twenty small
bundles each, to each of which one comes.  --archive 0 leaves these out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench.files import NO_UUID, SCHEMA, STARTED, documents
from bench.files import Kind as Files
from jostler.bundle import Entry, FileState, Header, OpenBundle, content_hash
from jostler.bundle.bundle import index_object
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST, Compression, Method
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.row import Archiver, row, row_head
from jostler.schema import fields_from_api, table_schema, to_json
from jostler.storage import upload_id
from jostler.storage.directory import DirectoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from jostler.schema import Field, Fields
    from loader.spark.verify import Task

BUNDLE_BYTES = 20 * 1024 * 1024
DAY = date(2026, 1, 2)
FLAT = [
    {"name": name, "type": kind}
    for name, kind in (
        *(("UUID", "STRING"), ("StartTime", "TIMESTAMP"), ("Server", "STRING")),
        *((f"Count{n}", "INTEGER") for n in range(10)),
        *((f"Rate{n}", "FLOAT") for n in range(10)),
        *((f"Note{n}", "STRING") for n in range(6)),
    )
]
Sizes = tuple[list[int], int]
"""Rows of each bundle, and bytes of all rows."""
SHAPES = {"flat": FLAT, "ndt7": SCHEMA}


def flat() -> list[bytes]:
    """Make flat documents of 1 KiB."""
    rng = random.Random(2)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "übung", "zeta"]
    made = []
    for _ in range(500):
        value: dict[str, object] = {"UUID": NO_UUID.decode(), "StartTime": STARTED}
        value["Server"] = f"10.0.{rng.randrange(256)}.{rng.randrange(256)}"
        value |= {f"Count{n}": rng.randrange(10**9) for n in range(10)}
        value |= {f"Rate{n}": rng.random() * 1000 for n in range(10)}
        value |= {f"Note{n}": " ".join(rng.choices(words, k=9)) for n in range(6)}
        made.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return made


def archive(root: Path, made: list[bytes], size: int) -> tuple[list[int], int]:
    """Write bundles of about `size` bytes together; return the rows of each, and their bytes."""
    rows = total = 0
    counts: list[int] = []
    while total < size:
        opened = OpenBundle(_header(root, len(counts)), 0.0)
        while opened.size_bytes < BUNDLE_BYTES:
            document = made[rows % len(made)].replace(NO_UUID, b"%0*d" % (len(NO_UUID), rows), 1)
            state = FileState(rows, len(document), 10**18 + rows * 10**7, 1)
            path = f"foo1/2026/01/02/m{rows}.json"
            entry = Entry(path, state, 10**15 + rows * 10**4, content_hash(document))
            opened.add(entry, opened.row(entry.filename, document))
            rows += 1
        sealed = opened.seal()
        for name, data in (
            (sealed.header.name, sealed.data),
            (sealed.header.index_name, index_object(sealed.header, sealed.attempt)),
        ):
            (root / str(name)).parent.mkdir(parents=True, exist_ok=True)
            (root / str(name)).write_bytes(data)
        total += sealed.row_bytes
        counts.append(opened.files)
    return counts, total


def _header(root: Path, bundle: int) -> Header:
    """Return the header of a bundle by its number."""
    return Header(
        name=BundleName(
            place=Place(data_dir="autoload/v1", organization="", experiment="exp"),
            datatype="foo1",
            day=Day(DAY),
            created=datetime(2026, 1, 2, tzinfo=UTC) + timedelta(microseconds=bundle),
            node="node1",
            kind=Kind.DATA,
        ),
        bucket=root.as_uri(),
        archiver=Archiver(version="jostler@1", commit="c"),
        compression=FAST,
    )


def tasks(root: Path) -> list[Task]:
    """List the bundles as the job's planner does."""
    from loader.bucket import open_bucket  # noqa: PLC0415 - only in the child
    from loader.spark.verify import Task  # noqa: PLC0415 - as above

    bucket = open_bucket(root.as_uri(), 5)
    return [
        Task(
            ordinal=ordinal,
            bucket=bucket.url,
            name=entry.name,
            generation=entry.generation,
            size_bytes=entry.size_bytes,
            node="node1",
            day=Day(DAY),
            table=0,
        )
        for ordinal, entry in enumerate(bucket.list("autoload/v1/exp/foo1/"))
    ]


def by_index(spark: SparkSession, root: Path, fields: Fields, counts: list[int]) -> None:
    """Do what the job does before it loads a trusted day."""
    import numpy as np  # noqa: PLC0415 - as above

    from loader.bucket import open_bucket  # noqa: PLC0415 - as above
    from loader.plan.trust import sample  # noqa: PLC0415 - as above
    from loader.spark import engine  # noqa: PLC0415 - as above
    from loader.spark.index import IndexTask  # noqa: PLC0415 - as above

    found = tasks(root)
    chosen = sample(len(found), 0.01)
    indexes = open_bucket(root.as_uri(), 5).list("autoload/v1/exp/index1/")
    asked = [
        IndexTask(
            data=data,
            name=index.name,
            generation=index.generation,
            size_bytes=index.size_bytes,
            rows=counts[n],
            sampled=n in chosen,
        )
        for n, (data, index) in enumerate(zip(found, indexes, strict=True))
    ]
    told = engine.examine(spark, asked, (fields,), 5.0)
    names = np.sort(np.frombuffer(b"".join(one.keys for one in told), dtype="<i8"))
    assert len(names) == sum(counts), [one.problem for one in told if one.problem][:1]
    assert not (names[1:] == names[:-1]).any()


def by_jostler(spark: SparkSession, root: Path, fields: Fields, counts: list[int]) -> None:
    """Do what the job does before it loads."""
    from loader.spark import engine, steps  # noqa: PLC0415 - as above

    found = tasks(root)
    many = 4 * spark.sparkContext.defaultParallelism
    groups = [group for group in (found[n::many] for n in range(many)) if group]
    marked = steps.marked(engine.find(spark, groups, (fields,), 5.0))
    notable = steps.notable(marked).persist()
    bundles = steps.per_bundle(notable).collect()
    notable.unpersist()
    assert sum(bundle.rows for bundle in bundles) == sum(counts)
    assert not any(bundle.bad or bundle.repeated for bundle in bundles)


def by_spark(spark: SparkSession, root: Path, fields: Fields, counts: list[int]) -> None:
    """Parse every column and keep nothing."""
    schema = f"struct<{','.join(_ddl(field) for field in fields)}>"
    read = spark.read.schema(_struct(schema)).json(str(root))
    read.write.format("noop").mode("overwrite").save()
    assert counts


def _struct(ddl: str) -> StructType:
    from pyspark.sql.types import StructType, _parse_datatype_string  # noqa: PLC0415 - in the child

    parsed = _parse_datatype_string(ddl)
    assert isinstance(parsed, StructType)
    return parsed


TYPES = {"STRING": "string", "INTEGER": "bigint", "FLOAT": "double", "DATE": "date"}


def _ddl(field: Field) -> str:
    kind = TYPES.get(field.type, "string")
    if field.fields:
        kind = f"struct<{','.join(_ddl(inner) for inner in field.fields)}>"
    return f"`{field.name}`:{'array<' + kind + '>' if field.mode == 'REPEATED' else kind}"


def child(root: Path, cores: int, rounds: int, sizes: dict[str, Sizes]) -> None:
    """Measure both ways on so many cores; print seconds as JSON."""
    from loader.spark.session import session  # noqa: PLC0415 - only in the child

    best: dict[str, float] = {}
    ways: dict[str, Callable[[SparkSession, Path, Fields, list[int]], None]] = {
        "index": by_index,
        "full": by_jostler,
        "spark": by_spark,
    }
    with session(f"local[{cores}]") as spark:
        for turn in range(rounds + 1):
            for shape, columns in SHAPES.items():
                fields = table_schema(fields_from_api(columns))
                for way, work in ways.items():
                    began = time.perf_counter()
                    work(spark, root / shape, fields, sizes[shape][0])
                    spent = time.perf_counter() - began
                    if turn:
                        key = f"{shape} {way}"
                        best[key] = min(best.get(key, spent), spent)
    print("RESULT " + json.dumps(best), flush=True)


def measure(root: Path, size: int, rounds: int) -> None:
    """Make the archives, run a child for each number of cores, print the table."""
    sizes = {}
    for shape, made in (("flat", flat()), ("ndt7", documents(Files("32 KiB", 32 * 1024, 0)))):
        (root / shape).mkdir()
        sizes[shape] = archive(root / shape, made, size)
        rows, total = sum(sizes[shape][0]), sizes[shape][1]
        print(f"{shape}: {rows:,} rows, {total / 1e6:,.0f} MB, {total // rows:,} bytes each")
    found: dict[int, dict[str, float]] = {}
    for cores in (1, 2):
        argv = [str(root), str(cores), str(rounds), json.dumps(sizes)]
        out = subprocess.run(
            [sys.executable, "-m", "bench.loader", "--child", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        ).stdout
        found[cores] = json.loads(out.rpartition("RESULT ")[2])
    print(f"\n{'rows':5} {'way':8} {'one core':>22} {'two cores':>22}   two / one")
    for shape, (counts, total) in sizes.items():
        rows = sum(counts)
        for way in ("index", "full", "spark"):
            one, two = (found[cores][f"{shape} {way}"] for cores in (1, 2))
            cells = [f"{rows / s:>10,.0f}/s {total / s / 1e6:>5.0f} MB/s" for s in (one, two)]
            print(f"{shape:5} {way:8} {cells[0]:>22} {cells[1]:>22}   {one / two:.2f}")
        index, full, spark = (found[2][f"{shape} {way}"] for way in ("index", "full", "spark"))
        ratios = f"full takes {full / spark:.2f} of Spark's time, index {index / full:.3f} of full"
        print(f"{shape:5} {ratios}")


def hourly(root: Path) -> None:
    """Load ten days of twenty small bundles, each changed by one more bundle, in both ways."""
    print()
    for way in ("index", "full"):
        home = root / way
        bucket = DirectoryStorage(home / "bucket")
        table = table_schema(fields_from_api(FLAT))
        place = Place(data_dir="autoload/v1", organization="", experiment="exp")
        bucket.put_new(place.table_schema("foo1"), to_json(table), {})
        schema = upload_id(to_json(table))
        bucket.put_new(place.kept_schema("foo1", schema), to_json(table), {})
        for n in range(200):
            _put_pair(bucket, DAY + timedelta(days=n % 10), n, schema)
        with _bigquery(home / "bq") as url:
            for run in range(3):
                for day in range(10 if run else 0):
                    number = 200 + run * 10 + day
                    _put_pair(bucket, DAY + timedelta(days=day), number, schema)
                spent, told = _load(bucket.url, url, "--verify", way, "--datatype", "foo1")
                what = "one more bundle each" if run else "first load"
                print(f"10 days of 20 bundles, --verify {way}, {what}: {spent:.1f} s; {told}")


def _put_pair(bucket: DirectoryStorage, day: date, number: int, schema: str) -> None:
    """Store a bundle of ten files and its index, with the metadata that the agent gives them."""
    header = _header(Path("/"), number)
    name = replace(header.name, day=Day(day))
    header = replace(header, name=name, bucket=bucket.url)
    opened = OpenBundle(header, 0.0)
    for n in range(number * 10, number * 10 + 10):
        document = json.dumps({"UUID": f"u{n}", "Count1": n}).encode()
        path = f"foo1/{Day(day).path}/m{n}.json"
        entry = Entry(path, FileState(n, len(document), 1, 1), 10**15, content_hash(document))
        opened.add(entry, opened.row(entry.filename, document))
    sealed = opened.seal()
    data_id = sealed.attempt.upload_id
    bucket.put_new(str(name), sealed.data, {"rows": "10", "schema": schema})
    index = index_object(header, sealed.attempt)
    metadata = {"rows": "10", "data-upload-id": data_id}
    bucket.put_new(str(header.index_name), index, metadata)


@contextmanager
def _bigquery(home: Path) -> Iterator[str]:
    """Run an embedded BigQuery; give its URL."""
    server = subprocess.Popen(
        [sys.executable, "-m", "embedded", "--data-dir", str(home), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout
        yield server.stdout.readline().split("listens on ")[1].split(",")[0]
    finally:
        server.terminate()
        server.wait()


def _load(bucket: str, bigquery: str, *more: str) -> tuple[float, str]:
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
    with _bigquery(root / "bq") as url:
        for run in ("first load", "again: nothing new"):
            spent, told = _load(bucket.as_uri(), url)
            print(f"{bundles:,} bundles, {run}: {spent:.1f} s; {told}")


def _table_json() -> bytes:
    return to_json(table_schema(fields_from_api(FLAT)))


def main() -> None:
    """Measure."""
    if sys.argv[1:2] == ["--child"]:
        root, cores, rounds, sizes = sys.argv[2:6]
        child(Path(root), int(cores), int(rounds), json.loads(sizes))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=1500, help="MB of rows of each shape")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--archive", type=int, default=10_000, help="small bundles; 0: none")
    parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
        measure(Path(home), options.mb * 10**6, options.rounds)
        if options.archive:
            unchanged(Path(home), options.archive)
            hourly(Path(home))


if __name__ == "__main__":
    main()
