"""The programs that the bench compares, each run once and measured.

Every way returns a `Run`.  CPU seconds are those of the process and its threads, peak memory is the
kernel's VmHWM, which is asked for every 20 ms until the process ends.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.files import paths, spool, write
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.files import Kind
    from tests.support.gcs import GcsServer

NODE = "mlab1-lga01.mlab-sandbox.measurement-lab.org"  # the Go agent takes M-Lab's names alone
DATA = "autoload/v1/exp/"
POLL_S = 0.02
LOOK_S = 0.2
QUIET_S = 3.0  # an agent that stores and does nothing for so long has only an open bundle left
SCAN_AFTER_S = 1
BURST_DAYS = 10
BURST_MOST_S = 120.0


@dataclass(frozen=True)
class Run:
    """What one run took.

    Attributes:
        files: that were archived.
        file_bytes: of these.
        wall_s: of a backlog: from the start of the program to the end of its work; of a burst:
            from the last file written until the last one is archived.
        cpu_s: of the whole process.
        rss: peak, bytes.
        stored: bytes of data and index objects; 0 when nothing is stored.
        missed: files of a burst that still lay in the spool when nothing happened any more.
    """

    files: int
    file_bytes: int
    wall_s: float
    cpu_s: float
    rss: int
    stored: int = 0
    missed: int = 0


class Bench:
    """Where the runs work.

    Args:
        root: directory for spool and bucket.
        server: a GCS server, or None for a bucket that is a directory.
        go: the Go agent's binary.
    """

    def __init__(self, root: Path, server: GcsServer | None, go: str = "") -> None:
        self.root = root
        self._server = server
        self._go = go
        self._runs = 0
        self._datatypes = 1
        self._bucket = ""

    def spool(self, datatypes: int = 1) -> Path:
        """Make spool and bucket anew; return the first datatype's directory."""
        directory = spool(self.root, datatypes)
        self._datatypes = datatypes
        self._runs += 1
        self._bucket = f"bench-{os.getpid()}-{self._runs}"
        if self._server:
            self._server.create_bucket(self._bucket)
        else:
            (self.root / self._bucket).mkdir()
        return directory

    @property
    def url(self) -> str:
        """The bucket's URL."""
        return self._bucket if self._server else (self.root / self._bucket).as_uri()

    # The agents

    def ours(self, *flags: str, python: str = sys.executable) -> Measured:
        """Start this project's agent, as the given interpreter imports it."""
        # -P: not the tree of the working directory, but what the interpreter has installed.
        argv = [python, "-P", "-m", "jostler", "-gcs-bucket", self.url, *self._flags(), *flags]
        return Measured([*argv, "-log-format", "json"], self.root)

    def go(self, *flags: str) -> Measured:
        """Start the Go agent, whose bucket in a directory is the one that it runs in."""
        bucket = ["-gcs-bucket", self._bucket]
        if not self._server:
            bucket = ["-gcs-local-disk", "-gcs-bucket", "newclient,download,upload"]
        argv = [self._go, *bucket, *self._flags(), *flags]
        return Measured(argv, self.root, cwd=None if self._server else self.root / self._bucket)

    def _flags(self) -> list[str]:
        return [
            *("-mlab-node-name", NODE, "-experiment", "exp"),
            *("-local-data-dir", str(self.root / "spool"), "-gcs-data-dir", "autoload/v1"),
            *(text for number in range(1, self._datatypes + 1) for text in self._datatype(number)),
        ]

    def _datatype(self, number: int) -> tuple[str, ...]:
        schema = f"foo{number}:{self.root}/spool/datatypes/foo1.json"
        return "-datatype", f"foo{number}", "-datatype-schema-file", schema

    # What they stored

    def stored(self) -> int:
        """Return the bytes of data and index objects."""
        return sum(info.size_bytes for info in open_storage(self.url).list(DATA))

    def rows(self) -> int:
        """Count the rows that arrived: a fast agent that loses files is none."""
        storage = open_storage(self.url)
        return sum(
            gzip.decompress(storage.read(info.name).data).count(b'"UUID"')
            for info in storage.list(DATA)
            if "-data.jsonl" in info.name
        )


class Measured:
    """A process whose peak memory is asked for while it runs."""

    def __init__(self, argv: list[str], root: Path, cwd: Path | None = None) -> None:
        # What is installed is compiled, by pip or in the image.  A tree is compiled by its first
        # run, unless the environment forbids that; then every start would compile it again.
        environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environ["MALLOC_ARENA_MAX"] = "1"  # as in the image and in the systemd unit
        self.started_s = time.perf_counter()
        self.log = root / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                argv, stdout=log, stderr=subprocess.STDOUT, cwd=cwd, env=environ
            )
        self.rss = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        with suppress(OSError, ProcessLookupError):
            while self.process.returncode is None:
                text = Path(f"/proc/{self.process.pid}/status").read_text()
                _, _, rest = text.partition("VmHWM:")
                if not rest:  # it has ended and is not waited for
                    return
                self.rss = max(self.rss, int(rest.split()[0]) * 1024)
                time.sleep(POLL_S)

    def end(self, *, expect: int | None = 0) -> float:
        """Wait for the process; return its CPU seconds.

        Args:
            expect: the exit status that is expected; None for any.
        """
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        if expect is not None and self.process.returncode != expect:
            sys.stdout.write(self.log.read_text(errors="replace")[-2000:])
            raise SystemExit(f"{self.process.args} ended with {self.process.returncode}")
        return used.ru_utime + used.ru_stime

    def kill(self) -> float:
        """End the process as it is; return its CPU seconds."""
        self.process.kill()
        return self.end(expect=None)


def ours(
    bench: Bench,
    kind: Kind,
    made: list[bytes],
    count: int,
    *flags: str,
    days: int = 1,
    datatypes: int = 1,
    python: str = sys.executable,
) -> Run:
    """Archive a backlog with this project's agent, `-once`."""
    first = bench.spool(datatypes)
    total = sum(
        write(first.with_name(f"foo{number + 1}"), made, share, rename=False, days=days)
        for number, share in enumerate(shares(count, datatypes))
    )
    agent = bench.ours("-once", "-missed-age", "0s", *flags, python=python)
    cpu_s = agent.end()
    wall_s = time.perf_counter() - agent.started_s
    check(kind, count, bench.rows())
    return Run(count, total, wall_s, cpu_s, agent.rss, bench.stored())


def shares(count: int, parts: int) -> list[int]:
    """Divide a number of files into parts."""
    return [count // parts + (part < count % parts) for part in range(parts)]


def go(bench: Bench, kind: Kind, made: list[bytes], count: int) -> Run:
    """Archive a backlog with the Go agent, as far as full bundles go.

    It never ends, and its last bundle waits for its age.  So it is measured from its first scan,
    which is `-missed-interval` after its start, until it has stored the last bundle that was full,
    and what counts are the rows stored by then.  It read a part of one more bundle in that time,
    and that part is in its CPU seconds.
    """
    total = write(bench.spool(), made, count, rename=False)
    began = time.time() + SCAN_AFTER_S
    agent = bench.go("-missed-age", "0s", "-missed-interval", f"{SCAN_AFTER_S}s")
    cpu_s = _worked(agent, lambda: sum(1 for _ in open_storage(bench.url).list(f"{DATA}foo1/")))
    agent.kill()
    stored = [at.timestamp() for _, at in open_storage(bench.url).written(f"{DATA}foo1/")]
    if not stored:
        raise SystemExit(f"{kind.name}: no full bundle was stored, take more files (--scale)")
    rows = bench.rows()
    check(kind, rows, rows, most=count)
    return Run(rows, total * rows // count, max(stored) - began, cpu_s, agent.rss, bench.stored())


def _worked(agent: Measured, objects: Callable[[], int]) -> float:
    """Wait until an agent neither stores nor works; return its CPU seconds at its last object.

    It goes on scanning, so it counts as idle when it is seen working less than half of the time.
    A thread that waits for a processor works, too: other programs may keep the machine busy.
    """
    seen, cpu_s, changed_s = 0, 0.0, time.perf_counter()
    worked: deque[bool] = deque(maxlen=round(QUIET_S / LOOK_S))
    while True:
        time.sleep(LOOK_S)
        if agent.process.poll() is not None:
            agent.end(expect=None)
            raise SystemExit(f"the agent ended: {agent.log.read_text(errors='replace')[-2000:]}")
        worked.append(_works(agent.process.pid))
        if (now := objects()) != seen:
            seen, cpu_s, changed_s = now, cpu_of(agent.process.pid), time.perf_counter()
        idle = len(worked) == worked.maxlen and sum(worked) < len(worked) / 2
        if idle and time.perf_counter() - changed_s > QUIET_S:
            return cpu_s


def _works(pid: int) -> bool:
    """Say whether a thread of a process runs, could run, or waits for a disk."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            if (task / "stat").read_text().rpartition(")")[2].split()[0] in {"R", "D"}:
                return True
    return False


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours_burst(bench: Bench, kind: Kind, made: list[bytes], count: int) -> Run:
    """Archive a burst with this project's agent, its defaults but for the age of bundles."""
    flags = ("-bundle-age-max", "1s", "-prometheusx.listen-address", "")
    return _burst(
        bench,
        kind,
        made,
        count,
        lambda: bench.ours(*flags),
        lambda agent: b"agent.started" in agent.log.read_bytes(),
    )


def go_burst(bench: Bench, kind: Kind, made: list[bytes], count: int) -> Run:
    """Archive a burst with the Go agent, as above."""
    return _burst(bench, kind, made, count, lambda: bench.go("-bundle-age-max", "1s"), _watches)


def _burst(  # noqa: PLR0917 - the four that every program has, and two
    bench: Bench,
    kind: Kind,
    made: list[bytes],
    count: int,
    start: Callable[[], Measured],
    is_ready: Callable[[Measured], bool],
) -> Run:
    directory = bench.spool()
    agent = start()
    while not is_ready(agent):
        if agent.process.poll() is not None:
            agent.end()
        time.sleep(0.01)
    writer = os.fork()
    if not writer:
        write(directory, made, count, rename=True, days=BURST_DAYS)
        os._exit(0)
    os.waitpid(writer, 0)
    written_s = time.perf_counter()
    left, changed_s = count, written_s
    while left and time.perf_counter() - changed_s < (BURST_MOST_S if left == count else 30.0):
        time.sleep(0.1)
        now = len(paths(directory))
        if now != left:
            left, changed_s = now, time.perf_counter()
    wall_s = changed_s - written_s
    agent.process.terminate()
    cpu_s = agent.end(expect=None)
    rows = bench.rows()
    check(kind, count - left, rows, most=count)
    return Run(rows, rows * kind.size, wall_s, cpu_s, agent.rss, bench.stored(), left)


def _watches(agent: Measured) -> bool:
    """Say whether an agent watches its spool: the kernel knows."""
    with suppress(OSError):
        infos = Path(f"/proc/{agent.process.pid}/fdinfo").iterdir()
        return any("inotify wd:" in fd.read_text() for fd in infos)
    return False


def check(kind: Kind, wanted: int, rows: int, most: int | None = None) -> None:
    """End the bench if rows are missing, or are there twice."""
    if rows < wanted or rows > (wanted if most is None else most):
        raise SystemExit(f"{kind.name}: {wanted} files should be stored, {rows} rows arrived")
