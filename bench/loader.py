"""How fast the loader verifies bundles, beside Spark's own JSON reader over the same objects.

usage: python -m bench.loader [--mb 1500] [--rounds 3] [--cores 1,2]

Two shapes of rows, in bundles of 20 MiB as agents make them:

  flat   1 KiB, a few columns and short text
  ndt7   32 KiB, NDT7's shape: a header and a repeated record of counters

  index    what the job does before it loads a trusted day: read the indexes, and 1 % of the
           bundles, and find out whether a name occurs twice (loader.spark.index)
  full     what it does before it loads any other, without the native module: read, inflate, judge
           each row as BigQuery would, take keys, find repeats and bad rows over all bundles
           (loader.spark.engine, .steps)
  native   the same with the native module, where it is installed
  spark    spark.read.json with the table's schema, every column parsed, nothing kept; it accepts
           what BigQuery refuses and drops what it does not know, so this is less work

MB are 10**6 bytes of uncompressed rows.  Starting the JVM and a first round are not counted.  The
loader's ways take turns in one run; Spark's reader comes after them in a JVM of its own with all of
its compiler, of which the loader's session has a part (loader.spark.session).  The median counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bundles import DAY, FLAT, PLACE, archive, flat
from bench.files import SCHEMA, documents
from bench.files import Kind as Files
from jostler.format.names import Day
from jostler.schema import Use, fields_from_api, table_schema
from jostler.schema.native import find

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from jostler.schema import Field, Fields
    from loader.spark.verify import Task

    Way = Callable[[SparkSession, Path, Fields, list[int]], None]

Sizes = tuple[list[int], int]
"""Rows of each bundle, and bytes of all rows."""
SHAPES = {"flat": FLAT, "ndt7": SCHEMA}


def tasks(root: Path, native: Use = Use.AUTO) -> list[Task]:
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
            native=native,
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
    examined = engine.examine(spark, asked, (fields,), 5.0)
    names = np.sort(np.frombuffer(b"".join(one.keys for one in examined), dtype="<i8"))
    assert len(names) == sum(counts), [one.problem for one in examined if one.problem][:1]
    assert not (names[1:] == names[:-1]).any()


def in_full(
    native: Use, spark: SparkSession, root: Path, fields: Fields, counts: list[int]
) -> None:
    """Do what the job does before it loads a day that is not trusted."""
    from loader.spark import engine  # noqa: PLC0415 - as above

    found = tasks(root, native)
    many = 4 * spark.sparkContext.defaultParallelism
    groups = [group for group in (found[n::many] for n in range(many)) if group]
    rows = engine.find(spark, groups, (fields,), 5.0).persist()
    bundles = engine.summed_up(rows)
    rows.unpersist()
    assert sum(bundle.rows for bundle in bundles) == sum(counts)
    assert not any(bundle.bad or bundle.repeated for bundle in bundles)


def by_spark(spark: SparkSession, root: Path, fields: Fields, counts: list[int]) -> None:
    """Parse every column and keep nothing."""
    from pyspark.sql import Observation  # noqa: PLC0415 - in the child
    from pyspark.sql.functions import count, lit  # noqa: PLC0415 - as above

    schema = f"struct<{','.join(_ddl(field) for field in fields)}>"
    data = root / PLACE.root / "foo1"
    read = spark.read.schema(_struct(schema)).option("recursiveFileLookup", "true").json(str(data))
    rows = Observation()
    read.observe(rows, count(lit(1)).alias("rows")).write.format("noop").mode("overwrite").save()
    assert rows.get["rows"] == sum(counts), rows.get


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


def child(root: Path, cores: int, rounds: int, sizes: dict[str, Sizes], *, light: bool) -> None:
    """Measure ways on so many cores, in turn; print the median seconds of each as JSON.

    Args:
        root: the archives.
        cores: how many Spark may use.
        rounds: how often each way is measured.
        sizes: of the archives.
        light: whether the session is the loader's, for its ways; else one for Spark's reader.
    """
    from loader.spark.session import session  # noqa: PLC0415 - only in the child

    seconds: dict[str, list[float]] = defaultdict(list)
    with session(f"local[{cores}]", light=light) as spark:
        for turn in range(rounds + 1):
            for shape, columns in SHAPES.items():
                fields = table_schema(fields_from_api(columns))
                for way, work in (_ours() if light else {"spark": by_spark}).items():
                    began = time.perf_counter()
                    work(spark, root / shape, fields, sizes[shape][0])
                    spent = time.perf_counter() - began
                    if turn:
                        seconds[f"{shape} {way}"].append(spent)
    medians = {key: statistics.median(found) for key, found in seconds.items()}
    print("RESULT " + json.dumps(medians), flush=True)


def _ours() -> dict[str, Way]:
    ways: dict[str, Way] = {"index": by_index, "full": partial(in_full, Use.OFF)}
    if find(Use.AUTO).module:
        ways["native"] = partial(in_full, Use.REQUIRE)
    return ways


def measure(root: Path, size: int, rounds: int, cores: list[int]) -> None:
    """Make the archives, run a child for each number of cores, print the table."""
    sizes = {}
    for shape, made in (("flat", flat()), ("ndt7", documents(Files("32 KiB", 32 * 1024, 0)))):
        (root / shape).mkdir()
        sizes[shape] = archive(root / shape, made, size)
        rows, total = sum(sizes[shape][0]), sizes[shape][1]
        print(f"{shape}: {rows:,} rows, {total / 1e6:,.0f} MB, {total // rows:,} bytes each")
    found: dict[int, dict[str, float]] = {}
    for count, whose in product(cores, ("ours", "spark")):
        argv = [str(root), str(count), str(rounds), json.dumps(sizes), whose]
        out = subprocess.run(
            [sys.executable, "-m", "bench.loader", "--child", *argv],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        ).stdout
        found.setdefault(count, {}).update(json.loads(out.rpartition("RESULT ")[2]))
    print(f"\n{'rows':5} {'way':8}" + "".join(f"{f'{n} cores':>23}" for n in found))
    for shape, (counts, total) in sizes.items():
        ways = [key.split()[1] for key in found[cores[-1]] if key.startswith(f"{shape} ")]
        for way in ways:
            times = [medians[f"{shape} {way}"] for medians in found.values()]
            cells = (f"{sum(counts) / s:>11,.0f}/s {total / s / 1e6:>5.0f} MB/s" for s in times)
            print(f"{shape:5} {way:8} {' '.join(cells)}")
        index, full, spark = (
            found[cores[-1]][f"{shape} {way}"] for way in ("index", "full", "spark")
        )
        ratios = f"full takes {full / spark:.2f} of Spark's time, index {index / full:.3f} of full"
        print(f"{shape:5} {ratios}")


def main() -> None:
    """Measure."""
    if sys.argv[1:2] == ["--child"]:
        root, cores, rounds, sizes, whose = sys.argv[2:7]
        light = whose == "ours"
        child(Path(root), int(cores), int(rounds), json.loads(sizes), light=light)
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=1500, help="MB of rows of each shape")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores", default="1,2", help="on how many; each in a JVM of its own")
    parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
        cores = [int(count) for count in options.cores.split(",")]
        measure(Path(home), options.mb * 10**6, options.rounds, cores)


if __name__ == "__main__":
    main()
