"""Kill `jostler push` and `Spool.put` at random moments; nothing half-written may ever be seen.

usage: python -m tests.torture.pushes [--kills 200] [--seed N]

A child pushes files of rows of known content, over and over, and is killed after a random time.  A
watcher reads each file as soon as it has its final name, as an agent does, and takes it away at
times.  At the end the same rows are pushed once more, without a kill: each must be there, once and
whole, and nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from jostler.bundle.index_fields import IndexFields
from jostler.producer import outbox
from jostler.producer.checking import Checks
from jostler.producer.lines import Line
from jostler.producer.pushing import Pusher, Where

ROWS = 200
LATEST = 1.2
"""When the latest kill comes, as a multiple of the time of a whole push."""


def content(name: str, number: int) -> bytes:
    """Return the row of a file and a number: some are long enough for several writes to a disk."""
    rng = random.Random(f"{name} {number}")
    length = rng.choice((0, 10, 5000, 70_000))
    return b'{"name":"%b","number":%d,"fill":"%b"}' % (name.encode(), number, b"x" * length)


def push(top: Path, name: str) -> None:
    """Push the rows of one file."""
    rows = (Line(n, content(name, n), len(content(name, n))) for n in range(1, ROWS + 1))
    with outbox.Outbox(top) as made:
        where = Where(fields=IndexFields(()))
        Pusher(Checks.of("foo1", None), made, where).rows(rows, name, source=name)


def check(top: Path, *, seen: set[str], take: float = 0.0, rng: random.Random) -> None:
    """Read all files under final names; remove some, as an agent does that has stored them.

    Raises:
        AssertionError: one is not whole.
    """
    for path in top.glob("20*/*/*/*"):
        name, number, _ = path.name.rsplit(".", 2)
        found = path.read_bytes()
        assert found == content(name, int(number)), f"{path}: {len(found)} bytes are not whole"
        seen.add(path.name)
        if rng.random() < take:
            path.unlink()


def _without_syncs() -> None:
    """Let this process wait for no disk: a kill loses nothing of what the kernel has.

    With syncs nearly all of the time, and so nearly all kills, would be spent in them, and none in
    the moves.
    """
    os.fsync = lambda _fd: None
    outbox.can_sync_all = lambda: False  # type: ignore[attr-defined]


def kill_one(top: Path, name: str, after_s: float) -> bool:
    """Push in a child that is killed after a time; return whether it was killed."""
    child = os.fork()
    if not child:
        try:
            _without_syncs()
            push(top, name)
        finally:
            os._exit(0)
    if after_s < math.inf:
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def run(top: Path, kills: int, seed: int) -> int:
    """Kill so many children; return how many died of it.

    Raises:
        AssertionError: a file was half-written, lost, or left behind.
    """
    rng = random.Random(seed)
    killed = 0
    started_s = time.monotonic()
    kill_one(top, "f0", math.inf)
    whole_s = time.monotonic() - started_s
    for turn in range(kills):
        name = f"f{turn // 4}"  # each file is tried four times
        killed += kill_one(top, name, rng.random() * LATEST * whole_s)
        check(top, seen=set(), take=0.1, rng=rng)
    seen: set[str] = set()
    for turn in range(0, kills, 4):
        push(top, f"f{turn // 4}")
    check(top, seen=seen, rng=rng)
    assert len(seen) == ROWS * len(range(0, kills, 4)), f"{len(seen)} files"
    assert list(top.glob(f"{outbox.STAGING}*")) == [], "what the killed had staged is still there"
    return killed


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        killed = run(Path(directory) / "foo1", given.kills, given.seed)
    sys.stdout.write(
        f"{given.kills} pushes, {killed} killed in the middle (seed {given.seed}): all whole\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
