"""How fast the agent is and what it needs, beside simple programs and the Go agent.

usage: python -m bench.agent [--quick] [--kinds 1KiB,104B,20KiB,200KiB,burst] [--runs N]
                             [--buckets directory,http] [--go PATH] [--also=FLAGS] [--json FILE]
                             [--before PYTHON] [--curve] [--idle SECONDS]

A row for each kind of file (bench/files.py) and program (bench/programs.py, bench/simple.py).
Programs run in turn, `--runs` times; each figure is the median.  The bucket is a directory in
memory (tmpfs) and, over HTTP, a fake-gcs-server here, which takes a part of the processors.

  ours     this project's agent in Python alone (-native off) on a backlog, -once, from its start to
           its end
  ours native  the same with its native module (-native require), where that is installed
  go       the Go agent on the same files, from its first scan to its last full bundle
  floor    read, BLAKE2b and unlink each file: what no archiver in Python can do without
  simple   a plain Python archiver: json.loads, wrap, gzip level 1, unlink; no fsync, no journal,
           no index, no schema, so it loses data when it is killed and loads fail on bad rows
  burst    files that are renamed into new day directories while the agent runs; `wall` is the time
           from the last file until the last one is archived, `missed` those that never were

  start    this project's agent from its start until it has taken its first file
  idle     CPU seconds of an hour in which the agent has nothing to do
  ours n   (--curve) this project's agent with its defaults against the number of files
  spread   (--curve) the same against the number of days and of datatypes

  --also=FLAGS  this project's agent once more, with other flags: `--also="-compression small"`
  --before PYTHON  the agent that another interpreter imports, such as that of a checkout of an
                older version with an environment of its own

`--go PATH` is the binary of the Go agent's `cmd/jostler`; docs/performance.md says what it must
understand.  `--dir` elsewhere than in memory measures that file system too: ext4 keeps inodes that
were deleted within five seconds from being used again and looks for others one by one
(recently_deleted in fs/ext4/ialloc.c).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import curves, programs, simple
from bench.files import KINDS, documents
from bench.limits import limits
from bench.programs import Bench, Run
from jostler.schema import Use, native
from tests.support.gcs import GcsServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.files import Kind

OURS = {"ours": ("-native", "off"), "ours native": ("-native", "require")}
NATIVE = native.find(Use.AUTO)
HEADINGS = "kind,bucket,program,files,files/s,MB/s,CPU s,MB/CPU s,RSS MB,bytes/file,wall s,missed"
WIDTHS = (8, 10, 14, 8, 9, 7, 7, 9, 7, 11, 7, 7)


def medians(runs: list[Run]) -> Run:
    """Return the median of each figure."""
    values = {f.name: statistics.median(getattr(run, f.name) for run in runs) for f in fields(Run)}
    return Run(**values)


def line(kind: str, bucket: str, program: str, run: Run) -> str:
    """Write one row of the table."""
    wall_s, cpu_s = max(run.wall_s, 1e-9), max(run.cpu_s, 1e-9)
    burst = program.endswith("burst")
    cells = (
        *(kind, bucket, program, f"{run.files:,.0f}"),
        "" if burst else f"{run.files / wall_s:,.0f}",
        "" if burst else f"{run.file_bytes / wall_s / 1e6:,.0f}",
        f"{run.cpu_s:.2f}",
        f"{run.file_bytes / cpu_s / 1e6:,.1f}",
        f"{run.rss / 1e6:,.0f}" if run.rss else "",
        f"{run.stored / run.files:,.0f}" if run.stored and run.files else "",
        *(f"{run.wall_s:.2f}", f"{run.missed:,.0f}" if burst else ""),
    )
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))


def heading() -> str:
    return "  ".join(h.rjust(w) for h, w in zip(HEADINGS.split(","), WIDTHS, strict=True))


class Report:
    """Prints rows as they come, and writes them to the file of `--json`, if there is one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rows: list[dict[str, object]] = []
        self._machine = {
            "processors": os.cpu_count(),
            "kernel": platform.release(),
            "cpu": cpu(),
            "load": os.getloadavg()[0],  # of others: nothing of the bench runs yet
        }

    def add(self, kind: str, bucket: str, program: str, runs: list[Run]) -> Run:
        run = medians(runs)
        print(line(kind, bucket, program, run), flush=True)
        row = {"kind": kind, "bucket": bucket, "program": program, "runs": len(runs)}
        self._rows.append({**row, **asdict(run)})
        if self._path:
            text = json.dumps({"machine": self._machine, "rows": self._rows}, indent=1)
            Path(self._path).write_text(f"{text}\n", encoding="utf-8")
        return run


def cpu() -> str:
    """Return the processor's name."""
    for text in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return platform.machine()


def ways(
    args: argparse.Namespace, kind: Kind, bucket: str, bench: Bench
) -> Iterator[tuple[str, Callable]]:
    """Yield the programs to compare for a kind of files, by name."""
    if kind.burst:
        yield "ours burst", partial(programs.ours_burst, bench)
        if args.go:
            yield "go burst", partial(programs.go_burst, bench)
        return
    for name, flags in OURS.items():
        if name == "ours" or NATIVE.module:
            yield name, partial(_ours, bench, flags)
    for also in args.also:
        yield also, partial(_ours, bench, tuple(also.split()))
    if args.before:
        yield "before", partial(programs.ours, bench, python=args.before)
    if args.go:
        yield "go", partial(programs.go, bench)
    if bucket == "directory":
        yield "floor", partial(simple.floor, bench)
        yield "simple", partial(simple.simple, bench)


def _ours(bench: Bench, flags: tuple[str, ...], kind: Kind, made: list[bytes], count: int) -> Run:
    return programs.ours(bench, kind, made, count, *flags)


def compare(args: argparse.Namespace, kind: Kind, bucket: str, bench: Bench, out: Report) -> None:
    """Run all programs in turn, and say how many times as fast as the others ours is."""
    made, count = documents(kind), number(args, kind)
    taken: dict[str, list[Run]] = {}
    for _ in range(args.runs):
        for name, way in ways(args, kind, bucket, bench):
            taken.setdefault(name, []).append(way(kind, made, count))
    found = {name: out.add(kind.name, bucket, name, runs) for name, runs in taken.items()}
    if kind.burst or "ours" not in found:
        return
    ours = found["ours"].wall_s / found["ours"].files
    others = [name for name in found if name != "ours"]
    ratios = [f"{found[n].wall_s / found[n].files / ours:.2f} x {n}" for n in others]
    if "go" in found:
        bytes_ours = found["ours"].stored / found["ours"].files
        bytes_go = found["go"].stored / found["go"].files
        ratios.append(f"{bytes_ours / bytes_go:.2f} x the bytes of go")
    if ratios:
        print(f"{'':24}ours is {', '.join(ratios)}\n", flush=True)


def number(args: argparse.Namespace, kind: Kind) -> int:
    return max(1, int(kind.count * args.scale))


def size(args: argparse.Namespace, bucket: str, bench: Bench, out: Report) -> None:
    """Measure the agent's start, its rest, and with --curve how its task's size matters."""
    out.add("start", bucket, "start", [curves.start(bench) for _ in range(args.runs)])
    if args.idle:
        out.add("idle", bucket, "idle", [curves.idle(bench, args.idle)])
    if args.curve:
        for _, runs in curves.by_count(bench, args.scale, args.runs):
            out.add(KINDS[0].name, bucket, "ours n", runs)
        for spread, runs in curves.by_spread(bench, args.scale, args.runs):
            out.add(spread, bucket, "spread", runs)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the files, one run")
    parser.add_argument("--scale", type=float, default=1.0, help="so many times the files")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program")
    names = [kind.name.replace(" ", "") for kind in KINDS]
    parser.add_argument("--kinds", default=",".join(names), help="kinds of files")
    parser.add_argument("--buckets", default="directory,http", help="kinds of buckets")
    parser.add_argument("--go", default="", metavar="PATH", help="the Go agent's binary")
    parser.add_argument(
        "--also", action="append", default=[], metavar="FLAGS", help="ours with these flags, too"
    )
    parser.add_argument("--before", default="", metavar="PYTHON", help="of an older installation")
    parser.add_argument("--json", default="", metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--curve", action="store_true", help="also against numbers of files, days, datatypes"
    )
    parser.add_argument("--idle", type=float, default=60.0, metavar="SECONDS", help="0: not at all")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    parser.add_argument("--dir", default=memory, help="directory to work in (default: in memory)")
    args = parser.parse_args()
    if args.quick:
        args.scale, args.runs, args.idle = args.scale / 10, 1, min(args.idle, 5.0)
    args.go = args.go and str(Path(args.go).resolve(strict=True))
    return args


def main() -> None:
    args = arguments()
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
    chosen = [kind for kind in KINDS if kind.name.replace(" ", "") in args.kinds.split(",")]
    out = Report(args.json)
    print(heading(), flush=True)
    for bucket in args.buckets.split(","):
        with ExitStack() as held:
            root = Path(held.enter_context(tempfile.TemporaryDirectory(dir=args.dir))) / "work"
            server = held.enter_context(GcsServer()) if bucket == "http" else None
            if server:  # for the agents, and to count what they stored
                os.environ["STORAGE_EMULATOR_HOST"] = server.url
            bench = Bench(root, server, args.go)
            for kind in chosen:
                compare(args, kind, bucket, bench, out)
                if bucket == "directory" and not kind.burst:
                    alone = limits(bench, kind, documents(kind), number(args, kind))
                    for name, way in alone.items():
                        out.add(kind.name, "", name, [way() for _ in range(args.runs)])
            size(args, bucket, bench, out)


if __name__ == "__main__":
    main()
