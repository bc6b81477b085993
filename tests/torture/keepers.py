"""Kill keepers that work at the same time in one directory bucket, and run the model of them.

usage: python -m tests.torture.keepers [--kills 1000] [--runs 20000] [--seed 1]

One to three at once of: an agent that sends a bundle (with the agent's own commit) and sends it
again after a death, `jostler audit -fix`, `jostler-load compact`, and `jostler delete` of another
day; each is killed (SIGKILL) before its n-th change of the disk or after a random time.  After each
group of deaths every row that was in a whole bundle of the kept day, and what its agent's index
said of it, must be in one.  After some rounds agents send the rest, and each keeper runs to its
end: then an audit finds nothing, the kept day has one object, the other none, quarantine no data.

Then the model of tests/support/keepers.py runs RUNS times.  Exit status 0: nothing was lost.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.archive.audit.audit import audit
from jostler.archive.audit.mend import QUARANTINE
from jostler.archive.audit.scope import Scope
from jostler.cli.main import main as jostler
from jostler.format.names import INDEX, BundleName
from jostler.schema import INDEX1_FIELDS, table_schema, to_json
from jostler.storage import open_storage
from loader.cli.main import main as load_main
from tests.support.bundles import PLACE
from tests.support.compactors import DATATYPE, LostError
from tests.support.keepers import FOLDER, LIMITS, SCHEMA, STAGING, run_many
from tests.support.senders import NUMBERS, OTHER, Said, Sender, index_of, said_by
from tests.torture.killing import forked

if TYPE_CHECKING:
    from collections.abc import Callable


STEPS_MOST = 12
SECONDS_MOST = 0.5
ROUNDS_OF_ONE = 6


class World:
    """A directory bucket, its agents' bundles, and what must be in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.storage = open_storage((home / "bucket").as_uri())
        self.storage.put_new(PLACE.table_schema(DATATYPE), SCHEMA, {})
        self.storage.put_new(PLACE.table_schema(INDEX), to_json(table_schema(INDEX1_FIELDS)), {})
        self.senders = {number: Sender(number) for number in NUMBERS}
        self.kept: set[Said] = set()

    def marker(self, number: int) -> Path:
        """Return the file by which an agent says that its bundle is stored."""
        return self.home / f"done-{number}"

    def send(self, number: int) -> None:
        """Send a bundle; its end is one more change of the disk."""
        waiting = self.home / f"waiting-{number}"
        self.senders[number].send(self.storage, marking=waiting.touch)
        if self.senders[number].done:
            waiting.rename(self.marker(number))

    def names(self) -> list[str]:
        return [info.name for info in self.storage.list(FOLDER)]

    def check(self, what: str) -> None:
        """See that what was whole is whole; what is whole now must be from now on.

        Raises:
            LostError: something is lost.
        """
        found: set[Said] = set()
        there = {info.name for info in self.storage.list(f"{PLACE.root}/")}
        for name in self.names():
            if index_of(name) in there:
                data, index = (self.storage.read(one).data for one in (name, index_of(name)))
                found |= said_by(name, data, index)
        for number, sender in self.senders.items():
            sender.done = self.marker(number).exists()
        due = {row for one in self.senders.values() if not one.done for row in one.rows()}
        done = {row for one in self.senders.values() if one.done for row in one.rows()}
        self.kept |= {one for one in found if one[0] not in due} | {(row, False) for row in done}
        self.kept = {one for one in self.kept if not one[0][1].startswith(OTHER.path)}
        if lost := self.kept - found:
            raise LostError(f"{what}: {len(lost)} are lost: {sorted(lost)[:3]}")

    def quiet(self) -> None:
        """Let each agent that has begun end, then each keeper once; see that all is well.

        Raises:
            LostError: it is not.
        """
        for number, sender in self.senders.items():
            if sender.begun:
                self.ended(lambda number=number: self._sent(number))  # type: ignore[misc]
        for keeper in (self.mends, self.compacts, self.deletes):
            self.ended(keeper)
        self.check("in peace")
        days = Counter(BundleName.parse(name).day for name in self.names())
        if OTHER in days or any(count > 1 for count in days.values()):
            raise LostError(f"too many objects are left: {self.names()}")
        if left := [
            p for day in audit(self.storage, [PLACE], Scope(), LIMITS) for p in day.problems
        ]:
            raise LostError(f"an audit finds {left}")
        copies = [info.name for info in self.storage.list(f"{STAGING}{QUARANTINE}{FOLDER}")]
        if copies:  # nothing was damaged
            raise LostError(f"what was good is in quarantine: {copies}")

    def ended(self, work: Callable[[], int]) -> None:
        """Do something in a process of its own, up to its end.

        Raises:
            LostError: it fails.
        """
        _, status = os.waitpid(self.start(work, -1), 0)
        if status:
            raise LostError(f"it ends with {status}:\n{(self.home / 'said').read_text()}")

    def start(self, work: Callable[[], int], steps: int) -> int:
        """Fork a process that is killed before a change of the disk; return its id."""
        return forked(work, self.home / "said", steps=steps, below=self.home)

    # What a process does; each returns its exit status

    def _sent(self, number: int) -> int:
        if not self.marker(number).exists():
            self.send(number)
        return 0 if self.marker(number).exists() else 98

    def mends(self) -> int:
        """Mend, without `orphans`: rows that are in two bundles are left."""
        settled = ["-settled", "0s", "-many", "0"]
        return jostler(["audit", "-fix", *settled, "-bucket", self.storage.url]) & ~1

    def compacts(self) -> int:
        """Compact; a bundle that has no index yet is left."""
        return load_main(["compact", "--bucket", self.storage.url]) & ~1

    def deletes(self) -> int:
        """Delete the other day; what is stored meanwhile is left."""
        days = ["-start", str(OTHER.date), "-end", str(OTHER.date), "-min-age", "0s", "-yes"]
        what = ["-experiment", PLACE.experiment, "-datatype", DATATYPE]
        return jostler(["delete", "-bucket", self.storage.url, *what, *days]) & ~1


def one_round(world: World, chance: random.Random, counts: Counter[str]) -> None:
    """Start some at once, and kill each."""
    waiting = [number for number, one in world.senders.items() if not one.done]
    chance.shuffle(waiting)
    children = []
    for _ in range(chance.randint(1, 3)):
        kind = chance.choice(["send", "mends", "compacts", "deletes"])
        work: Callable[[], int] = getattr(world, kind, world.mends)
        if kind == "send" and waiting:
            number = waiting.pop()
            world.senders[number].begun = True
            work = lambda number=number: world._sent(number)  # type: ignore[misc] # noqa: E731
        steps = chance.randrange(STEPS_MOST) if chance.random() < 0.7 else -1
        children.append((world.start(work, steps), steps, kind))
    by_time = [child for child, steps, _ in children if steps < 0]
    if by_time:
        time.sleep(chance.random() * SECONDS_MOST)
    for child in by_time:
        os.kill(child, signal.SIGKILL)
    for child, _, kind in children:
        _, ended = os.waitpid(child, 0)
        if os.WIFEXITED(ended) and os.WEXITSTATUS(ended):
            raise LostError(f"{kind} ends with {ended}:\n{(world.home / 'said').read_text()}")
        counts["killed" if os.WIFSIGNALED(ended) else "ended before"] += 1
        counts[f"{kind} killed"] += os.WIFSIGNALED(ended)
    world.check(f"after {counts['killed']} kills")


def campaign(home: Path, kills: int, seed: int) -> Counter[str]:
    """Kill until so many were killed; return what happened.

    Raises:
        LostError: something is lost; the bucket is left as it is.
    """
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    while counts["killed"] < kills:
        counts["buckets"] += 1
        world = World(home / str(counts["buckets"]))
        for _ in range(ROUNDS_OF_ONE):
            one_round(world, chance, counts)
        world.quiet()
        counts["kept"] += len(world.kept)
    return counts


def main() -> int:
    """Run all; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    home = tempfile.mkdtemp(prefix="keepers-")
    try:
        print(f"killed beside one another: {dict(campaign(Path(home), given.kills, given.seed))}")
        first = given.seed * 10**6
        print(f"model: {dict(run_many(range(first, first + given.runs)))}")
    except LostError as exc:
        print(f"FAILED, left in {home}: {exc}")
        return 1
    shutil.rmtree(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
