"""What each stage of the loader's verification takes, without Spark: CPU for each MB of rows.

usage: python -m bench.stages [--mb 100] [--processes 2]

The same bundles as in `bench.loader`, in memory.  So many processes do a stage at once, as Spark's
workers do: two processors of one core take longer for each MB than one that is alone.  MB are 10**6
bytes of uncompressed rows.  The first stages of each list are what libraries take at least.

  inflate        ISA-L, in pieces that stay in the processor's cache
  hash           XXH3 of each row, which full verification needs
  BLAKE2b        of each row, which holding a sampled bundle against its index needs
  take           judge rows, cut them, compute their identities (loader.spark.verdicts)
  deal and mark  sort keys into parts, find repeated rows in one part (loader.spark.steps)
  verified       all that a worker does with a bundle
  index          all that a worker does with the index of a trusted bundle
  sampled        the same, and the bundle is read, judged, and held against its index
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from xxhash import xxh3_128_digest

from bench.bundles import archive, flat
from bench.files import Kind as Files
from bench.files import documents
from bench.loader import SHAPES, tasks
from jostler.schema import Use, fields_from_api, table_schema
from loader.bucket import open_bucket
from loader.spark.gunzip import blocks, split
from loader.spark.index import IndexTask, examined
from loader.spark.steps import dealt, look_for_repeats
from loader.spark.verdicts import Verdicts
from loader.spark.verify import verified

if TYPE_CHECKING:
    from jostler.schema import Fields
    from loader.bucket import ListedObject
    from loader.spark.findings import Found
    from loader.spark.verify import Task

Stage = Callable[[], object]
TIMES = 3


def stages(root: Path, fields: Fields, counts: list[int]) -> dict[str, Stage]:
    """Return the stages for the bundles of an archive."""
    found = tasks(root)
    data = [(root / task.name).read_bytes() for task in found]
    plain = [list(blocks(one)) for one in data]
    rows = [row for some in plain for block in some for row in split(block)]
    tables, patience_s = (fields,), 5.0
    indexes = list(open_bucket(root.as_uri(), patience_s).list("autoload/v1/exp/index1/"))

    def take(native: Use) -> None:
        for task, some in zip(found, plain, strict=True):
            verdicts = Verdicts(replace(task, native=native), fields)
            for block in some:
                verdicts.take(block)

    def full(native: Use) -> list[Found]:
        return list(verified([replace(task, native=native) for task in found], tables, patience_s))

    def index(native: Use, *, sampled: bool) -> None:
        asked = [
            _index_task(replace(task, native=native), one, counts[n], sampled=sampled)
            for n, (task, one) in enumerate(zip(found, indexes, strict=True))
        ]
        assert not [one.problem for one in examined(asked, tables, patience_s) if one.problem]

    keys = list(verified(found, tables, patience_s))
    return {
        "inflate": lambda: [0 for one in data for _ in blocks(one)],
        "hash": lambda: [xxh3_128_digest(row) for row in rows],
        "BLAKE2b": lambda: [blake2b(row, digest_size=16).digest() for row in rows],
        "take, native": lambda: take(Use.AUTO),
        "take, Python": lambda: take(Use.OFF),
        "deal and mark": lambda: list(look_for_repeats(dealt(one, 1) for one in keys)),
        "verified, native": lambda: full(Use.AUTO),
        "verified, Python": lambda: full(Use.OFF),
        "index, native": lambda: index(Use.AUTO, sampled=False),
        "index, Python": lambda: index(Use.OFF, sampled=False),
        "sampled, native": lambda: index(Use.AUTO, sampled=True),
        "sampled, Python": lambda: index(Use.OFF, sampled=True),
    }


def _index_task(task: Task, index: ListedObject, rows: int, *, sampled: bool) -> IndexTask:
    return IndexTask(
        data=task,
        name=index.name,
        generation=index.generation,
        size_bytes=index.size_bytes,
        rows=rows,
        sampled=sampled,
    )


def cpu_s(stage: Stage, processes: int) -> float:
    """Return the CPU seconds of one process, of so many that do a stage at once; the least."""
    context = multiprocessing.get_context("fork")
    begin, queue = context.Barrier(processes), context.SimpleQueue()

    def work() -> None:
        spent = []
        for _ in range(TIMES):
            begin.wait()
            began = time.process_time()
            stage()
            spent.append(time.process_time() - began)
        queue.put(min(spent))

    working = [context.Process(target=work) for _ in range(processes)]
    for one in working:
        one.start()
    found = [queue.get() for _ in working]
    for one in working:
        one.join()
    return float(min(found))


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=int, default=100, help="MB of rows of each shape")
    parser.add_argument("--processes", type=int, default=2, help="that do each stage at once")
    parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
        for shape, made in (("flat", flat()), ("ndt7", documents(Files("32 KiB", 32 * 1024, 0)))):
            root = Path(home, shape)
            root.mkdir()
            counts, total = archive(root, made, options.mb * 10**6)
            fields = table_schema(fields_from_api(SHAPES[shape]))
            for name, stage in stages(root, fields, counts).items():
                one_ms, all_ms = (
                    cpu_s(stage, processes) / total * 1e9 for processes in (1, options.processes)
                )
                print(
                    f"{shape:5} {name:18} {one_ms:7.3f} ms/MB alone, {all_ms:7.3f} of each of"
                    f" {options.processes}: {options.processes * 1e3 / all_ms:9,.0f} MB/s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
