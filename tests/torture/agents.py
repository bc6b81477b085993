"""Torture of agents: they are killed, their disks fill up, their bucket fails; then all is counted.

usage: python -m tests.torture.agents --minutes 30

Each agent has a spool on a small file system of its own, which is filled up at times, a producer
that rewrites, deletes and moves, and a bucket: a directory, a GCS server, or a GCS server behind a
proxy that fails.  At the end the faults stop, each agent drains its spool, and every content that
was ever written is looked for in the bucket.  Agents come up with the native module or without it,
at random.  Exit status 0: nothing lost, nothing twice.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from jostler.storage import open_storage
from tests.support.agent import arguments, environment
from tests.support.disk import mounted
from tests.support.gcs import GcsServer
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import DATATYPE, Spool
from tests.torture.checker import Verdict, check
from tests.torture.producer import Producer

if TYPE_CHECKING:
    from collections.abc import Iterator

DISK_MB = 40
FLAGS = (
    *("-bundle-size-max", "60KB", "-bundle-age-max", "400ms", "-settle-age", "100ms"),
    *("-missed-age", "700ms", "-missed-interval", "2s", "-flush-timeout", "5s"),
)
DRAIN_TRIES = 20
SHOWN = 20


@dataclass
class Victim:
    """One agent, its disk, its producer and everything that is done to them."""

    number: int
    home: Path
    bucket: str
    gcs_url: str
    rate: float
    full_disks: bool
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.disk = self.home / "disk"
        self.disk.mkdir(parents=True)
        self.mounted = self.full_disks and mounted(self.disk, DISK_MB)
        self.spool = Spool(self.disk / "spool")
        aside = self.disk / "aside"
        aside.mkdir()
        self.producer = Producer(self.spool.experiment / DATATYPE, aside, self.number, self.rate)
        self._random = random.Random(self.number)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"killer-{self.number}")
        self._process: subprocess.Popen[bytes] | None = None
        self._log: TextIO = (self.home / "agent.log").open("a")

    def start(self) -> None:
        self.producer.start()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.producer.stop()

    def close(self) -> None:
        self._log.close()
        if self.mounted:
            subprocess.run(["umount", str(self.disk)], check=False)

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _start_agent(self, *more: str) -> subprocess.Popen[bytes]:
        native = self._random.choice(("auto", "off"))  # either goes on where the other one died
        argv = arguments(self.spool, self.bucket, *FLAGS, "-native", native, *more)
        return subprocess.Popen(
            [sys.executable, "-m", "jostler", *argv],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment(self.gcs_url),
        )

    def _run(self) -> None:
        deeds = ((self._kill, 60), (self._terminate, 12), (self._freeze, 8), (self._fill_disk, 20))
        names, weights = zip(*deeds, strict=True)
        process = self._start_agent()
        while not self._stop.wait(self._random.uniform(0.3, 6.0)):
            if process.poll() is not None:  # it must only end when it is told to
                self._count(f"ended by itself with {process.returncode}")
            else:
                (deed,) = self._random.choices(names, weights)
                deed(process)
            if process.poll() is not None:
                process = self._start_agent()
        process.kill()
        process.wait()

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait()
        self._count("SIGKILL")

    def _terminate(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        if self._random.random() < 0.3:
            process.terminate()
        process.wait(60)
        self._count("SIGTERM")

    def _freeze(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._random.uniform(0.1, 2.0))
        process.send_signal(signal.SIGCONT)
        self._count("SIGSTOP")

    def _fill_disk(self, process: subprocess.Popen[bytes]) -> None:
        """Fill the disk to its last byte, perhaps kill the agent then, and free it."""
        if not self.mounted:
            return
        ballast = self.disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"\0" * 65536):
                pass
        with suppress(OSError), ballast.open("ab", buffering=0) as file:
            while file.write(b"\0" * 512):
                pass
        self._stop.wait(self._random.uniform(0.5, 4.0))
        if self._random.random() < 0.5:
            process.kill()
            process.wait()
            self._count("SIGKILL on a full disk")
        ballast.unlink()
        self._count("full disk")

    def drain(self) -> list[str]:
        """Let the agent finish in peace; return what is left that should not be."""
        for _ in range(DRAIN_TRIES):
            process = self._start_agent("-once", "-missed-age", "0s", "-flush-timeout", "60s")
            process.wait(600)
            left = [*self.spool.left(), *self.spool.journal()]
            if process.returncode == 0 and not left:
                return []
        return [f"left behind: {name}" for name in left[:SHOWN]] or [f"exit {process.returncode}"]

    def check(self) -> Verdict:
        if self.gcs_url:
            os.environ["STORAGE_EMULATOR_HOST"] = self.gcs_url
        storage = open_storage(self.bucket)
        names = [info.name for info in storage.list("autoload/")]
        objects = {n: (lambda n=n: storage.read(n).data) for n in names if n.endswith(".gz")}
        return check(objects, self.producer.written)


class Weather:
    """Makes a proxy fail now and then, in every way it can."""

    def __init__(self, proxy: FaultyServer, seed: int) -> None:
        self._proxy = proxy
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weather")
        self.faults = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._proxy.faults.clear()

    def _run(self) -> None:
        while not self._stop.wait(self._random.uniform(0.2, 3.0)):
            status = self._random.choice((0, 0, 408, 429, 500, 503, 503, 403))
            after = self._random.random() < 0.5
            delay_s = self._random.choice((0.0, 0.0, 0.5))
            times = self._random.choice((1, 2, 5, 30))
            self._proxy.faults[:] = [
                Fault(status=status, after=after, times=times, delay_s=delay_s)
            ]
            self._proxy.seen.clear()
            self._proxy.bodies.clear()
            self.faults += 1


def buckets(stack: ExitStack, home: Path, weathers: list[Weather]) -> Iterator[tuple[str, str]]:
    """Yield bucket and server URL for one agent after the other."""
    gcs = stack.enter_context(GcsServer())
    proxy = FaultyServer(gcs.port)
    stack.enter_context(proxy)
    behind = stack.enter_context(GcsServer(public_url=proxy.url))
    proxy.upstream_port = behind.port
    weathers.append(Weather(proxy, 1))
    number = 0
    while True:
        yield (home / f"bucket{number}").as_uri(), ""
        gcs.create_bucket(f"torture{number}")
        yield f"torture{number}", gcs.url
        behind.create_bucket(f"torture{number}")
        yield f"torture{number}", proxy.url
        number += 1


def main() -> int:
    """Run the campaign; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--rate", type=float, default=60.0, help="files a second and agent")
    parser.add_argument("--no-full-disks", action="store_true", help="mount nothing")
    options = parser.parse_args()
    weathers: list[Weather] = []
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="torture-")))
        places = buckets(stack, home, weathers)
        victims = [
            Victim(n, home / f"agent{n}", *next(places), options.rate, not options.no_full_disks)
            for n in range(options.agents)
        ]
        for victim in victims:
            stack.callback(victim.close)
        print(f"{options.agents} agents for {options.minutes:g} minutes below {home}", flush=True)
        for actor in (*weathers, *victims):
            actor.start()
        time.sleep(options.minutes * 60)
        for actor in (*victims, *weathers):
            actor.stop()
        problems = [f"agent {v.number}: {text}" for v in victims for text in settle(v)]
        print(f"faults of the proxy: {sum(weather.faults for weather in weathers)}")
        for problem in problems[:SHOWN]:
            print(f"PROBLEM {problem}")
        if problems:
            keep(home)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def settle(victim: Victim) -> list[str]:
    """Drain and check one agent, print its counts, return what is wrong."""
    problems = victim.drain()
    verdict = victim.check()
    told = {"bucket": "directory" if victim.bucket.startswith("file") else victim.gcs_url}
    told |= {name: str(count) for name, count in sorted(victim.counts.items())}
    print(f"agent {victim.number}: {json.dumps(told)}")
    print(f"  producer: {json.dumps(dict(sorted(victim.producer.counts.items())))}")
    print(
        f"  contents {verdict.contents}, of these to be stored once {verdict.must}; in the bucket "
        f"{verdict.bundles} bundles, {verdict.rows} rows, {verdict.rejected} rejected; "
        f"{len(verdict.problems)} problems",
        flush=True,
    )
    ended = [what for what in victim.counts if what.startswith("ended by itself")]
    return problems + verdict.problems + ended


def keep(home: Path) -> None:
    """Keep the logs of a campaign that found something."""
    kept = Path(tempfile.mkdtemp(prefix="torture-logs-"))
    for log in home.glob("agent*/agent.log"):
        (kept / f"{log.parent.name}.log").write_bytes(log.read_bytes())
    print(f"logs: {kept}")


if __name__ == "__main__":
    sys.exit(main())
