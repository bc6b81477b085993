"""A model of uploaders and compactors that share a bucket, die anywhere, and come again.

Each actor runs in a thread, and exactly one of them at a time: before each request to the bucket it
waits for its turn, which a seeded random number gives it, or its death.  After each removal it is
asked whether every row that an uploader was promised is in a whole bundle, one with its index.

Where repeats are left out, the files are those of collectors of one feed, and some compactors leave
out its repeats while others do not.  Then an earlier row with the same body may be there instead;
and if nobody stored anything meanwhile, each change of the feed is.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from jostler.archive.audit.remake import index_of
from jostler.archive.compact import compact
from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_merge import holds
from jostler.archive.compact_plan import Group, groups
from jostler.archive.compact_repeats import WholeDay, compact_day
from jostler.archive.compact_rows import InputError
from jostler.archive.repeats import collapse_repeats, repeated, timed
from jostler.format.names import BundleName, Kind
from tests.support.bundles import CREATED, DAY, PLACE, bundle
from tests.support.memory_bucket import Died, MemoryBucket, Stepped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jostler.archive.keeping import Made
    from jostler.archive.repeats import Identity, Timed

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


@cache
def _collected(number: int) -> tuple[Made, Made]:
    """Return one of eight bundles of a feed's collectors: two files, of six times and two bodies.

    The two bodies change places at random times, and nodes see them at times that interleave.
    """
    chance = random.Random(number)
    files = [
        (f"bus_20260102T00000{second}.000Z_{letter * 12}.json", b'{"v":"%b"}' % letter.encode())
        for second, letter in zip(
            chance.sample(range(6), 2), chance.choices("ab", k=2), strict=True
        )
    ]
    return bundle(files, node=f"n{number % 2}", number=number)


def changes(rows: Iterable[Identity]) -> list[tuple[str, str]]:
    """Return time and body of each change of the feed."""
    said = sorted({(says.time, says.body) for row in rows if (says := timed(row[1]))})
    return list(collapse_repeats(said, lambda _: 0, lambda one: one[1]))


@dataclass
class Model:
    """One run.

    Attributes:
        random: decides everything.
        collapses: whether the files are a feed's, and its repeats are left out.
        bucket: what is shared.
        promised: the rows of which an uploader was told that data and index are durable.
        begun: the numbers of bundles whose uploader died: it comes again.
        found: the rows in whole bundles when that was last looked at.
        calm: the changes of a feed of which nothing was stored while compactors worked.
    """

    random: random.Random
    collapses: bool = False
    bucket: MemoryBucket = field(default_factory=MemoryBucket)
    promised: set[Identity] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    found: set[Identity] = field(default_factory=set)
    calm: list[tuple[str, str]] | None = None

    def __post_init__(self) -> None:
        self.bucket.removed = lambda name: self.check(f"{name} was removed")

    def check(self, what: str) -> None:
        """See that each promised row is in a bundle that has both of its objects."""
        objects = self.bucket.objects
        found: set[Identity] = set()
        self.found = found
        for name in objects:
            if f"/{DATATYPE}/" in name:
                index = name.replace(f"/{DATATYPE}/", "/index1/").replace("-data.", "-index1.")
                if index in objects:
                    found |= held(name, objects[name][0], objects[index][0])
        lost = self.promised - found
        if self.collapses:
            told = [timed(row[1]) for row in found]
            lost = {row for row in lost if not any(_before(one, timed(row[1])) for one in told)}
        if lost:
            raise LostError(f"{what}: {len(lost)} rows are lost: {sorted(lost)[:3]}")

    def upload(self, storage: Stepped, number: int) -> None:
        """Store a bundle, as an agent does; a second time, after a death, the same one."""
        self.begun.add(number)
        data, index = _collected(number) if self.collapses else _bundle(number)
        storage.put_new(data.name, data.data, data.metadata)
        storage.put_new(index.name, index.data, index.metadata)
        self.promised |= held(data.name, data.data, index.data)
        self.begun.discard(number)

    def compact(self, storage: Stepped) -> int:
        """Compact the day once; return how many merges were carried out."""
        done = 0
        if self.collapses and self.random.random() < 0.7:
            return self.collapse(storage)
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

    def collapse(self, storage: Stepped) -> int:
        """Compact the day once, without repeats; return how many merges were carried out."""
        done = 0
        listed = days(storage, PLACE, DATATYPE, FIRST, LAST, least=1)  # type: ignore[arg-type]
        for _day, members, _others in listed:
            day = WholeDay(
                place=PLACE,
                datatype=DATATYPE,
                day=DAY,
                schema="",
                members=tuple(members),
                small_bytes=SMALL,
            )
            found = compact_day(
                storage,  # type: ignore[arg-type] # it passes all requests on
                day,
                target_bytes=TARGET,
                version="jostler@2",
                threads=1,
            )
            done += len(found.done)
        return done

    def run(self, actors: int, deaths: float, *, uploads: bool = True) -> None:
        """Let actors work side by side until all have ended or died."""
        scheduler = Scheduler(self.random, deaths)
        for _ in range(actors):
            if uploads and self.random.random() < 0.5:
                bundles = [self.random.randrange(8) for _ in range(self.random.randint(1, 2))]
                scheduler.add(
                    lambda stepped, bundles=bundles: [self.upload(stepped, n) for n in bundles],
                    self.bucket,
                )
            else:
                scheduler.add(self.compact, self.bucket)
        scheduler.run()

    def audit(self) -> int:
        """Make the indexes of data without any, as `jostler audit -fix` does; return their number.

        A compactor that left out repeats, and was killed between the two removals of an input, may
        leave a row that is no repeat any more: another one was stored meanwhile that lies between.
        """
        made = 0
        for name in [BundleName.parse(one) for one in self.bucket.objects if DATATYPE in one]:
            index = replace(name, kind=Kind.INDEX)
            if name.kind is Kind.DATA and str(index) not in self.bucket.objects:
                data = self.bucket.objects[str(name)][0]
                url = self.bucket.url
                one = index_of(name, index, url, data, known={}, added=CREATED, fields=None)
                self.bucket.put_new(one.name, one.data, one.metadata)
                made += 1
        return made

    def quiet(self) -> list[str]:
        """Let what died come again, until nothing is left to do; return the data objects then."""
        calm = Stepped(self.bucket, lambda _what: None)
        for number in sorted(self.begun):
            self.upload(calm, number)
        for _ in range(5):
            done = self.collapse(calm) if self.collapses else self.compact(calm)
            if not done and not self.audit():
                break
        self.check("at the end")
        if self.collapses and sorted(self.found) != sorted(self.found - repeated(self.found)):
            raise LostError(f"a quiet end has repeats: {sorted(self.found)}")
        return [name for name in self.bucket.objects if f"/{DATATYPE}/" in name]


class Scheduler:
    """Lets one actor go on at a time; each hands the turn to the next itself.

    Args:
        chance: decides who is next, and who dies.
        deaths: how probable a death is before each request.
        stays: how probable it is that the same actor goes on, besides: so others wait for long.
    """

    def __init__(self, chance: random.Random, deaths: float, stays: float = 0.0) -> None:
        self._random = chance
        self._deaths = deaths
        self._stays = stays
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
        following = actor
        if not self._stays or self._random.random() >= self._stays:
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
        self, work: Callable[[Stepped], object], bucket: MemoryBucket, scheduler: Scheduler
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


def _before(one: Timed | None, row: Timed | None) -> bool:
    """Say whether a row has the body of a later one."""
    return bool(one and row and one.body == row.body and one.time <= row.time)


def one_run(seed: int, *, collapses: bool = False) -> Model:
    """Run one model to its quiet end.

    Raises:
        LostError: a row is lost.
    """
    chance = random.Random(seed)
    model = Model(chance, collapses)
    calm = Stepped(model.bucket, lambda _what: None)
    for number in chance.sample(range(8), chance.randint(1, 4)):
        model.upload(calm, number)
    uploads = not collapses or chance.random() < 0.5
    for _ in range(chance.randint(1, 2)):
        deaths = chance.choice([0.0, 0.03, 0.1])
        model.run(actors=chance.randint(2, 4), deaths=deaths, uploads=uploads)
    if not uploads:
        model.calm = changes(model.promised)
    return model


def run_many(seeds: range, *, collapses: bool = False) -> dict[str, int]:
    """Run many; return counts of what they came to.

    Raises:
        LostError: a row is lost.
        AssertionError: a quiet end has other than one object.
    """
    counts: dict[str, int] = defaultdict(int)
    for seed in seeds:
        try:
            model = one_run(seed, collapses=collapses)
            left = model.quiet()
            counts["collapsed"] += len(model.promised - model.found)
            if model.calm is not None and changes(model.found) != model.calm:
                raise LostError(f"the feed was {model.calm}, and is {changes(model.found)}")  # noqa: TRY301
        except LostError as exc:
            raise LostError(f"seed {seed}: {exc}") from exc
        counts["runs"] += 1
        counts["rows"] += len(model.promised)
        if len(left) != 1:
            raise AssertionError(f"seed {seed}: a quiet end has {len(left)} objects: {left}")
    return counts
