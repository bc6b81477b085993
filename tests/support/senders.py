"""Agents that send small bundles by their own commit, and send again after a death."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from jostler.bundle import Archiver, Entry, FileState, Header, OpenBundle
from jostler.bundle.commit import Commit
from jostler.bundle.job import Halt, Stage, UploadJob
from jostler.bundle.record import Record
from jostler.bundle.upload_stats import UploadStats
from jostler.format.compression import FAST
from jostler.format.index_row import Facts
from jostler.format.names import BundleName, Day, Kind
from jostler.format.row import content_hash, instant
from tests.support.bundles import CREATED, DAY, PLACE
from tests.support.compactors import DATATYPE, held

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostler.archive.repeats import Identity
    from jostler.bundle.bundle import Bundle

OTHER = Day(date(2026, 1, 3))
NUMBERS = range(8)
_ADDED_US = 1_767_312_000_000_000
_AGAIN = 100

Said = tuple["Identity", bool]
"""A row, and whether this is about the row itself or about what its agent's index says of it."""


def day_of(number: int) -> Day:
    """Return the day of a bundle: one in four is of the day that may be deleted."""
    return OTHER if number % 4 == 3 else DAY


def files_of(number: int) -> dict[str, bytes]:
    """Return the files of a bundle: one has one of two contents, and others have the other too."""
    node, variant, own = number % 2, number // 2 % 2, f"g{number // 4}"
    return {"f.json": _content(f"f {node} {variant}"), f"{own}.json": _content(f"{own} {node}")}


def _content(text: str) -> bytes:
    """Return a document that hardly shrinks, so that merged bundles are larger than others."""
    words = [hashlib.sha256(f"{text} {nth}".encode()).hexdigest() for nth in range(4)]
    return b'{"text":"%b"}' % "".join(words).encode()


@cache
def sealed(number: int, again: int, bucket: str) -> Bundle:
    """Return a bundle as an agent seals it; each row has a block, so damage may leave the others.

    Args:
        number: which one.
        again: how often its name was taken by something else, and it got another one.
        bucket: URL of the bucket.
    """
    day = day_of(number)
    name = BundleName(
        place=PLACE,
        datatype=DATATYPE,
        day=day,
        created=CREATED + timedelta(seconds=number + _AGAIN * again),
        node=f"n{number % 2}",
        kind=Kind.DATA,
    )
    archiver = Archiver(version="jostler@1", commit="c0ffee")
    opened = OpenBundle(Header(name=name, bucket=bucket, archiver=archiver, compression=FAST), 0.0)
    for line, (file, raw) in enumerate(files_of(number).items(), 1):
        when_us = _ADDED_US + number * 1_000_000 + line
        facts = Facts(when_us - 7, None, f"job-{number}")
        state = FileState(1, len(raw), 1, 1)
        entry = Entry(f"{DATATYPE}/{day.path}/{file}", state, when_us, content_hash(raw), facts)
        opened.add(entry, opened.row(entry.filename, raw))
        opened.end_block()
    return opened.seal()


@dataclass(frozen=True)
class _Spool:
    """Opens the files of a bundle, as a spool does."""

    number: int

    def open(self, path: str, _flags: int) -> int:
        descriptor = os.memfd_create(path)
        os.write(descriptor, files_of(self.number)[path.rpartition("/")[2]])
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor


@dataclass(frozen=True)
class _Journal:
    """Remembers nothing: what an agent would find after a death is in `Sender`."""

    marking: Callable[[], object]

    def write(self, _record: Record, *, surely: bool = False) -> None:
        pass

    def remove(self, _record: Record) -> None:
        pass

    def mark_stored(self, record: Record) -> Record:
        self.marking()
        return record


@dataclass
class Sender:
    """An agent that sends one bundle until it knows that data and index are durable.

    Attributes:
        number: of the bundle.
        begun: whether an earlier process may have sent something.
        again: how often the bundle got another name.
        done: whether the agent has unlinked the files.
        halt: why it could not go on.
    """

    number: int
    begun: bool = False
    again: int = 0
    done: bool = False
    halt: str = ""

    def send(self, storage: Any, marking: Callable[[], object] = lambda: None) -> None:  # noqa: ANN401
        """Carry out the commit, from the journal if it was begun before.

        Args:
            storage: the bucket, or what stands for one.
            marking: called before the journal says that both objects are durable.
        """
        while not self.done:
            bundle = sealed(self.number, self.again, storage.url)
            job = UploadJob.of(bundle, 0.0)
            if self.begun:
                job = UploadJob.replay(Record.of(bundle), 0.0)
            self.begun, self.halt = True, ""
            parts: Any = _Journal(marking), _Spool(self.number), UploadStats()
            ended = Commit(lambda _url: storage, *parts).advance(job)
            if isinstance(ended, Halt):
                self.halt = str(ended.error)
                return
            self.done = ended.stage is Stage.STORED
            if not self.done:  # the name is taken: the files are bundled again
                self.begun, self.again = False, self.again + 1

    def rows(self) -> set[Identity]:
        """Return its rows."""
        day, node = day_of(self.number), f"n{self.number % 2}"
        files = files_of(self.number).items()
        return {(node, f"{day.path}/{name}", content_hash(raw)) for name, raw in files}


@cache
def _told() -> Mapping[tuple[str, str], set[tuple[object, ...]]]:
    """Return by node and Filename what agents' indexes say of rows."""
    found = defaultdict(set)
    for number in NUMBERS:
        for entry in sealed(number, 0, "").attempt.entries:
            assert entry.facts
            assert entry.facts.start_us
            start = instant(entry.facts.start_us)
            said = instant(entry.added_us), start, None, entry.facts.work_id
            found[f"n{number % 2}", entry.filename].add(said)
    return found


_SAID: dict[tuple[str, bytes, bytes], frozenset[Said]] = {}


def said_by(name: str, data: bytes, index: bytes) -> frozenset[Said]:
    """Return the rows of a whole bundle, and those of which it has all that an agent said."""
    key = name, data, index
    if key not in _SAID:
        rows = held(name, data, index)
        found = {(row, False) for row in rows}
        for line in zlib.decompress(index, 31).splitlines() if rows else ():
            raw = json.loads(line)["raw"]
            says = raw["TimeAdded"], raw["Start"], raw["End"], raw["WorkID"]
            if says in _told()[raw["Node"], raw["Filename"]]:
                found.add(((raw["Node"], raw["Filename"], bytes.fromhex(raw["Hash"])), True))
        _SAID[key] = frozenset(found)
    return _SAID[key]


def index_of(name: str) -> str:
    """Return the name of a bundle's index."""
    return str(replace(BundleName.parse(name), kind=Kind.INDEX))
