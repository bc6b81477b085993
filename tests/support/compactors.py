"""A model of uploaders and compactors that share a bucket, die anywhere, and come again.

Each actor runs in a thread, and exactly one of them at a time: before each request to the bucket it
waits for its turn, which a seeded random number gives it, or its death.  After each removal it is
asked whether every row that an uploader was promised is in a whole bundle, one with its index.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from jostler.archive.compact import compact
from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_input import InputError
from jostler.archive.compact_merge import holds
from jostler.archive.compact_plan import Group, groups
from jostler.format.names import BundleName
from tests.support.bundles import DAY, PLACE, bundle
from tests.support.memory_bucket import Died, MemoryBucket, Stepped

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.archive.compact_merge import Identity
    from jostler.archive.keeping import Made

DATATYPE = "foo1"
SMALL, TARGET = 1 << 20, 1 << 28
GROUP = Group(place=PLACE, datatype=DATATYPE, day=DAY, schema="", members=())
_HELD: dict[tuple[str, bytes, bytes], frozenset[Identity]] = {}
"""What a pair of objects holds; equal bytes hold the same, in all runs."""


class LostError(AssertionError):
    """A row that an uploader was promised is in no whole bundle."""


def held(name: str, data: bytes, index: bytes) -> frozenset[Identity]:
    """Return the rows of a whole bundle; none if it is not whole."""
    key = (name, data, index)
    if key not in _HELD:
        try:
            _HELD[key] = frozenset(holds(GROUP, BundleName.parse(name), data, index))
        except InputError:
            _HELD[key] = frozenset()
    return _HELD[key]


@cache
def _bundle(number: int) -> tuple[Made, Made]:
    """Return one of eight bundles: a file with one of two contents, and one that others have."""
    files = [("f.json", b'{"v":%d}' % (number // 2 % 2)), (f"g{number // 4}.json", b"{}")]
    return bundle(files, node=f"n{number % 2}", number=number)


@dataclass
class Model:
    """One run.

    Attributes:
        random: decides everything.
        bucket: what is shared.
        promised: the rows of which an uploader was told that data and index are durable.
        begun: the numbers of bundles whose uploader died: it comes again.
    """

    random: random.Random
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    promised: set[Identity] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bucket.removed = lambda name: self.check(f"{name} was removed")

    def check(self, what: str) -> None:
        """See that each promised row is in a bundle that has both of its objects."""
        objects = self.bucket.objects
        found: set[Identity] = set()
        for name in objects:
            if f"/{DATATYPE}/" in name:
                index = name.replace(f"/{DATATYPE}/", "/index1/").replace("-data.", "-index1.")
                if index in objects:
                    found |= held(name, objects[name][0], objects[index][0])
        if lost := self.promised - found:
            raise LostError(f"{what}: {len(lost)} rows are lost: {sorted(lost)[:3]}")

    def upload(self, storage: Stepped, number: int) -> None:
        """Store a bundle, as an agent does; a second time, after a death, the same one."""
        self.begun.add(number)
        data, index = _bundle(number)
        storage.put_new(data.name, data.data, data.metadata)
        storage.put_new(index.name, index.data, index.metadata)
        self.promised |= held(data.name, data.data, index.data)
        self.begun.discard(number)

    def compact(self, storage: Stepped) -> int:
        """Compact the day once; return how many merges were carried out."""
        done = 0
        for _day, members, _others in days(storage, PLACE, DATATYPE, FIRST, LAST):  # type: ignore[arg-type]
            for group in groups(members, small_bytes=SMALL, target_bytes=TARGET):
                found = compact(
                    storage,  # type: ignore[arg-type] # it passes all requests on
                    group,
                    target_bytes=TARGET,
                    version="jostler@2",
                    threads=1,
                )
                done += len(found.done)
        return done

    def run(self, actors: int, deaths: float) -> None:
        """Let actors work side by side until all have ended or died."""
        scheduler = _Scheduler(self.random, deaths)
        for _ in range(actors):
            if self.random.random() < 0.5:
                bundles = [self.random.randrange(8) for _ in range(self.random.randint(1, 2))]
                scheduler.add(
                    lambda stepped, bundles=bundles: [self.upload(stepped, n) for n in bundles],
                    self.bucket,
                )
            else:
                scheduler.add(self.compact, self.bucket)
        scheduler.run()

    def quiet(self) -> list[str]:
        """Let what died come again, until nothing is left to do; return the data objects then."""
        calm = Stepped(self.bucket, lambda _what: None)
        for number in sorted(self.begun):
            self.upload(calm, number)
        for _ in range(5):
            if not self.compact(calm):
                break
        self.check("at the end")
        return [name for name in self.bucket.objects if f"/{DATATYPE}/" in name]


class _Scheduler:
    """Lets one actor go on at a time; each hands the turn to the next itself."""

    def __init__(self, chance: random.Random, deaths: float) -> None:
        self._random = chance
        self._deaths = deaths
        self._actors: list[_Actor] = []
        self._alive: list[_Actor] = []
        self._all_ended = threading.Semaphore(0)

    def add(self, work: Callable[[Stepped], object], bucket: MemoryBucket) -> None:
        self._actors.append(_Actor(work, bucket, self))

    def run(self) -> None:
        self._alive = list(self._actors)
        self._random.choice(self._alive).turn.release()
        self._all_ended.acquire()
        for actor in self._actors:
            actor.thread.join()
            if isinstance(actor.error, LostError):
                raise actor.error
            if actor.error and not isinstance(actor.error, Died):
                raise AssertionError("an actor has failed") from actor.error

    def step(self, actor: _Actor) -> None:
        """Wait for the actor's next turn, or its death."""
        following = self._random.choice(self._alive)
        if following is not actor:
            following.turn.release()
            actor.turn.acquire()
        if self._random.random() < self._deaths:
            raise Died

    def ended(self, actor: _Actor) -> None:
        """Hand the turn to another actor for good."""
        self._alive.remove(actor)
        if self._alive:
            self._random.choice(self._alive).turn.release()
        else:
            self._all_ended.release()


class _Actor:
    """A thread that makes a request to the bucket each time it is its turn."""

    def __init__(
        self, work: Callable[[Stepped], object], bucket: MemoryBucket, scheduler: _Scheduler
    ) -> None:
        self.turn = threading.Semaphore(0)
        self.error: BaseException | None = None
        self._scheduler = scheduler
        stepped = Stepped(bucket, lambda _what: scheduler.step(self))
        self.thread = threading.Thread(target=self._work, args=(work, stepped), daemon=True)
        self.thread.start()

    def _work(self, work: Callable[[Stepped], object], stepped: Stepped) -> None:
        self.turn.acquire()
        try:
            work(stepped)
        except BaseException as exc:  # noqa: BLE001 - whoever runs the model looks at it
            self.error = exc
        self._scheduler.ended(self)


def one_run(seed: int) -> Model:
    """Run one model to its quiet end.

    Raises:
        LostError: a row is lost.
    """
    chance = random.Random(seed)
    model = Model(chance)
    calm = Stepped(model.bucket, lambda _what: None)
    for number in chance.sample(range(8), chance.randint(1, 4)):
        model.upload(calm, number)
    for _ in range(chance.randint(1, 2)):
        model.run(actors=chance.randint(2, 4), deaths=chance.choice([0.0, 0.03, 0.1]))
    return model


def run_many(seeds: range) -> dict[str, int]:
    """Run many; return counts of what they came to.

    Raises:
        LostError: a row is lost.
        AssertionError: a quiet end has other than one object.
    """
    counts: dict[str, int] = defaultdict(int)
    for seed in seeds:
        try:
            model = one_run(seed)
            left = model.quiet()
        except LostError as exc:
            raise LostError(f"seed {seed}: {exc}") from exc
        counts["runs"] += 1
        counts["rows"] += len(model.promised)
        if len(left) != 1:
            raise AssertionError(f"seed {seed}: a quiet end has {len(left)} objects: {left}")
    return counts
