"""The promise, held against anything that can happen between a file and its row.

Hypothesis writes, rewrites, renames over, deletes and moves files, lets bucket and disk fail, stops
the agent in the middle of any step and starts it again.  Whatever the order: no file is unlinked
that is neither stored nor listed as given up, no content of a path is stored twice or stored and
given up, and when everything works again, all that is on the disk is stored, all that was given up
has its row, and the agent comes to rest.

`HYPOTHESIS_PROFILE=long` looks for longer.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.agent.world import MAX_AGE_S, Killed, World, content_of, number_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAYS = ("foo1/2026/01/02", "foo1/2026/01/03")
# The files of a day come in batches once its bundle is open.
PATHS = [*(f"{DAYS[0]}/{name}.json" for name in "abcd"), f"{DAYS[1]}/a.json"]
paths = st.sampled_from(PATHS)


class Promise(RuleBasedStateMachine):
    """One agent and its world."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.count = 0
        self.away: set[str] = set()
        self.forgiven: set[int] = set()
        self.orphans: set[str] = set()  # without index: a crash lost that they are to have one

    def teardown(self) -> None:
        try:
            self.everything_works_again()
        finally:
            self.world.close()

    @initialize(
        # b is more frequent: a is looked at first, so alone, and only others come in batches.
        undeletable=st.sampled_from(["", "a.json", "b.json", "b.json"]),
        happened=st.sampled_from(["", "stored", "vanished"]),
        beside=st.sampled_from(["", PATHS[0], PATHS[1], PATHS[1], PATHS[2]]),
    )
    def begin(self, undeletable: str, happened: str, beside: str) -> None:
        """Begin with a bundle of four files, of which one may be undeletable.

        It may be stored already, or the files be away meanwhile; then all but one may be rewritten.
        """
        self.world.disk.undeletable = {undeletable} - {""}
        for path in PATHS[:4]:
            self.write(path, rename=False, announced=True, good=True)
        if happened == "stored":
            self.work_a_while(3)
        elif happened == "vanished":
            self.move_away_while_it_is_stored(DAYS[0])
        if beside:
            self.write_all_beside(beside, bad="")

    # Services

    @rule(path=paths, rename=st.booleans(), announced=st.booleans(), good=st.booleans())
    def write(self, path: str, *, rename: bool, announced: bool, good: bool) -> None:
        """Write or rewrite a file; what it held before was its writer's to throw away."""
        if path.rpartition("/")[0] in self.away:
            return
        self.count += 1
        content = content_of(self.count, good=good)
        self.world.write(path, content, rename=rename, announced=announced)

    @rule(path=st.sampled_from(PATHS[:4]), bad=st.sampled_from(["", *PATHS[:4]]))
    def write_all_beside(self, path: str, bad: str) -> None:
        """Write or rewrite the other files of a day, and scan: they come in one batch with it."""
        for other in PATHS[:4]:
            if other != path:
                self.write(other, rename=False, announced=False, good=other != bad)
        self.world.scan()
        self.world.loop.step()

    @rule(path=paths, instead=st.sampled_from(["nothing", "link", "directory"]))
    def remove(self, path: str, instead: str) -> None:
        """Delete a file, or put something else in its place."""
        target = self.world.spool / path
        if target.is_symlink():
            self.world.spool.joinpath(path).rename(self.world.root / "removed")
        elif target.is_dir():
            target.rename(target.with_name(f".removed{self.count}"))
            self.count += 1
        elif target.is_file():
            target.rename(self.world.root / "removed")
            if instead == "link":
                target.symlink_to("/nowhere")
            elif instead == "directory":
                target.mkdir()

    @rule(day=st.sampled_from(DAYS))
    def move_away_or_back(self, day: str) -> None:
        here, there = self.world.spool / day, self.world.root / day.replace("/", "-")
        if day in self.away:
            self.away.discard(day)
            there.rename(here)
        elif here.is_dir():
            self.away.add(day)
            here.rename(there)

    @rule(day=st.sampled_from(DAYS))
    def move_away_while_it_is_stored(self, day: str) -> None:
        if day not in self.away:
            self.seal()
            self.move_away_or_back(day)
            self.work_a_while(2)
            self.move_away_or_back(day)

    @rule()
    def scan(self) -> None:
        self.world.scan()

    # The agent

    @rule(steps=st.integers(0, 6))
    def work(self, steps: int) -> None:
        """Turn the loop, and do some steps of an upload."""
        self.world.loop.step()
        self.world.uploads.carry(steps)

    @rule()
    def read_ahead(self) -> None:
        """Take what is good, as at a start."""
        while self.world.loop.read_ahead():
            pass

    @rule(uploads=st.integers(1, 4))
    def work_a_while(self, uploads: int) -> None:
        """Store what there is, and clean up."""
        self.world.loop.step()
        self.world.loop.seal_all()
        for _ in range(uploads):
            self.world.uploads.carry(20)
            self.world.loop.step()
            self.world.cleaning.work(20)
            self.world.loop.step()

    @rule(beside=st.booleans(), files=st.integers(0, 3))
    def cleans_up_beside_the_loop(self, *, beside: bool, files: int) -> None:
        """As the thread does, at any moment between two rounds."""
        self.world.cleaning.work(files)
        self.world.cleaning.beside = beside

    @rule()
    def seal(self) -> None:
        self.world.loop.step()
        self.world.loop.seal_all()

    @rule(seconds=st.sampled_from([1.0, 100.0, 2000.0]))
    def time_passes(self, seconds: float) -> None:
        """Let what waits come due."""
        self.world.clock.s += seconds
        self.world.loop.step()
        self.world.loop.step()

    @rule(frozen=st.booleans())
    def process_stands_still_at_each_look_at_the_clock(self, *, frozen: bool) -> None:
        self.world.clock.step_s = MAX_AGE_S if frozen else 0.0

    @rule()
    def gives_up_the_oldest(self) -> None:
        """As -disk-lack-action remove-oldest does, at any moment."""
        self.world.give_up()

    @rule(unlinks=st.integers(0, 2))
    def dies_while_it_gives_up(self, unlinks: int) -> None:
        self.world.disk.unlinks_left = unlinks
        try:
            self.world.give_up()
        except Killed:
            self.crash()
        finally:
            self.world.disk.unlinks_left = None

    @rule()
    def crash(self) -> None:
        # What vanished is remembered by the process alone: it may be stored twice after its death.
        stored = self.world.bucket.stored()
        for path, file in self.all_files():
            number = number_in(file.read_bytes())
            if number in stored and not self.world.in_flight.owns(path):
                self.forgiven.add(number)
        # On a full disk one bundle at a time goes without a record, as the journal says.
        for one in self.world.in_flight:
            if str(one.header.name).endswith(self.world.journal.without or "/"):
                self.orphans.add(one.name)
                for entry in one.entries:
                    path = self.world.spool / entry.path
                    if path.is_file() and not path.is_symlink():
                        self.forgiven.add(number_in(path.read_bytes()))
        self.world.clock.s += 1.0  # else the next bundle might have the name of an earlier one
        self.world.start()

    def all_files(self) -> Iterator[tuple[str, Path]]:
        """Yield the files that are in their place, and those of directories moved away."""
        for path in PATHS:
            day, _, name = path.rpartition("/")
            away = self.world.root / day.replace("/", "-") / name
            file = away if day in self.away else self.world.spool / path
            if file.is_file() and not file.is_symlink():
                yield path, file

    # Bucket and disk

    @rule(number=st.integers(0, 5), fault=st.sampled_from(["down", "lost", "index1", "data"]))
    def bucket_fails(self, number: int, fault: str) -> None:
        """Let one of the next requests fail, its reply be lost, or the name be another's."""
        self.world.bucket.faults[self.world.bucket.requests + number] = fault

    @rule(kind=st.sampled_from(["index1", "data"]))
    def another_takes_the_next_name(self, kind: str) -> None:
        """Let the next new object of a kind be there already, with other bytes."""
        self.world.bucket.next_taken = kind

    @rule(number=st.integers(0, 5))
    def disk_is_full(self, number: int) -> None:
        """Let one of the next fsync(2) fail."""
        self.world.disk.failing_syncs.add(self.world.disk.syncs + number)

    @rule(name=st.sampled_from(["a.json", "b.json"]))
    def files_cannot_be_unlinked_or_can_again(self, name: str) -> None:
        self.world.disk.undeletable ^= {name}

    # The promise

    @invariant()
    def nothing_is_unlinked_that_is_not_stored(self) -> None:
        assert not self.world.disk.violations

    @invariant()
    def indexes_say_what_is_stored(self) -> None:
        assert not self.world.bucket.lies

    @invariant()
    def no_content_is_stored_twice(self) -> None:
        twice = {n for n, times in self.world.bucket.stored().items() if times > 1}
        assert twice <= self.forgiven

    @invariant()
    def nothing_is_given_up_that_is_stored(self) -> None:
        given_up = self.world.disk.given_up.keys()
        assert not (given_up and given_up & self.world.bucket.stored().keys())

    @invariant()
    def nothing_happened_that_nobody_foresaw(self) -> None:
        assert not self.world.tally.kept

    def everything_works_again(self) -> None:
        world = self.world
        for day in sorted(self.away):
            self.move_away_or_back(day)
        world.bucket.faults.clear()
        world.bucket.next_taken = ""
        world.disk.failing_syncs.clear()
        world.disk.undeletable.clear()
        world.clock.step_s = 0.0
        # A bundle whose index name another has taken waits for a person; nothing else waits.
        held_up = self.held_up()
        left = {number_in(path.read_bytes()) for path in world.files()}
        self.run_to_the_end()
        assert left - held_up <= set(world.bucket.stored()) | set(world.disk.given_up)
        world.bucket.remove_foreign()
        self.run_to_the_end()

        assert left <= set(world.bucket.stored()) | set(world.disk.given_up)
        assert Counter(world.disk.given_up.values()) <= world.bucket.given_up()
        assert not world.giving_up.unsent
        assert set(world.bucket.without_index()) <= self.orphans
        assert list(world.files()) == []
        assert world.journal.load() == ([], [])
        assert (world.in_flight.files, world.in_flight.held_bytes) == (0, 0)
        assert not world.delivery.unfinished
        self.nothing_is_unlinked_that_is_not_stored()
        self.no_content_is_stored_twice()

    def held_up(self) -> set[int]:
        """Return the files of bundles whose index object is another's, and those of their paths."""
        world = self.world
        for _ in range(20):
            world.loop.step()
            world.uploads.carry(20)
        held_up = set()
        for file in world.files():
            # A path is its bundle's until that is durable, also when its file has changed since.
            one = world.in_flight.owner(str(file.relative_to(world.spool)))
            if one and (
                f"{one.header.bucket}/{one.header.index_name}".removeprefix("gs://bkt/")
                in world.bucket.foreign
            ):
                held_up.add(number_in(file.read_bytes()))
        return held_up

    def run_to_the_end(self) -> None:
        world = self.world
        for _ in range(3):
            world.scan()
            world.run(3)
            world.loop.seal_all()
            world.run(20)


LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
TestPromise = Promise.TestCase
TestPromise.settings = settings(
    max_examples=20_000 if LONG else 100, stateful_step_count=50, deadline=None
)
