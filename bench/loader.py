"""How fast the loader verifies bundles, beside Spark's own JSON reader over the same objects.

usage: python -m bench.loader [--mb 1500] [--rounds 3] [--archive 10000]

Two shapes of rows, in bundles of 20 MiB as agents make them, on one core and on two:

  flat   1 KiB, a few columns and short text
  ndt7   32 KiB, NDT7's shape: a header and a repeated record of counters

  jostler  what the job does before it loads: read, inflate, judge each row as BigQuery would, take
           keys, find repeats and bad rows over all bundles (loader.spark.engine, .steps)
  spark    spark.read.json with the table's schema, every column parsed, nothing kept; it accepts
           what BigQuery refuses and drops what it does not know, so this is less work

MB are 10**6 bytes of uncompressed rows.  Starting the JVM and a first round are not counted.  Ways
take turns in one run; the best round counts.

Then an archive of many small bundles is loaded into the embedded BigQuery, and the loader is run
again over it: nothing is new, so it lists and stops.  --archive 0 leaves that out.
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
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench.agent import SCHEMA, documents, header
from jostler.format.blocks import BlockWriter
from jostler.format.compression import Compression, Method
from jostler.format.names import Day
from jostler.format.row import Archiver, row, row_head
from jostler.schema import fields_from_api, table_schema

if TYPE_CHECKING:
    from collections.abc import Callable

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
SHAPES = {"flat": FLAT, "ndt7": SCHEMA}


def flat() -> list[bytes]:
    """Make flat documents of 1 KiB."""
    rng = random.Random(2)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "übung", "zeta"]
    made = []
    for _ in range(500):
        value = header(rng)
        value |= {f"Count{n}": rng.randrange(10**9) for n in range(10)}
        value |= {f"Rate{n}": rng.random() * 1000 for n in range(10)}
        value |= {f"Note{n}": " ".join(rng.choices(words, k=9)) for n in range(6)}
        made.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return made


def archive(root: Path, made: list[bytes], size: int) -> tuple[int, int]:
    """Write bundles of about `size` bytes together; return rows and bytes of rows."""
    rows = total = bundle = 0
    while total < size:
        name = f"2026010{bundle % 8 + 1}T000000.{bundle:06}Z-foo1-node1-exp-data.jsonl.gz"
        head = row_head(Archiver(version="v1", commit="c"), Day(DAY), f"{root.as_uri()}/{name}")
        writer = BlockWriter(Compression(Method.ISAL, 2))
        while writer.plain_bytes < BUNDLE_BYTES:
            document = made[rows % len(made)].replace(b"0" * 24, b"%024d" % rows, 1)
            writer.add(row(head, b'"2026/01/02/m%d.json"' % rows, document))
            rows += 1
        (root / name).write_bytes(writer.finish())
        total += writer.plain_bytes
        bundle += 1
    return rows, total


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
        for ordinal, entry in enumerate(sorted(bucket.list(""), key=lambda entry: entry.name))
    ]


def by_jostler(spark: SparkSession, root: Path, fields: Fields, rows: int) -> None:
    """Do what the job does before it loads."""
    from loader.spark import engine, steps  # noqa: PLC0415 - as above

    found = tasks(root)
    many = 4 * spark.sparkContext.defaultParallelism
    groups = [group for group in (found[n::many] for n in range(many)) if group]
    marked = steps.marked(engine.find(spark, groups, (fields,), 5.0))
    notable = steps.notable(marked).persist()
    bundles = steps.per_bundle(notable).collect()
    notable.unpersist()
    assert sum(bundle.rows for bundle in bundles) == rows
    assert not any(bundle.bad or bundle.repeated for bundle in bundles)


def by_spark(spark: SparkSession, root: Path, fields: Fields, rows: int) -> None:
    """Parse every column and keep nothing."""
    schema = f"struct<{','.join(_ddl(field) for field in fields)}>"
    read = spark.read.schema(_struct(schema)).json(str(root))
    read.write.format("noop").mode("overwrite").save()
    assert rows


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


def child(root: Path, cores: int, rounds: int, sizes: dict[str, list[int]]) -> None:
    """Measure both ways on so many cores; print seconds as JSON."""
    from loader.spark.session import session  # noqa: PLC0415 - only in the child

    best: dict[str, float] = {}
    ways: dict[str, Callable[[SparkSession, Path, Fields, int], None]] = {
        "jostler": by_jostler,
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
    for shape, made in (("flat", flat()), ("ndt7", documents(32))):
        (root / shape).mkdir()
        sizes[shape] = archive(root / shape, made, size)
        rows, total = sizes[shape]
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
    for shape, (rows, total) in sizes.items():
        for way in ("jostler", "spark"):
            one, two = (found[cores][f"{shape} {way}"] for cores in (1, 2))
            cells = [f"{rows / s:>10,.0f}/s {total / s / 1e6:>5.0f} MB/s" for s in (one, two)]
            print(f"{shape:5} {way:8} {cells[0]:>22} {cells[1]:>22}   {one / two:.2f}")
        ratio = found[2][f"{shape} spark"] / found[2][f"{shape} jostler"]
        print(f"{shape:5} on two cores jostler takes {1 / ratio:.2f} of the time of Spark's reader")


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
    server = subprocess.Popen(
        [sys.executable, "-m", "embedded", "--data-dir", str(root / "bq"), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout
        url = server.stdout.readline().split("listens on ")[1].split(",")[0]
        argv = ["--bucket", bucket.as_uri(), "--project", "bench", "--period", "everything"]
        print()
        for run in ("first load", "again: nothing new"):
            began = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "loader", *argv],
                env={**os.environ, "BIGQUERY_EMULATOR_HOST": url},
                capture_output=True,
                text=True,
                check=False,
            )
            spent = time.perf_counter() - began
            assert done.returncode == 0, done.stdout + done.stderr
            print(f"{bundles:,} bundles, {run}: {spent:.1f} s; {done.stdout.splitlines()[-1]}")
    finally:
        server.terminate()
        server.wait()


def _table_json() -> bytes:
    from jostler.schema import to_json  # noqa: PLC0415 - used here alone

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


if __name__ == "__main__":
    main()
