"""A model of agents, menders, compactors and deletions that share a bucket and die anywhere.

As in `compactors`, one actor at a time makes a request to the bucket, and a seeded random number
decides who is next and who dies.  Agents send by their own commit, and send again after a death.
Between two phases objects are damaged and lost.

After each change of the bucket: a row that was in a whole bundle (data and index agree) is in one,
and so is what its agent's index said of it.  Not so what damage took, a row that an agent is still
to send, and the rows of the day that is deleted.  At the end each agent has sent, and each keeper
has run once more: then an audit finds nothing, a group has one object, and quarantine has what was
damaged and nothing else.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from jostler.archive.audit.audit import found_of, summed
from jostler.archive.audit.days import Keys, Limits, Schemas
from jostler.archive.audit.mend import QUARANTINE, Mender
from jostler.archive.audit.problem import Kind as Wrong
from jostler.archive.audit.remake import known_files
from jostler.archive.audit.scope import Scope, days
from jostler.archive.compact import compact
from jostler.archive.compact_days import FIRST, LAST
from jostler.archive.compact_days import days as compacted_days
from jostler.archive.compact_plan import groups
from jostler.archive.delete import delete_day, old_days
from jostler.errors import ConflictError
from jostler.format.names import INDEX, BundleName
from jostler.schema import fields_from_api, table_schema, to_json
from tests.support.bundles import PLACE
from tests.support.compactors import DATATYPE, SMALL, TARGET, LostError, Scheduler
from tests.support.memory_bucket import Died, MemoryBucket, Stepped, Watched
from tests.support.senders import NUMBERS, OTHER, Said, Sender, index_of, said_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jostler.archive.audit.problem import Problem

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = Limits(many=0, today=NOW.date())
MERGED_BYTES = 800
"""Most merged bundles are larger, and are left alone by a compaction of what is smaller."""
STAGING = "loader-staging/"
FOLDER = f"{PLACE.root}/{DATATYPE}/"
DELETED = Scope(datatypes=frozenset({DATATYPE}), first=OTHER.date, last=OTHER.date)
SCHEMA = to_json(table_schema(fields_from_api([{"name": "v", "type": "INTEGER"}])))


@dataclass
class Model:
    """One run.

    Attributes:
        random: decides everything.
        deletes: whether a day is deleted.
        bucket: what is shared.
        senders: the agents' bundles, by their numbers.
        kept: what must be in a whole bundle.
        hurt: what is in damaged bundles, and can be mended.
        gone: what damage has taken.
        damaged: name and bytes of the data objects that were damaged.
        kinds: of actors; which ones meet is as random as how many.
        busy: the bundles whose agents are at work.
    """

    random: random.Random
    deletes: bool
    bucket: Watched = field(default_factory=Watched)
    senders: dict[int, Sender] = field(default_factory=dict)
    kept: set[Said] = field(default_factory=set)
    hurt: set[Said] = field(default_factory=set)
    gone: set[Said] = field(default_factory=set)
    damaged: list[tuple[str, bytes]] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bucket.put_new(PLACE.table_schema(DATATYPE), SCHEMA, {})
        some = [["send", "mend"], ["compact", "mend"], ["send", "compact"]]
        every = ["send", "compact", "mend", *["delete"] * self.deletes]
        self.kinds = self.random.choice([every, every, *some])
        self.bucket.removed = lambda name: self.look(f"{name} was changed")
        self.senders = {number: Sender(number) for number in NUMBERS}
        self.calm: Any = Stepped(self.bucket, lambda _what: None)

    # What must hold

    def whole(self) -> Iterator[tuple[str, frozenset[Said]]]:
        """Yield the whole bundles, each with what it says."""
        objects = self.bucket.objects
        for name in self.data():
            index = objects.get(index_of(name))
            if index and (said := said_by(name, objects[name][0], index[0])):
                yield name, said

    def found(self) -> set[Said]:
        """Return what whole bundles say of the rows that count."""
        return {one for _, said in self.whole() for one in said if self._counts(one)}

    def _counts(self, said: Said) -> bool:
        return not (self.deletes and said[0][1].startswith(OTHER.path))

    def data(self) -> list[str]:
        """Return the names of the data objects."""
        return [name for name in self.bucket.objects if name.startswith(FOLDER)]

    def look(self, what: str) -> set[Said]:
        """See that all is there; return what is.

        Raises:
            LostError: something is not.
        """
        found = self.found()
        due = {row for one in self.senders.values() if not one.done for row in one.rows()}
        self.kept |= {one for one in found if one[0] not in due}
        self.hurt -= found
        self.gone -= found
        if lost := self.kept - found:
            raise LostError(f"{what}: {len(lost)} are lost: {sorted(lost)[:3]}")
        rows = {row for row, is_fact in self.hurt if not is_fact}
        if rows and (lost_rows := {row[1] for row in rows} - self._inflatable()):
            raise LostError(f"{what}: nobody can mend {sorted(lost_rows)}")
        return found

    def _inflatable(self) -> set[str]:
        """Return the Filenames that can be read of any data object, whole or not."""
        found = set()
        for name in self.data():
            text = _inflated(self.bucket.objects[name][0])
            rest = text.split(b'"Filename":"')[1:]
            found |= {one.partition(b'"')[0].decode() for one in rest}
        return found

    # Damage

    def damage(self) -> None:
        """Damage a whole bundle, or lose one of its objects."""
        name = self.random.choice(sorted(name for name, _ in self.whole()))
        mine = {one for one in dict(self.whole())[name] if self._counts(one)}
        index, objects = index_of(name), self.bucket.objects
        data = objects[name][0]
        match self.random.randrange(5):
            case 0:
                del objects[index]
                self._take(mine, {one for one in mine if one[1]})
            case 1:
                packed = zlib.decompress(objects[index][0], 31).splitlines(keepends=True)
                self._rot(index, zlib.compress(b"".join(packed[::-1]), wbits=31))
                if len(packed) > 1:
                    self._take(mine, set())
            case 2:
                self._rot(name, data[:-3])
                self._take(mine, set())
            case 3:
                file = self.random.choice(
                    known_files(BundleName.parse(index), "", objects[index][0])
                )
                assert file.offset
                assert file.length
                at = file.offset + file.length // 2
                self._rot(name, data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
                files = known_files(BundleName.parse(index), "", objects[index][0])
                hit = {one.filename for one in files if one.offset == file.offset}
                self._take(mine, {one for one in mine if one[0][1] in hit})
            case _ if all(one.done or not one.begun for one in self.senders.values()):
                # An agent may store the data again right before a mend removes the lonely index.
                del objects[name]
                self._take(mine, mine)

    def _rot(self, name: str, data: bytes) -> None:
        """Change an object; what the bucket tells of it may be what it told before."""
        _, version, told = self.bucket.objects[name]
        MemoryBucket.replace(self.bucket, name, data, version, told)
        if self.random.random() < 0.5:
            self.bucket.objects[name][2]["upload-id"] = told["upload-id"]
        if f"/{DATATYPE}/" in name:
            self.damaged.append((name, data))

    def _take(self, mine: set[Said], taken: set[Said]) -> None:
        """Take what a damaged bundle said from what must be whole, as far as no other says it."""
        found = self.found()
        self.gone |= taken - found
        self.hurt |= mine - taken - found
        self.kept -= mine - found

    # The actors

    def send(self, storage: Any, sender: Sender) -> None:  # noqa: ANN401
        """Send a bundle; its rows must be whole from then on."""
        # Before the journal is written, the process may die, too: any request stands for that.
        sender.send(storage, marking=lambda: storage.upload_id("journal"))
        if sender.done:
            rows = {(row, False) for row in sender.rows()} - self.gone - self.hurt
            self.kept |= {one for one in rows if self._counts(one)}
            self.look(f"bundle {sender.number} was stored")

    def compact(self, storage: Any, small: int = SMALL) -> None:  # noqa: ANN401
        """Compact all days once."""
        for _day, members, _others in compacted_days(storage, PLACE, DATATYPE, FIRST, LAST):
            for group in groups(members, small_bytes=small, target_bytes=TARGET):
                compact(storage, group, target_bytes=TARGET, version="jostler@2", threads=1)

    def audited(self, storage: Any, mender: Mender | None = None) -> list[Problem]:  # noqa: ANN401
        """Audit all days, and mend what is found; return the problems that are left."""
        left = []
        for listed in days(storage, PLACE, Scope()):
            results = (found_of(storage, one) for one in listed.bundles)
            day = summed(listed, results, Keys(), LIMITS, Schemas(storage))
            if mender:
                left += [end.problem for end in mender.mend(day) if not end.done]
            else:
                left += day.problems
        return left

    def mend(self, storage: Any, *, orphans: bool, settled: timedelta) -> list[Problem]:  # noqa: ANN401
        """Audit and mend all days once; return the problems that are left."""
        mender = Mender(
            storage=storage,
            staging=storage,
            prefix=STAGING,
            now=NOW,
            orphans=orphans,
            settled=settled,
            fields={},
        )
        return self.audited(storage, mender)

    def delete(self, storage: Any) -> None:  # noqa: ANN401
        """Delete the other day once; a bundle that is stored meanwhile is left."""
        for day in old_days(storage, [PLACE], DELETED, min_age=timedelta(0), now=NOW):
            with suppress(ConflictError):
                delete_day(storage, day)

    def actor(self) -> Callable[[Stepped], object]:
        """Return what an actor does."""
        match self.random.choice(self.kinds):
            case "send":
                waiting = [one for one in self.senders.values() if not one.done]
                waiting.sort(key=lambda one: not one.begun)
                if waiting:
                    return partial(self._send, sender=self.random.choice(waiting[:3]))
                return self.compact
            case "compact":
                return partial(self.compact, small=self.random.choice([SMALL, MERGED_BYTES]))
            case "delete":
                return self.delete
        settled = timedelta(days=self.random.choice([0, 9999]))
        return partial(self.mend, orphans=self.random.random() < 0.5, settled=settled)

    def _send(self, storage: Stepped, sender: Sender) -> None:
        """Send, unless another actor of this run is the agent: a spool has one at a time."""
        if sender.number not in self.busy:
            self.busy.add(sender.number)
            self.send(storage, sender)

    def run(self, actors: int, deaths: float, stays: float) -> None:
        """Let actors work side by side until all have ended or died."""
        self.busy.clear()
        scheduler = Scheduler(self.random, deaths, stays)
        for _ in range(actors):
            scheduler.add(self.actor(), self.bucket)
        scheduler.run()

    # The end

    def quiet(self) -> None:
        """Let agents that died send again, then each keeper run once; see that all is well.

        Raises:
            LostError: it is not.
        """
        begun = [one for one in self.senders.values() if one.begun and not one.done]
        for sender in begun:
            self.send(self.calm, sender)
        if self.deletes:
            self.delete(self.calm)
        # Twice: an index without data whose rows are in a bundle that is mended by the first run.
        self.mend(self.calm, orphans=False, settled=timedelta(0))
        left = self.mend(self.calm, orphans=False, settled=timedelta(0))
        if wrong := [
            one for one in left if not self._is_loss(one) and one.kind is not Wrong.REPEATED
        ]:
            raise LostError(f"problems are left: {wrong}")
        for sender in begun:  # an index that contradicts its data has held it up
            self.send(self.calm, sender)
            if not sender.done:
                raise LostError(f"bundle {sender.number} cannot be sent: {sender.halt}")
        self.compact(self.calm)
        if self.deletes:
            self.delete(self.calm)
        left = self.audited(self.calm)
        if wrong := [one for one in left if not self._is_loss(one)]:
            raise LostError(f"an audit finds {wrong}")
        self.mend(self.calm, orphans=True, settled=timedelta(0))
        if left := self.audited(self.calm):
            raise LostError(f"an audit finds {left} after -fix=orphans")
        self._end()

    def _is_loss(self, problem: Problem) -> bool:
        """Say whether a problem is an index with a row that was lost: nobody can mend that."""
        if problem.kind is not Wrong.NO_DATA:
            return False
        index = self.bucket.objects[problem.object][0]
        files = known_files(BundleName.parse(problem.object), self.bucket.url, index)
        rows = {(file.node, file.filename, bytes.fromhex(file.hash)) for file in files}
        return not rows <= {row for _, said in self.whole() for row, _ in said}

    def _end(self) -> None:
        """See that what is left is what should be.

        Raises:
            LostError: it is not.
        """
        found = self.look("at the end")
        if self.hurt:
            raise LostError(f"not mended: {sorted(self.hurt)}")
        counts = Counter(BundleName.parse(name).day for name in self.data())
        if (self.deletes and OTHER in counts) or any(count > 1 for count in counts.values()):
            raise LostError(f"too many objects are left: {self.data()}")
        self._check_quarantine({row for row, _ in found})

    def _check_quarantine(self, found: set[tuple[str, str, bytes]]) -> None:
        objects, quarantine = self.bucket.objects, f"{STAGING}{QUARANTINE}"
        there = [name for name in objects if name.startswith(quarantine)]
        copies = {objects[name][0] for name in there}
        for name, data in self.damaged:
            is_there = name in objects and objects[name][0] == data
            if not (is_there or data in copies or (self.deletes and f"/{OTHER.path}/" in name)):
                raise LostError(f"{name} was damaged, and is removed without a copy")
        for name in there:
            if f"/{INDEX}/" not in name and objects[name][0] not in {
                data for _, data in self.damaged
            }:
                raise LostError(f"{name} was not damaged")


def _inflated(data: bytes) -> bytes:
    inflate, found = zlib.decompressobj(31), b""
    with suppress(zlib.error):
        for at in range(len(data)):
            found += inflate.decompress(data[at : at + 1])
    return found


def died() -> None:
    raise Died


def one_run(seed: int) -> Model:
    """Run one model up to its quiet end.

    Raises:
        LostError: something is lost.
    """
    chance = random.Random(seed)
    model = Model(chance, deletes=chance.random() < 0.4)
    for number in chance.sample(NUMBERS, chance.randint(1, 4)):
        sender = model.senders[number]
        if chance.random() < 0.3:  # it dies before its journal says that all is stored
            with suppress(Died):
                sender.send(model.calm, marking=died)
        else:
            model.send(model.calm, sender)
    for _ in range(chance.randint(1, 3)):
        for _ in range(chance.choice([0, 0, 1, 1, 2])):
            if any(True for _ in model.whole()):
                model.damage()
        deaths, stays = chance.choice([0.0, 0.02, 0.1]), chance.choice([0.0, 0.7, 0.95])
        model.run(actors=chance.randint(2, 4), deaths=deaths, stays=stays)
    return model


def run_many(seeds: range) -> Counter[str]:
    """Run many; return counts of what they came to.

    Raises:
        LostError: something is lost, or not mended.
    """
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            model = one_run(seed)
            model.quiet()
        except LostError as exc:
            raise LostError(f"seed {seed}: {exc}") from exc
        counts["runs"] += 1
        counts["kept"] += len(model.kept)
        counts["damaged"] += len(model.damaged)
        counts["deleted"] += model.deletes
    return counts
