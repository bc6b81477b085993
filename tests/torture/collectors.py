"""Torture of `jostler collect`: killed at random, again and again; then its files are read.

usage: python -m tests.torture.collectors --kills 200

Feeds on this machine answer bodies of some bytes to some megabytes, each other than the last.
After each kill every file under a final name must be whole: its name has the hash of its content.
At the end one collector runs undisturbed, and nothing is left but such files.  Exit status 0: so
it was.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.agent import environment
from tests.support.feeds import FeedServer, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.feeds import Asked

FEEDS = 6
BIG_BYTES = 8_000_000
"""As long as one is written straight to its name, a kill in some ten finds it half-written."""
PAD = b"y" * BIG_BYTES
LIFE_S = (0.1, 1.0)
NAME_RE = re.compile(r"f\d_\d{8}T\d{6}\.\d{3}Z_([a-z2-7]{12})\.json")


@dataclass
class Counted:
    """What a campaign did and found."""

    killed: int = 0
    files: int = 0
    largest_bytes: int = 0
    problems: list[str] = field(default_factory=list)


class Forks:
    """Collectors, each forked from a process that has imported everything and has one thread."""

    def __init__(self, argv: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.collectors", "--fork", json.dumps(argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def run(self, life_s: float, number: int = signal.SIGKILL) -> int:
        """Start a collector, send it a signal after so many seconds; return its exit status."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{life_s} {number:d}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process that forks."""
        self._process.communicate(timeout=30)


def fork(argv: list[str]) -> None:
    """Fork a collector for each line of standard input, and write its exit status."""
    from jostler.cli.collect import main  # noqa: PLC0415 - the campaign itself needs none of it
    from jostler.producer.collect import collector  # noqa: F401, PLC0415 - for all its children

    for line in sys.stdin:
        life_s, number = line.split()
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os._exit(main(argv))
        time.sleep(float(life_s))
        os.kill(child, int(number))
        _, ended = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(ended)}\n")
        sys.stdout.flush()


def campaign(home: Path, kills: int, seed: int) -> Counted:
    """Kill so many collectors; return what was found."""
    rng = random.Random(seed)
    numbers, counted = count(), Counted()
    spool = home / "spool"
    with FeedServer(keep=True) as server:
        config = home / "feeds.toml"
        urls = [server.by(f"/{n}", _body(numbers, rng)) for n in range(FEEDS)]
        config.write_text(
            "".join(
                f'[[feed]]\nid = "f{n}"\nurl = "{url}"\nevery = "100ms"\n'
                for n, url in enumerate(urls)
            )
        )
        argv = ["-config", str(config), "-experiment", "e", "-local-data-dir", str(spool)]
        forks = Forks([*argv, "-min-free-disk", "0", "-prometheusx.listen-address", ""])
        for _ in range(kills):
            status = forks.run(rng.uniform(*LIFE_S))
            counted.killed += status == -signal.SIGKILL
            _check(spool, counted)
        if (status := forks.run(1.0, signal.SIGTERM)) != 0:
            counted.problems.append(f"the last collector ended with status {status}")
        _check(spool, counted)
        forks.close()
    counted.problems += [f"left behind: {p}" for p in spool.rglob("*") if _is_rest(p)]
    return counted


def _body(numbers: count[int], rng: random.Random) -> Callable[[Asked], bytes]:
    def answer(_: Asked) -> bytes:
        size = rng.choice([10, 1000, 100_000, BIG_BYTES])
        return reply(b'{"n": %d, "x": "%b"}' % (next(numbers), PAD[:size]))

    return answer


def _check(spool: Path, counted: Counted) -> None:
    """Read the files that are new under their names, and remove them as an agent would."""
    for path in spool.rglob("*.json"):
        content = path.read_bytes()
        counted.files += 1
        counted.largest_bytes = max(counted.largest_bytes, len(content))
        digest = base64.b32encode(hashlib.sha256(content).digest()).decode().lower()
        found = NAME_RE.fullmatch(path.name)
        if not found or found[1] != digest[:12] or not isinstance(json.loads(content), dict):
            counted.problems.append(f"{path} is not whole: {len(content)} bytes")
        path.unlink()


def _is_rest(path: Path) -> bool:
    return path.is_file() or path.name.startswith(".jostler")


def main() -> int:
    """Run the campaign that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--fork", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fork:
        fork(json.loads(given.fork))
        return 0
    with tempfile.TemporaryDirectory() as home:
        counted = campaign(Path(home), given.kills, given.seed)
    print(f"seed {given.seed}: {counted.killed} kills, {counted.files} files, each whole:", end=" ")
    print(f"{not counted.problems}; the largest has {counted.largest_bytes:,} bytes")
    for problem in counted.problems[:20]:
        print(problem)
    return 1 if counted.problems or counted.killed != given.kills else 0


if __name__ == "__main__":
    sys.exit(main())
