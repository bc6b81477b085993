"""How fast jostler-query answers, beside Spark's own JSON reader and DuckDB, and what it takes.

usage: python -m bench.query [--mb 50] [--rounds 3] [--days 30] [--bundles 200]

  count     `stats count by` of rows of NDT7's shape, 32 KiB each, in bundles of 20 MiB as agents
            make them, on two cores:
              jostler  jostler-query, with rows judged by their agent (the usual case)
              spark    Spark's JSON reader with the table's schema, over the same rows in plain text
              duckdb   read_json over the bundles themselves, with the one column that is asked for
  one day   the same question for one day, of an archive of that day and of one of `--days` days
  bundles   a question over so many small bundles, as a process of its own: time, and the most
            memory that driver, JVM and workers had

MB are 10**6 bytes of uncompressed rows.  Starting the JVM and a first round do not count, but for
`bundles`.  Ways take turns in one run; the median counts; answers are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bundles import DAY, PLACE, header
from bench.files import NO_UUID, SCHEMA, documents
from bench.files import Kind as Files
from bench.loader import _ddl, _struct
from bench.watched import watched
from jostler.bundle import Entry, FileState, OpenBundle, content_hash
from jostler.bundle.index import index_object
from jostler.schema import INDEX1_FIELDS, fields_from_api, table_schema, to_json
from jostler.storage import open_storage, upload_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from loader.query.archive import Archive

CORES = 2
BUNDLE_BYTES = 20 * 1024 * 1024
TABLE = table_schema(fields_from_api(SCHEMA))
QUESTION = "table foo1 | stats count by raw.Server"
OF_DAY = f"SELECT raw.Server, COUNT(*) AS count FROM foo1 WHERE date = '{DAY}' GROUP BY raw.Server"
Answer = dict[str, int]


class Bucket:
    """An archive in a directory, of bundles that their agent has judged."""

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self._storage = open_storage(root.as_uri())
        self._digest = upload_id(to_json(TABLE))
        for datatype, fields in (("foo1", TABLE), ("index1", table_schema(INDEX1_FIELDS))):
            data = to_json(fields)
            self._storage.put_new(PLACE.table_schema(datatype), data, {})
            self._storage.put_new(PLACE.kept_schema(datatype, upload_id(data)), data, {})
        self.rows = self.bundles = 0

    def put(self, made: list[bytes], size_bytes: int, days_ago: int = 0) -> bytes:
        """Store a bundle of at least so many bytes of rows; return its data object."""
        day = DAY - timedelta(days=days_ago)
        opened = OpenBundle(header(self.root.as_uri(), self.bundles, day), 0.0)
        while opened.size_bytes < size_bytes:
            uuid = b"%0*d" % (len(NO_UUID), self.rows)
            document = made[self.rows % len(made)].replace(NO_UUID, uuid, 1)
            state = FileState(self.rows, len(document), 10**18 + self.rows * 10**7, 1)
            path = f"foo1/{day:%Y/%m/%d}/m{self.rows}.json"
            entry = Entry(path, state, 10**15 + self.rows * 10**4, content_hash(document))
            opened.add(entry, opened.row(entry.filename, document))
            self.rows += 1
        sealed = opened.seal()
        metadata = {"schema": self._digest}
        self._storage.put_new(str(sealed.header.name), sealed.data, metadata)
        index = index_object(sealed.header, sealed.attempt)
        self._storage.put_new(str(sealed.header.index_name), index, {})
        self.bundles += 1
        return sealed.data


def by_jostler(archive: Archive, question: str) -> Answer:
    """Ask jostler-query."""
    rows = archive.query(question).table().to_pylist()
    return {str(server): count for server, count in (sorted_row(row) for row in rows)}


def sorted_row(row: dict[str, object]) -> tuple[str, int]:
    """Return server and count of a row, whatever its columns are called."""
    count = next(value for value in row.values() if isinstance(value, int))
    return str(next(value for value in row.values() if isinstance(value, str))), count


def by_spark(spark: SparkSession, plain: Path) -> Answer:
    """Ask Spark's own reader."""
    schema = _struct(f"struct<{','.join(_ddl(field) for field in TABLE)}>")
    spark.read.schema(schema).json(str(plain)).createOrReplaceTempView("plain")
    rows = spark.sql("SELECT raw.Server, COUNT(*) AS n FROM plain GROUP BY raw.Server").collect()
    return {row[0]: row[1] for row in rows}


def by_duckdb(root: Path) -> Answer:
    """Ask DuckDB."""
    import duckdb  # noqa: PLC0415 - only in the child

    with duckdb.connect(config={"threads": CORES}) as database:
        found = database.execute(
            "SELECT raw.Server, COUNT(*) FROM read_json(?, format = 'newline_delimited',"
            " columns = {raw: 'STRUCT(Server VARCHAR)'}, maximum_object_size = 100000000)"
            " GROUP BY raw.Server",
            [f"{root}/autoload/v1/exp/foo1/*/*/*/*.jsonl.gz"],
        ).fetchall()
    return dict(found)


def child(home: Path, rounds: int) -> None:
    """Measure all ways in one session, in turn; print the median seconds of each as JSON."""
    import jostler  # noqa: PLC0415 - only in the child
    from loader.spark.session import session  # noqa: PLC0415 - as above

    seconds: dict[str, list[float]] = defaultdict(list)
    answers: dict[str, Answer] = {}
    with session(f"local[{CORES}]") as spark:
        opened = {name: jostler.open((home / name).as_uri()) for name in ("count", "one", "many")}
        ways: dict[str, Callable[[], Answer]] = {
            "jostler": lambda: by_jostler(opened["count"], QUESTION),
            "spark": lambda: by_spark(spark, home / "plain"),
            "duckdb": lambda: by_duckdb(home / "count"),
            "one": lambda: by_jostler(opened["one"], OF_DAY),
            "many": lambda: by_jostler(opened["many"], OF_DAY),
        }
        for turn in range(rounds + 1):
            for way, ask in ways.items():
                began = time.perf_counter()
                answers[way] = ask()
                if turn:
                    seconds[way].append(time.perf_counter() - began)
    assert answers["jostler"] == answers["spark"] == answers["duckdb"], answers
    assert answers["one"], answers
    medians = {way: statistics.median(found) for way, found in seconds.items()}
    print("RESULT " + json.dumps(medians), flush=True)


def make(home: Path, size: int, days: int) -> int:
    """Make the archives, and the plain files of the first one; return its rows."""
    made = documents(Files("32 KiB", 32 * 1024, 0))
    count = Bucket(home / "count")
    plain = home / "plain"
    plain.mkdir()
    written = 0
    while written < size:
        data = count.put(made, min(BUNDLE_BYTES, size - written))
        rows = zlib.decompress(data, 31)
        (plain / f"{count.bundles}.jsonl").write_bytes(rows)
        written += len(rows)
    one, many = Bucket(home / "one"), Bucket(home / "many")
    of_day = BUNDLE_BYTES // 20
    one.put(made, of_day)
    for days_ago in range(days):
        many.put(made, of_day, days_ago)
    return count.rows


def measure(home: Path, size: int, rounds: int, days: int) -> None:
    """Measure the ways, and print them."""
    rows = make(home, size, days)
    out = subprocess.run(
        [sys.executable, "-m", "bench.query", "--child", str(home), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    found = json.loads(out.rpartition("RESULT ")[2])
    print(f"stats count by: {rows:,} rows, {size / 1e6:,.0f} MB, {CORES} cores")
    for way in ("jostler", "spark", "duckdb"):
        print(f"  {way:8} {found[way]:8.2f} s {size / found[way] / 1e6:8.0f} MB/s")
    print(f"  jostler takes {found['jostler'] / found['spark']:.2f} of Spark's time,", end="")
    print(f" {found['jostler'] / found['duckdb']:.2f} of DuckDB's")
    print(f"one day of 1: {found['one']:.2f} s, one day of {days}: {found['many']:.2f} s,", end="")
    print(f" {found['many'] / found['one']:.2f} times as long", flush=True)


def many_bundles(home: Path, count: int) -> None:
    """Ask so many bundles; print the time and the memory."""
    bucket = Bucket(home / "bundles")
    made = documents(Files("1 KiB", 1024, 0))
    for nth in range(count):
        bucket.put(made, 3000, nth % 20)
    done = watched(
        [
            *(sys.executable, "-m", "loader.cli.query", "--bucket", bucket.root.as_uri()),
            *("--master", f"local[{CORES}]", "--format", "csv", "SELECT COUNT(*) FROM foo1"),
        ]
    )
    assert int(done.output.split()[-1]) == bucket.rows, done.output
    print(f"{count:,} bundles: {done.wall_s:.1f} s with Spark's start; {done.memory}", flush=True)


def main() -> None:
    """Measure."""
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), int(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=50, help="MB of rows to count")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--days", type=int, default=30, help="of the archive asked for one day")
    parser.add_argument("--bundles", type=int, default=200, help="0: do not ask so many")
    parser.add_argument("--dir", help="where the archives are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
        measure(Path(home), options.mb * 10**6, options.rounds, options.days)
        if options.bundles:
            many_bundles(Path(home), options.bundles)


if __name__ == "__main__":
    main()
