"""How fast `jostler push` takes JSONL: rows a second, and CPU for each row.

usage: python -m bench.push [--rows 100000] [--runs 3] [--dir DIR]

One JSONL file of rows of 1 KiB, and one of rows of 100 bytes, are pushed into an empty spool by the
command itself, as a process.  Beside it stands the least that any program could do: the same rows
written as files, one by one, without judging, without a temporary name, without sync.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.files import KINDS, SCHEMA, document, documents

AIM = 20_000
FLOOR = """
import os, sys
os.makedirs(sys.argv[2])
folder = os.open(sys.argv[2], os.O_RDONLY)
with open(sys.argv[1], "rb") as file:
    for number, line in enumerate(file, 1):
        fd = os.open(f"r.{number}.json", os.O_WRONLY | os.O_CREAT, dir_fd=folder)
        os.write(fd, line)
        os.close(fd)
"""


class Measured(NamedTuple):
    """One run of a program: seconds."""

    wall_s: float
    user_s: float
    system_s: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="where to work; by default a temporary directory")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as directory:
        print(f"{given.rows:,} rows; the best of {given.runs} runs; aim: {AIM:,} rows a second")
        print(f"{'rows of':>8} {'program':14} {'rows/s':>9} {'user us':>8} {'system us':>9}")
        for kind in KINDS[:2]:
            made = documents(kind)
            rows = Path(directory) / "rows.jsonl"
            with rows.open("wb") as file:
                for number in range(given.rows):
                    file.write(document(made, number) + b"\n")
            for program in ("push", "floor"):
                runs = [run(program, rows, Path(directory)) for _ in range(given.runs)]
                best = min(runs)
                each = 1e6 / given.rows
                print(
                    f"{kind.name:>8} {program:14} {given.rows / best.wall_s:9,.0f}"
                    f" {best.user_s * each:8.1f} {best.system_s * each:9.1f}"
                )


def run(program: str, rows: Path, directory: Path) -> Measured:
    """Push the rows into an empty spool."""
    spool = directory / "spool"
    (spool / "datatypes").mkdir(parents=True)
    (spool / "datatypes/bench1.json").write_text(json.dumps(SCHEMA))
    argv = [sys.executable, "-c", FLOOR, str(rows), str(spool / "exp/bench1")]
    if program == "push":
        argv = [sys.executable, "-m", "jostler", "push", "-experiment", "exp"]
        argv += ["-datatype", "bench1", "-local-data-dir", str(spool), str(rows)]
    os.sync()  # what an earlier run left dirty is not this one's
    before, started_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)
    wall_s, after = time.monotonic() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(spool)
    return Measured(wall_s, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
