"""The agent against the size of its task, and what it takes to start and to do nothing.

Speed and memory should not depend on how many files wait, in how many days and datatypes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench import programs
from bench.files import KINDS, documents, write
from bench.programs import Measured, Run, cpu_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.programs import Bench

FILES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
SPREAD_FILES = 100_000
DAYS = (10, 100, 1000)
DATATYPES = (5, 20)
LOOK_S = 0.002
SETTLES_S = 8.0
"""After so long without a file an agent looks around more rarely."""


def by_count(bench: Bench, scale: float, runs: int) -> Iterator[tuple[int, list[Run]]]:
    """Archive backlogs of 1 KiB files; yield how many files, and the runs."""
    made = documents(KINDS[0])
    for count in FILES:
        wanted = max(1, int(count * scale))
        times = 1 if count == FILES[-1] else runs
        yield wanted, [programs.ours(bench, KINDS[0], made, wanted) for _ in range(times)]


def by_spread(bench: Bench, scale: float, runs: int) -> Iterator[tuple[str, list[Run]]]:
    """Archive a backlog in many days and datatypes; yield what it was, and the runs."""
    made = documents(KINDS[0])
    count = max(1, int(SPREAD_FILES * scale))
    for days, datatypes in (*((days, 1) for days in DAYS), *((1, many) for many in DATATYPES)):
        done = [
            programs.ours(bench, KINDS[0], made, count, days=days, datatypes=datatypes)
            for _ in range(runs)
        ]
        yield (f"{days:,} days" if days > 1 else f"{datatypes} datatypes"), done


def start(bench: Bench) -> Run:
    """Measure from the start of the process until it has taken its first file."""
    total = write(bench.spool(), documents(KINDS[0]), 1, rename=False)
    agent = bench.ours("-missed-age", "0s", "-verbose")
    _await(agent, b'"file.taken"')
    wall_s, cpu_s = time.perf_counter() - agent.started_s, cpu_of(agent.process.pid)
    agent.kill()
    return Run(1, total, wall_s, cpu_s, agent.rss)


def idle(bench: Bench, seconds: float) -> Run:
    """Measure the CPU time of an agent that has nothing to do; `cpu_s` is for an hour."""
    bench.spool()
    agent = bench.ours()
    _await(agent, b'"agent.started"')
    time.sleep(SETTLES_S)
    before_s, began_s = cpu_of(agent.process.pid), time.perf_counter()
    time.sleep(seconds)
    spent_s = time.perf_counter() - began_s
    cpu_s = (cpu_of(agent.process.pid) - before_s) * 3600 / spent_s
    agent.kill()
    return Run(0, 0, spent_s, cpu_s, agent.rss)


def _await(agent: Measured, event: bytes) -> None:
    """Wait until an agent's log has an event; end the bench if the agent ends before."""
    while event not in agent.log.read_bytes():
        if agent.process.poll() is not None:
            raise SystemExit(f"the agent ended: {agent.log.read_text(errors='replace')[-2000:]}")
        time.sleep(LOOK_S)
