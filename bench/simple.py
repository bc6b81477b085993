"""Simple programs, as a scale for this machine at this moment."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING

from bench.files import paths, write
from bench.programs import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.files import Kind
    from bench.programs import Bench


def floor(bench: Bench, _kind: Kind, made: list[bytes], count: int) -> Run:
    """Read, hash and unlink each file: what no archiver in Python can do without."""
    directory = bench.spool()
    total = write(directory, made, count, rename=False)
    found = paths(directory)

    def work() -> None:
        for path in found:
            with open(path, "rb") as file:  # noqa: PTH123 - a Path for each takes longer
                hashlib.blake2b(file.read(), digest_size=16).digest()
            os.unlink(path)  # noqa: PTH108 - as above

    return alone(work, count, total)


def simple(bench: Bench, _kind: Kind, made: list[bytes], count: int) -> Run:
    """json.loads, wrap, gzip level 1, unlink: no fsync, journal, index or schema."""
    directory = bench.spool()
    total = write(directory, made, count, rename=False)
    found, target = paths(directory), bench.root / "out.gz"

    def work() -> None:
        with gzip.open(target, "wb", compresslevel=1) as out:
            for path in found:
                with open(path, "rb") as file:  # noqa: PTH123 - as above
                    row = {"date": "2026-01-02", "raw": json.loads(file.read())}
                out.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
        for path in found:
            os.unlink(path)  # noqa: PTH108 - as above

    run = alone(work, count, total)
    return Run(run.files, run.file_bytes, run.wall_s, run.cpu_s, 0, target.stat().st_size)


def alone(work: Callable[[], object], count: int, total: int) -> Run:
    """Run a function in a child of its own and measure that."""
    started_s = time.perf_counter()
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit("a program of the bench failed")
    wall_s = time.perf_counter() - started_s
    return Run(count, total, wall_s, used.ru_utime + used.ru_stime, 0)
