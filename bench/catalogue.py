"""How fast an archive is listed and read back: cold, from the cache, and beside inflating alone.

usage: python -m bench.catalogue [--bundles 200] [--files 1000] [--megabytes 200]
  [--days-files 50000]

The archive is made up, in a directory bucket below the temporary directory.  CPU time is of all
threads of this process, ours (user) and the kernel's (system); on a machine that has other things
to do, compare our part and the ratios: what the kernel takes for a new file changes tenfold.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import orjson
from isal import isal_zlib

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import Query, Tally
from jostler.archive.hashes import digest
from jostler.archive.reading import RowReader
from jostler.archive.retrieve import Layout, Retrieval, Retrieved
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.row import Archiver, row, row_head
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PLACE = Place(data_dir="autoload/v1", organization="", experiment="bench")
DAY = Day(date(2026, 1, 2))
WHEN = "2026-01-02T06:20:23.045826Z"
ARCHIVER = Archiver(version="jostler@bench", commit="bench")


class Took(NamedTuple):
    wall_s: float
    user_s: float
    system_s: float

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


def took(work: Callable[[], object]) -> Took:
    wall_s, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    user_s, system_s = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Took(time.perf_counter() - wall_s, user_s, system_s)


def name_of(number: int, nodes: int, kind: Kind, day: Day = DAY) -> BundleName:
    return BundleName(
        place=PLACE,
        datatype="ndt7",
        day=day,
        created=datetime(2026, 1, 2, 7, number // 60 % 60, number % 60, number, tzinfo=UTC),
        node=f"mlab1-abc{number % nodes:02d}",
        kind=kind,
    )


def put(root: Path, name: BundleName, data: bytes) -> None:
    path = root / str(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def filenames(count: int) -> Iterator[str]:
    for _ in range(count):
        yield f"{DAY.path}/ndt7-download-20260102T062023.123456789Z.{uuid.uuid4()}.json"


def put_index(root: Path, data: BundleName, entries: Sequence[tuple[str, bytes, int, int]]) -> None:
    """Write an index object for (Filename, raw, Offset, Length) in the order of lines."""
    index = BundleName(
        place=data.place,
        datatype=data.datatype,
        day=data.day,
        created=data.created,
        node=data.node,
        kind=Kind.INDEX,
    )
    url = f"{root.as_uri()}/{data}"
    lines = []
    for line, (filename, raw, offset, length) in enumerate(entries, 1):
        columns = {"Filename": filename, "Size": len(raw), "TimeAdded": WHEN}
        columns |= {"Datatype": data.datatype, "Node": data.node, "ArchiveURL": url, "Line": line}
        columns |= {"Hash": digest(raw), "Offset": offset, "Length": length}
        columns |= {"Start": WHEN, "End": None, "WorkID": None}
        head = row_head(ARCHIVER, DAY, f"{root.as_uri()}/{index}")
        lines.append(row(head, orjson.dumps(filename), orjson.dumps(columns)))
    put(root, index, isal_zlib.compress(b"".join(lines), 2, 31))


def make_indexes(root: Path, bundles: int, files: int, days: int = 1) -> None:
    for number in range(bundles):
        names = [(name, name.encode(), 10 + i, 247) for i, name in enumerate(filenames(files))]
        day = Day(DAY.date + timedelta(days=number * days // bundles))
        put_index(root, name_of(number, 20, Kind.DATA, day), names)


def make_data(root: Path, megabytes: int) -> None:
    """Write bundles of 20 MB of rows of about 20 KB, which compress to an eighth."""
    samples = [
        orjson.dumps([{"t": i * 250_000, "rtt": random.randrange(9_000)} for i in range(700)])
        for _ in range(40)
    ]
    for number in range(max(1, megabytes // 20)):
        name = name_of(number, 7, Kind.DATA)
        writer, entries = BlockWriter(FAST), []
        head = row_head(ARCHIVER, DAY, f"{root.as_uri()}/{name}")
        for filename in filenames(20_000_000 // (len(samples[0]) + 400)):
            raw = b'{"UUID":"%b","S":%b}' % (filename.encode(), random.choice(samples))
            writer.add(row(head, orjson.dumps(filename), raw))
            entries.append((filename, raw))
        put(root, name, writer.finish())
        ends = [block.line for block in writer.blocks[1:]] + [len(entries) + 1]
        placed = []
        for block, end in zip(writer.blocks, ends, strict=True):
            rows = entries[block.line - 1 : end - 1]
            placed += [(*entry, block.offset, block.length) for entry in rows]
        put_index(root, name, placed)


def catalogue(root: Path, cache: Path) -> BucketCatalogue:
    return BucketCatalogue(open_storage(root.as_uri()), [PLACE], IndexCache(cache, 4 << 30))


def listed(root: Path, cache: Path) -> int:
    tally = Tally()
    with closing(catalogue(root, cache)) as opened:
        found = sum(1 for _ in opened.files(Query(), tally))
    assert not tally.problems, tally.problems[:1]
    return found


def bench_list(home: Path, bundles: int, files: int) -> None:
    root, cache = home / "indexes", home / "cache"
    make_indexes(root, bundles, files)
    for label in ("cold", "cached", "cached"):
        found = 0

        def work() -> None:
            nonlocal found
            found = listed(root, cache)

        time_ = took(work)
        print(
            f"list {label:7} {found:>9,} files  {found / time_.wall_s:>9,.0f}/s"
            f"  {found / time_.cpu_s:>9,.0f} a second of CPU"
        )


def bench_memory(home: Path, bundles: int) -> None:
    """Peak memory of processes that list one, four and sixteen times as many files."""
    for number, days in ((bundles, 1), (4 * bundles, 1), (16 * bundles, 1), (16 * bundles, 16)):
        root = home / f"memory-{number}-{days}"
        make_indexes(root, number, 1000, days)
        found = {}
        for label in ("cold", "cached"):
            argv = [sys.executable, "-m", "bench.catalogue", "--peak", str(root)]
            found[label] = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        shutil.rmtree(root)
        print(
            f"memory  {number * 1000:>9,} files in {days:>2} days"
            f"  cold {found['cold'].strip()}, cached {found['cached'].strip()}"
        )


def bench_retrieve(home: Path, megabytes: int) -> None:
    root = home / "data"
    make_data(root, megabytes)
    bundles = [path.read_bytes() for path in root.rglob("*-data.jsonl.gz")]
    plain_mb = sum(len(isal_zlib.decompress(data, wbits=31)) for data in bundles) / 1e6

    def inflated() -> None:
        for data in bundles:
            isal_zlib.decompress(data, wbits=31)

    def hashed() -> None:
        for data in bundles:
            for line in isal_zlib.decompress(data, wbits=31).splitlines():
                digest(line)

    inflate = took(inflated)
    show(plain_mb, "inflate alone", inflate, inflate)
    show(plain_mb, "and hash rows", took(hashed), inflate)
    with closing(catalogue(root, home / "data-cache")) as opened:
        list(opened.files(Query()))

        def read() -> None:
            with closing(RowReader(open_storage)) as reader:
                rows = sum(1 for _ in reader.read_all(opened.files(Query())))
            assert rows

        def retrieve() -> None:
            report, to = Retrieved(), home / "to"
            with closing(RowReader(open_storage)) as reader:
                Retrieval(to, Layout(), open_storage, report).files(opened.files(Query()), reader)
            assert report.written
            assert not report.problems

        for label, work in (("read, verify", read), ("retrieve", retrieve)):
            show(plain_mb, label, took(work), inflate)


def show(plain_mb: float, label: str, time_: Took, inflate: Took) -> None:
    print(
        f"{label:14} {plain_mb / time_.user_s:>6,.0f} MB a second of our CPU"
        f" ({time_.user_s * 1e3 / plain_mb:5.2f} ms/MB,"
        f" {time_.user_s / inflate.user_s:4.1f} times inflating), system"
        f" {time_.system_s * 1e3 / plain_mb:5.2f} ms/MB; {plain_mb / time_.wall_s:>6,.0f} MB/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundles", type=int, default=200)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--days-files", type=int, default=50_000, help="fewest, for memory")
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak:
        time_ = took(lambda: print(f"{listed(given.peak, given.peak / 'cache'):,} files", end=", "))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{time_.cpu_s:.1f} s of CPU, {peak} MiB at most")
        return
    home = Path(tempfile.mkdtemp(prefix="jostler-bench-"))
    try:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        bench_list(home, given.bundles, given.files)
        bench_memory(home, max(1, given.days_files // 1000))
        bench_retrieve(home, given.megabytes)
    finally:
        shutil.rmtree(home)


if __name__ == "__main__":
    main()
