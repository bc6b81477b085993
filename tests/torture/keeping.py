"""Kill keepers of an archive anywhere: nothing is lost, and repeated runs end clean.

usage: python -m tests.torture.keeping [--runs N] [--seed S] [--at-random PART]

Each run damages an archive, then starts `jostler audit -fix=orphans` or `jostler delete -yes` again
and again, each killed by SIGKILL before its n-th change of the disk, or after a random time, until
one comes to its end.  After each kill all rows that were readable and not to be deleted must still
be; at the end the audit finds nothing, and no object of a deleted day is left.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from jostler.archive.audit.audit import audit
from jostler.archive.audit.days import Limits
from jostler.archive.audit.scope import Scope
from jostler.cli.main import main as jostler
from jostler.format.names import BundleName
from jostler.storage import open_storage
from tests.support.kept import DAY, PLACE, KeptArchive, contents, flipped, index_of
from tests.torture.killing import forked

OTHER = DAY.replace(day=3)
CHANGES_MOST = 25
SECONDS_MOST = 0.15
TRIES_MOST = 200
LIMITS = Limits(many=0, today=DAY)


@dataclass
class Counts:
    """What the campaign has done."""

    runs: int = 0
    kills: int = 0
    by_step: int = 0
    ended: dict[str, int] = field(default_factory=dict)


class World:
    """One damaged archive in a directory."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.archive = KeptArchive(open_storage(root.as_uri()))
        self.keep: set[tuple[str, str, bytes]] = set()
        self._rng = rng
        first = 0
        for _ in range(rng.randrange(2, 6)):
            many, day = rng.randrange(1, 9), rng.choice((DAY, OTHER))
            name = self.archive.put(contents(range(first, first + many)), day=day)
            first += many
            self._damage(name)

    def _damage(self, name: BundleName) -> None:
        """Damage one bundle; remember which of its rows must stay."""
        mine = readable(self.archive, str(name))
        match self._rng.randrange(6):
            case 0:
                self.archive.storage.remove(str(index_of(name)))
            case 1:
                self.archive.swap_rows(index_of(name), lambda rows: rows[::-1])
            case 2:  # only the trailer: all rows can be saved
                self.archive.swap(name, lambda data: data[:-3])
            case 3:
                self.archive.swap(name, flipped)
                mine = set()
            case 4:
                self.archive.storage.remove(str(name))
                mine = set()
            case _:
                pass
        self.keep |= mine

    def rows(self) -> set[tuple[str, str, bytes]]:
        """Return the rows that can be read of any object, whole or damaged in its trailer alone."""
        found = set()
        for info in self.archive.storage.list(f"{PLACE.root}/foo1/"):
            found |= readable(self.archive, info.name)
        return found


def readable(archive: KeptArchive, name: str) -> set[tuple[str, str, bytes]]:
    """Return the rows of one object, as far as it inflates."""
    inflate = zlib.decompressobj(31)
    try:
        plain = inflate.decompress(archive.get(name))
    except zlib.error:
        return set()
    node = BundleName.parse(name).node
    rows = set()
    for line in plain.splitlines():
        if line.endswith(b"}}"):
            filename = line[line.index(b'"Filename":"') + 12 : line.index(b'"},"raw":')].decode()
            rows.add((node, filename, line[line.index(b'},"raw":') + 8 : -1]))
    return rows


def die(argv: list[str], home: Path, *, steps: int, seconds: float) -> bool:
    """Run a command in a process of its own; say whether it was killed before its end.

    Args:
        argv: of `jostler`.
        home: of the bucket; what the command prints comes into its file `said`.
        steps: before which change of the disk it is killed; negative: before none.
        seconds: after how long it is killed; 0: never.
    """
    said = home / "said"
    child = forked(lambda: jostler(argv), said, steps=steps, below=home)
    if seconds:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(ended)
    if status not in {0, -signal.SIGKILL}:
        raise AssertionError(f"{argv} ends with {status}:\n{said.read_text()}")
    return status != 0


def run(home: Path, rng: random.Random, counts: Counts, *, at_random: float) -> None:
    """Do one run of the campaign."""
    world = World(home / "bucket", rng)
    bucket = ["-bucket", world.archive.storage.url]
    deletes = rng.random() < 0.3
    if deletes:
        days = ["-start", str(DAY), "-end", str(DAY), "-min-age", "0s", "-yes"]
        argv = ["delete", *bucket, "-experiment", "exp", "-datatype", "foo1", *days]
        day = f"{DAY:%Y/%m/%d}/"
        world.keep = {file for file in world.keep if not file[1].startswith(day)}
    else:
        argv = ["audit", "-fix=orphans", "-settled", "0s", "-many", "0", *bucket]
    for _ in range(TRIES_MOST):
        by_time = rng.random() < at_random
        steps = -1 if by_time else rng.randrange(CHANGES_MOST)
        seconds = rng.random() * SECONDS_MOST if by_time else 0.0
        killed = die(argv, home, steps=steps, seconds=seconds)
        counts.kills += killed
        counts.by_step += killed and not by_time
        if lost := world.keep - world.rows():
            raise AssertionError(f"{len(lost)} rows are lost: {sorted(lost)[:3]}")
        if not killed:
            break
    else:
        raise AssertionError(f"{argv} came never to its end")
    check(world, deletes=deletes)
    counts.runs += 1
    counts.ended[argv[0]] = counts.ended.get(argv[0], 0) + 1


def check(world: World, *, deletes: bool) -> None:
    """Check what a finished run leaves."""
    left = [
        p for day in audit(world.archive.storage, [PLACE], Scope(), LIMITS) for p in day.problems
    ]
    if deletes:
        names = [info.name for info in world.archive.storage.list(f"{PLACE.root}/")]
        gone = [name for name in names if f"/{DAY:%Y/%m/%d}/" in name]
        if gone:
            raise AssertionError(f"not deleted: {gone}")
        return
    days = audit(world.archive.storage, [PLACE], Scope(), LIMITS)
    if left := [problem for day in days for problem in day.problems]:  # rows stored twice, too
        raise AssertionError(f"problems are left: {left}")


def campaign(runs: int, kills: int, seed: int, at_random: float) -> Counts:
    """Do runs until there were so many, and so many kills; what a failed one leaves is kept.

    Raises:
        AssertionError: a run failed; the message has what its command said, and where it left what.
    """
    counts = Counts()
    while counts.runs < runs or counts.kills < kills:
        number = counts.runs
        home = Path(tempfile.mkdtemp(prefix="keeping-"))
        try:
            run(home, random.Random(f"{seed} {number}"), counts, at_random=at_random)
        except AssertionError as exc:
            raise AssertionError(f"seed {seed}, run {number}, left in {home}: {exc}") from exc
        shutil.rmtree(home)
    return counts


def main() -> None:
    """Run the campaign, and print what it did."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-random", type=float, default=0.3, help="part killed by time")
    given = parser.parse_args()
    began = time.monotonic()
    counts = campaign(given.runs, given.kills, given.seed, given.at_random)
    print(
        f"{counts.kills} kills ({counts.by_step} at a step) in {counts.runs} runs {counts.ended}:"
        f" no row is lost, each ends clean; {time.monotonic() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
