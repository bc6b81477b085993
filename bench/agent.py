"""How fast the agent is and what it needs, beside two simple programs doing the same files.

usage: python -m bench.agent [--quick] [--sizes 1,20,200]

For each file size two ways: `backlog` (all files are there when the agent starts; -once) and
`live` (another process renames files into the spool as fast as it can while the agent runs).
Files are documents of NDT7's shape: a header, then samples of growing counters; about 5:1 in gzip.

In the same run, as a scale for this machine at this moment:

  floor    read, BLAKE2b and unlink each file: what no archiver in Python can do without
  simple   a plain Python archiver: json.loads, wrap, gzip level 1, unlink; no fsync, no journal,
           no index, no schema, so it loses data when it is killed and loads fail on bad rows

The bucket is a directory on the same disk, in memory (tmpfs) unless --dir says otherwise: ext4
keeps inodes that were deleted within five seconds from being used again and looks for others one
by one (recently_deleted in fs/ext4/ialloc.c), so a directory in which one program creates and
another deletes a hundred thousand files measures that search.  Peak memory is the kernel's VmHWM.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

FULL = {1: 100_000, 20: 10_000, 200: 1_500}
QUICK = {1: 10_000, 20: 1_000, 200: 150}
COUNTERS = ("ElapsedTime", "RTT", "RTTVar", "MinRTT", "SndCwnd", "BytesAcked", "BytesReceived")
SCHEMA = [
    {"name": "UUID", "type": "STRING"},
    {"name": "StartTime", "type": "TIMESTAMP"},
    {"name": "Server", "type": "STRING"},
    {"name": "Port", "type": "INTEGER"},
    {"name": "Rate", "type": "FLOAT"},
    {
        "name": "Samples",
        "type": "RECORD",
        "mode": "REPEATED",
        "fields": [{"name": name, "type": "INTEGER"} for name in COUNTERS],
    },
]
DAY = "2026/01/02"


@dataclass(frozen=True)
class Result:
    """What one run took."""

    way: str
    size_kib: int
    files: int
    total_bytes: int
    wall_s: float
    cpu_s: float
    peak_rss: int

    def line(self) -> str:
        return (
            f"{self.size_kib:>4} KiB  {self.way:8} {self.files:>7} files"
            f" {self.files / self.wall_s:>9,.0f} files/s"
            f" {self.total_bytes / self.wall_s / 1e6:>7.0f} MB/s"
            f" {self.cpu_s:>6.1f} CPU s {self.peak_rss / 2**20:>6.0f} MiB"
        )


def header(rng: random.Random) -> dict[str, object]:
    """Make what every document begins with; whoever writes it puts a UUID of its own in."""
    return {
        "UUID": "0" * 24,
        "StartTime": f"2026-01-02T03:04:05.{rng.randrange(10**9):09d}Z",
        "Server": f"10.0.{rng.randrange(256)}.{rng.randrange(256)}",
    }


def documents(size_kib: int) -> list[bytes]:
    """Make a few hundred different documents; each is written many times with its own UUID."""
    rng = random.Random(1)
    made = []
    for _ in range(200):
        value = header(rng)
        value |= {"Port": rng.randrange(65536), "Rate": rng.random() * 1000}
        samples: list[dict[str, int]] = []
        counts = [rng.randrange(10**5) for _ in COUNTERS]
        length = 160
        while length < size_kib * 1024:
            counts = [count + rng.randrange(3000) for count in counts]
            samples.append(dict(zip(COUNTERS, counts, strict=True)))
            length += len(json.dumps(samples[-1], separators=(",", ":"))) + 1
        made.append(json.dumps({**value, "Samples": samples}, separators=(",", ":")).encode())
    return made


def write(directory: Path, count: int, made: list[bytes], *, rename: bool) -> int:
    """Write `count` files; return their bytes."""
    total = 0
    for number in range(count):
        content = made[number % len(made)].replace(b"0" * 24, b"%024d" % number, 1)
        path = f"{directory}/m{number:07d}.json"
        target = f"{directory}/.m{number:07d}" if rename else path
        with open(target, "wb") as file:  # noqa: PTH123 - a Path for each file takes longer
            file.write(content)
        if rename:
            os.rename(target, path)  # noqa: PTH104 - as above
        total += len(content)
    return total


def spool(root: Path) -> Path:
    """Make an empty spool; return the directory of the day."""
    shutil.rmtree(root, ignore_errors=True)
    day = root / "spool" / "exp" / "foo1" / DAY
    day.mkdir(parents=True)
    (root / "spool" / "datatypes").mkdir()
    (root / "spool" / "datatypes" / "foo1.json").write_text(json.dumps(SCHEMA))
    return day


def agent(root: Path, *flags: str) -> subprocess.Popen[bytes]:
    """Start the agent on a spool."""
    argv = ["-gcs-bucket", (root / "bucket").as_uri(), "-node-name", "bench", "-experiment", "exp"]
    argv += ["-datatype", "foo1", "-local-data-dir", str(root / "spool"), "-log-format", "json"]
    with (root / "log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-m", "jostler", *argv, *flags], stdout=log)


def measured(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    """Wait for a child; return its CPU seconds and peak memory in bytes."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the agent ended with status {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def backlog(root: Path, size_kib: int, count: int, made: list[bytes]) -> Result:
    total = write(spool(root), count, made, rename=False)
    started = time.perf_counter()
    cpu_s, rss = measured(agent(root, "-once", "-missed-age", "0s"))
    wall_s = time.perf_counter() - started
    check(root, count)
    return Result("backlog", size_kib, count, total, wall_s, cpu_s, rss)


def live(root: Path, size_kib: int, count: int, made: list[bytes]) -> Result:
    day = spool(root)
    process = agent(root, "-bundle-age-max", "2s", "-settle-age", "1s")
    while b"agent.started" not in (root / "log").read_bytes():
        time.sleep(0.01)
    started = time.perf_counter()
    writer = os.fork()
    if not writer:
        write(day, count, made, rename=True)
        os._exit(0)
    os.waitpid(writer, 0)
    while stored(root) < count:  # asking the directory would hold up those who unlink in it
        time.sleep(0.05)
    wall_s = time.perf_counter() - started
    process.terminate()
    cpu_s, rss = measured(process)
    check(root, count)
    return Result("live", size_kib, count, count * len(made[0]), wall_s, cpu_s, rss)


def stored(root: Path) -> int:
    """Return how many files the agent says it has stored and unlinked."""
    lines = (root / "log").read_bytes().splitlines()
    entries = [json.loads(line) for line in lines if b'"bundle.stored"' in line]
    return sum(entry["files"] for entry in entries)


def check(root: Path, count: int) -> None:
    """Count the rows that arrived: a fast agent that loses files is none."""
    rows = 0
    for path in (root / "bucket" / "autoload/v1/exp/foo1").rglob("*.gz"):
        with gzip.open(path) as file:
            rows += file.read().count(b"\n")
    if rows != count:
        raise SystemExit(f"{count} files were written, {rows} rows arrived")


def floor(root: Path, size_kib: int, count: int, made: list[bytes]) -> Result:
    day = spool(root)
    total = write(day, count, made, rename=False)
    return alone("floor", size_kib, count, total, lambda: _floor(day))


def _floor(day: Path) -> None:
    for entry in os.scandir(day):
        with open(entry.path, "rb") as file:  # noqa: PTH123 - as above
            hashlib.blake2b(file.read(), digest_size=16).digest()
        os.unlink(entry.path)  # noqa: PTH108 - as above


def simple(root: Path, size_kib: int, count: int, made: list[bytes]) -> Result:
    day = spool(root)
    total = write(day, count, made, rename=False)
    return alone("simple", size_kib, count, total, lambda: _simple(root, day))


def _simple(root: Path, day: Path) -> None:
    with gzip.open(root / "out.gz", "wb", compresslevel=1) as out:
        for entry in os.scandir(day):
            with open(entry.path, "rb") as file:  # noqa: PTH123 - as above
                row = {"date": "2026-01-02", "raw": json.loads(file.read())}
            out.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
    for entry in os.scandir(day):
        os.unlink(entry.path)  # noqa: PTH108 - as above


def alone(way: str, size_kib: int, count: int, total: int, work) -> Result:  # noqa: ANN001
    """Run a function in a child of its own and measure that."""
    started = time.perf_counter()
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, _, used = os.wait4(child, 0)
    wall_s = time.perf_counter() - started
    cpu_s = used.ru_utime + used.ru_stime
    return Result(way, size_kib, count, total, wall_s, cpu_s, used.ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the files")
    parser.add_argument("--sizes", default="1,20,200", help="sizes of files in KiB")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    parser.add_argument("--dir", default=memory, help="directory to work in (default: in memory)")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
    counts = QUICK if args.quick else FULL
    with tempfile.TemporaryDirectory(dir=args.dir) as directory:
        root = Path(directory) / "work"
        for size_kib in (int(size) for size in args.sizes.split(",")):
            made = documents(size_kib)
            count = counts.get(size_kib, 1000)
            results = [way(root, size_kib, count, made) for way in (floor, simple, backlog, live)]
            by_way = {result.way: result for result in results}
            for result in results:
                print(result.line(), flush=True)
            ours = by_way["backlog"]
            print(
                f"          backlog is {by_way['simple'].wall_s / ours.wall_s:.2f} x simple,"
                f" {by_way['floor'].wall_s / ours.wall_s:.2f} x floor\n"
            )


if __name__ == "__main__":
    main()
