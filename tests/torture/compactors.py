"""Torture of compactors: killed at every step, killed at random, several at once.

usage: python -m tests.torture.compactors [--kills 200] [--runs 20000] [--seed 1]

First `jostler-load compact` is killed (SIGKILL) before each rename, link and unlink that it does in
a directory bucket, and run again.  Then, in one bucket, one to three at once are killed at random
while bundles are stored, stored again, or left without their index.  At last the model of
tests/support/compactors.py runs RUNS times, and as often with repeats of feeds left out.  After
each death every row that was stored must be in a whole bundle; after a quiet run there is one
object, and `jostler audit` is clean.
Exit status 0: nothing was lost, nothing was left.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.cli import audit
from jostler.format.names import INDEX
from jostler.schema import INDEX1_FIELDS, fields_from_api, table_schema, to_json
from jostler.storage import open_storage
from loader.cli.main import main as load_main
from tests.support.bundles import PLACE, bundle
from tests.support.compactors import DATATYPE, LostError, held, run_many
from tests.torture.killing import forked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.archive.repeats import Identity

FIELDS = [{"name": "v", "type": "INTEGER"}, {"name": "text", "type": "STRING"}]


class Archive:
    """A directory bucket with one day of bundles, and what must be in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.storage = open_storage(root.as_uri())
        self.wanted: set[Identity] = set()
        put = self.storage.put_new
        put(PLACE.table_schema(DATATYPE), to_json(table_schema(fields_from_api(FIELDS))), {})
        put(PLACE.table_schema(INDEX), to_json(table_schema(INDEX1_FIELDS)), {})

    def store(self, number: int, *, torn: bool = False) -> None:
        """Store a bundle whose files others have, too; a torn one lacks its index."""
        files = [
            (f"m{(number + n) % 40}.json", b'{"v":%d,"text":"%b"}' % (number % 3, b"x" * 50))
            for n in range(5)
        ]
        made = bundle(files, node=f"n{number % 4}", number=number, bucket=self.storage.url)
        for one in made[: 1 if torn else 2]:
            self.storage.put_new(one.name, one.data, one.metadata)
        if not torn:
            self.wanted |= held(made[0].name, made[0].data, made[1].data)

    def bundles(self) -> list[str]:
        return [info.name for info in self.storage.list(f"{PLACE.root}/{DATATYPE}/")]

    def check(self, what: str) -> None:
        """See that each row is in a bundle with an index.

        Raises:
            LostError: one is not.
        """
        found: set[Identity] = set()
        for name in self.bundles():
            index = self.root / name.replace(f"/{DATATYPE}/", "/index1/").replace(
                "-data.", "-index1."
            )
            if index.exists():
                found |= held(name, (self.root / name).read_bytes(), index.read_bytes())
        if lost := self.wanted - found:
            raise LostError(f"{what}: {len(lost)} of {len(self.wanted)} rows are lost")

    def quiet(self, what: str) -> None:
        """Compact in peace, and see that one whole object is left.

        Raises:
            LostError: there is something else.
        """
        while self.run(-1) is None:
            pass
        self.check(what)
        if len(self.bundles()) != 1:
            raise LostError(f"{what}: a quiet end has {len(self.bundles())} objects")
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            status = audit.main(["-bucket", self.storage.url, "-experiment", PLACE.experiment])
        if status:
            raise LostError(f"{what}: audit is not clean: {out.getvalue()}")

    def run(self, steps: int) -> bool | None:
        """Compact in a process of its own, killed before step `steps`; say whether it was killed.

        Returns None if it ended by itself and a bundle was left alone.
        """
        _, ended = os.waitpid(self.start(steps), 0)
        status = os.waitstatus_to_exitcode(ended)
        if status not in {0, 1, -signal.SIGKILL}:
            raise LostError(f"jostler-load compact ended with status {status}")
        return {0: False, 1: None}.get(status, True)

    def start(self, steps: int) -> int:
        """Fork a process that compacts; return its id."""
        argv = ["compact", "--bucket", self.storage.url]
        said = Path(os.devnull)
        return forked(lambda: load_main(argv), said, steps=steps, below=self.root)


def at_every_step(home: Path) -> int:
    """Kill before each step of a run, and complete it; return how many steps there were."""
    for steps in _count():
        archive = Archive(home / f"steps-{steps}")
        for number in (1, 5, 9, 13, 2):  # 1, 5, ... are of one node
            archive.store(number)
        killed = archive.run(steps)
        archive.check(f"killed before step {steps}")
        archive.quiet(f"run again after step {steps}")
        if not killed:
            return steps
    raise AssertionError


def _count() -> Iterator[int]:
    yield from range(10_000)


def at_random(home: Path, kills: int, seed: int) -> Counter[str]:
    """Kill compactors at random until so many were killed; return what happened."""
    chance = random.Random(seed)
    archive = Archive(home / "random")
    happened: Counter[str] = Counter()
    torn: set[int] = set()
    number = 0
    while happened["killed"] < kills:
        for _ in range(chance.randint(1, 4)):
            again = chance.random() < 0.3
            chosen = chance.randrange(number) if again and number else number
            number += chosen == number
            if chosen not in torn and chance.random() < 0.1:
                torn.add(chosen)
                archive.store(chosen, torn=True)
                happened["torn"] += 1
            else:
                torn.discard(chosen)
                archive.store(chosen)
                happened["stored again" if again else "stored"] += 1
        children = [archive.start(-1) for _ in range(chance.randint(1, 3))]
        time.sleep(chance.random() * 0.4)
        for child in children:
            os.kill(child, signal.SIGKILL)
        for child in children:
            _, ended = os.waitpid(child, 0)
            happened["killed" if os.WIFSIGNALED(ended) else "ended before"] += 1
        archive.check(f"after {happened['killed']} kills")
        if chance.random() < 0.1:
            for one in sorted(torn):  # its agent comes again
                archive.store(one)
            torn.clear()
            archive.quiet(f"in peace after {happened['killed']} kills")
            happened["in peace"] += 1
    for one in sorted(torn):
        archive.store(one)
    archive.quiet("at the end")
    happened["rows"] = len(archive.wanted)
    return happened


def main() -> int:
    """Run all; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as home:
            print(f"killed before each of {at_every_step(Path(home))} steps: nothing lost")
            print(f"killed at random: {dict(at_random(Path(home), given.kills, given.seed))}")
        seeds = range(given.seed * 10**6, given.seed * 10**6 + given.runs)
        print(f"model: {dict(run_many(seeds))}")
        print(f"model, repeats left out: {dict(run_many(seeds, collapses=True))}")
    except LostError as exc:
        print(f"FAILED: {exc}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
