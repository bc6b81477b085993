"""Commands that are watched while they run: time, CPU and memory, with all that they start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TICK_S = 0.1


@dataclass(frozen=True)
class Process:
    """A process as the kernel shows it."""

    pid: int
    name: str
    rss_bytes: int
    cpu_s: float


@dataclass
class Memory:
    """The most resident memory that was seen, in bytes.

    Attributes:
        driver: of the process itself.
        jvm: of all Java processes that it started.
        workers: of all Python processes that it started, together.
        worker: of the largest of these.
    """

    driver: int = 0
    jvm: int = 0
    workers: int = 0
    worker: int = 0

    def __str__(self) -> str:
        shown = [
            f"{size / 1e6:,.0f}" for size in (self.driver, self.jvm, self.workers, self.worker)
        ]
        return f"MB: driver {shown[0]}, JVM {shown[1]}, workers {shown[2]} (largest {shown[3]})"

    def see(self, pid: int, found: Sequence[Process]) -> None:
        """Take account of a process and of those that come of it."""
        self.driver = max([self.driver, *(one.rss_bytes for one in found if one.pid == pid)])
        below = [one for one in found if one.pid != pid]
        self.jvm = max(self.jvm, sum(one.rss_bytes for one in below if one.name == "java"))
        workers = [one.rss_bytes for one in below if one.name.startswith("python")]
        self.workers = max(self.workers, sum(workers))
        self.worker = max([self.worker, *workers])


@dataclass(frozen=True)
class Watched:
    """How a command ended, and what it took.

    Attributes:
        output: what it wrote to standard output.
        errors: what it wrote to standard error.
        wall_s: from its start to its end.
        cpu_s: of it and all that it started, as last seen.
        memory: of these.
    """

    output: str
    errors: str
    wall_s: float
    cpu_s: float
    memory: Memory

    @property
    def last_line(self) -> str:
        """The last line of its output."""
        return self.output.splitlines()[-1]


def descendants(pid: int) -> list[Process]:
    """Return a process and all that come of it, as far as they have not ended."""
    children: dict[int, list[int]] = defaultdict(list)
    found: dict[int, Process] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = entry.read_text()
        except OSError:  # it has ended
            continue
        name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat.rpartition(")")[2]
        parts = rest.split()
        number = int(entry.parent.name)
        children[int(parts[1])].append(number)
        cpu_s = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
        found[number] = Process(number, name, int(parts[21]) * os.sysconf("SC_PAGE_SIZE"), cpu_s)
    below = [pid]
    for child in below:
        below += children[child]
    return [found[child] for child in below if child in found]


def watched(
    command: Sequence[str], environ: Mapping[str, str] | None = None, status: int = 0
) -> Watched:
    """Run a command to its end.

    Args:
        command: program and arguments.
        environ: variables to set beside those of this process.
        status: the exit status that is expected.
    """
    began_s = time.perf_counter()
    process = subprocess.Popen(
        command,
        env={**os.environ, **(environ or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = _Watch(process.pid)
    watch.start()
    output, errors = process.communicate()
    wall_s = time.perf_counter() - began_s
    watch.ended.set()
    watch.join()
    assert process.returncode == status, output[-3000:] + errors[-3000:]
    return Watched(output, errors, wall_s, sum(watch.cpu_s.values()), watch.memory)


def watched_load(bucket: str, url: str, *more: str, status: int = 0) -> Watched:
    """Load everything in a bucket into the project `bench` of an embedded BigQuery.

    Args:
        bucket: its URL.
        url: of BigQuery.
        more: further arguments of the loader.
        status: the exit status that is expected.
    """
    command = (sys.executable, "-m", "loader", "--bucket", bucket, "--project", "bench")
    everything = ("--period", "everything", *more)
    return watched([*command, *everything], {"BIGQUERY_EMULATOR_HOST": url}, status)


@dataclass
class _Watch:
    """A thread that looks at a process and all that come of it, until `ended`."""

    pid: int
    cpu_s: dict[int, float] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _look(self) -> None:
        while not self.ended.wait(TICK_S):
            found = descendants(self.pid)
            self.cpu_s |= {one.pid: one.cpu_s for one in found}
            self.memory.see(self.pid, found)
