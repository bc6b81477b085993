"""Which days must be loaded, and why.

**Invariant:** a day is left alone only if the ledger's newest word on it is success with the very
fingerprint that the bucket gives now.  Attempts are read from the ledger *before* objects are
listed, so whoever gets the next attempt loads a listing that is no older than the last one's.

Pure: listings and ledger are arguments.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from jostler.schema import to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from jostler.schema import Field, Fields
    from loader.plan.discover import Bundle, Table
    from loader.plan.window import Window

    DayKey = tuple[str, date]

FORCED = "forced"
DIGEST_BYTES = 4
FORMAT_VERSION = 1
"""Changes when the same bundles would be loaded into other rows; every day is then due."""


class Status(StrEnum):
    """What became of a day."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    FAILED = "failed"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The ledger's newest word on a day.

    Attributes:
        attempt: the highest that any load job of the day has had; 0 for none.
        status: of the newest row.
        fingerprint: that it was about.
        buckets: that the newest loaded bundles came from.
        bad_fraction: of the rows of the newest row.
    """

    attempt: int = 0
    status: Status | None = None
    fingerprint: str = ""
    buckets: frozenset[str] = frozenset()
    bad_fraction: float = 0.0


UNKNOWN = Known()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a day was loaded from, when it last was.

    Attributes:
        count: of objects.
        objects: their digests (see `object_digest`); None in a ledger of older versions.
    """

    count: int
    objects: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """A day of a table as the bucket holds it.

    Attributes:
        table: where it goes.
        date: the partition.
        bundles: the earliest first.
        fingerprint: of bundles and schema.
        attempt: the last one taken when the ledger was read.
        reason: why it is due.
    """

    table: Table
    date: date
    bundles: tuple[Bundle, ...]
    fingerprint: str
    attempt: int = 0
    reason: str = ""

    @property
    def key(self) -> DayKey:
        """What the ledger knows it by."""
        return str(self.table.name), self.date

    @property
    def forced(self) -> bool:
        """Whether it is loaded because the operator wants it, whatever the ledger says."""
        return self.reason == FORCED

    @property
    def size_bytes(self) -> int:
        """Size of its objects."""
        return sum(bundle.size_bytes for bundle in self.bundles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A day that must not be loaded as things are, and why."""

    day: Day
    status: Status
    why: str


def fingerprint(bundles: Iterable[Bundle], schema: str) -> str:
    """Digest what a day is made of: its objects, their generations, the columns, our version."""
    digest = hashlib.blake2b(f"{FORMAT_VERSION}\n{schema}\n".encode(), digest_size=16)
    for url, generation in sorted((bundle.url, bundle.generation) for bundle in bundles):
        digest.update(f"{url}#{generation}\n".encode())
    return digest.hexdigest()


def object_digest(bundle: Bundle) -> str:
    """Digest the name of an object, not its content; of two objects they are hardly ever equal."""
    return hashlib.blake2b(bundle.url.encode(), digest_size=DIGEST_BYTES).hexdigest()


def lost(day: Day, loaded: Loaded | None) -> Refusal | None:
    """Refuse a day whose rows would go because objects are gone that it was loaded from."""
    if loaded is None:
        return None
    if loaded.objects is None:
        gone = loaded.count - len(day.bundles)
    else:
        gone = len(loaded.objects - {object_digest(bundle) for bundle in day.bundles})
    if gone <= 0:
        return None
    why = (
        f"{gone} of the {loaded.count} objects that it was loaded from are gone: to load the day"
        " would remove their rows; restore the objects, or use --accept-deletions"
    )
    return Refusal(day=day, status=Status.FAILED, why=why)


def schema_digest(fields: Fields) -> str:
    """Digest columns without their descriptions, which change no row."""
    bare = to_json(tuple(_without_description(field) for field in fields))
    return hashlib.blake2b(bare, digest_size=16).hexdigest()


def _without_description(field: Field) -> Field:
    inner = tuple(_without_description(part) for part in field.fields)
    return replace(field, description="", fields=inner)


def decide(
    day: Day, known: Known, *, force: bool, accept: bool, max_bad: float
) -> Day | Refusal | None:
    """Say what to do with a day: load it (with the reason), refuse it, or leave it alone (None).

    Args:
        day: as the bucket holds it.
        known: as the ledger has it.
        force: load it although it is loaded.
        accept: load it although objects or buckets are gone that it was loaded from.
        max_bad: largest part of bad rows.
    """
    day = replace(day, attempt=max(day.attempt, known.attempt))
    missing = known.buckets - {bundle.bucket for bundle in day.bundles}
    if missing and not accept:
        why = (
            f"the day was loaded from {', '.join(sorted(missing))} too, which holds nothing of it"
            " now or was not given: replacing it would lose rows; name all buckets, or use"
            " --accept-deletions"
        )
        return Refusal(day=day, status=Status.FAILED, why=why)
    if force:
        return replace(day, reason=FORCED)
    if known.status is None or known.fingerprint != day.fingerprint:
        return replace(day, reason="changed" if known.status else "new")
    if known.status is Status.SUCCESS:
        return None
    if known.status is Status.REJECTED and known.bad_fraction > max_bad:
        why = f"{known.bad_fraction:.3f} of its rows are bad, and nothing has changed since"
        return Refusal(day=day, status=Status.REJECTED, why=why)
    return replace(day, reason=f"{known.status} before")


def within(days: Iterable[Day], left: Mapping[str, int], window: Window) -> list[Day]:
    """Choose the days that are loaded now: those of the window first, then the oldest.

    Args:
        days: that are due.
        left: for each table, how many days it can still take.
        window: that the operator asked for; a first load looks at more.
    """
    taken: Counter[str] = Counter()
    chosen = []
    for day in sorted(days, key=lambda day: (day.date not in window, day.date)):
        name = str(day.table.name)
        if taken[name] < left.get(name, 0):
            taken[name] += 1
            chosen.append(day)
    return chosen


def waves(days: Iterable[Day], *, most: int, share: float, most_bytes: int) -> Iterator[list[Day]]:
    """Cut the due days into waves that are verified and loaded together.

    Experiments take turns, a day each, so one with few days does not wait for one with many.

    Args:
        days: in any order.
        most: days in a wave.
        share: largest part of a wave that one experiment may hold, unless nothing else waits.
        most_bytes: size of a wave's objects, unless one day alone is larger.
    """
    waiting: dict[str, list[Day]] = defaultdict(list)
    for day in sorted(days, key=lambda day: (day.date, str(day.table.name)), reverse=True):
        waiting[day.table.experiment].append(day)  # the oldest is taken first, from the end
    each = max(1, int(most * share))
    order = sorted(waiting)
    while order:
        wave: list[Day] = []
        taken: Counter[str] = Counter()
        turns = deque(order)
        while turns:
            experiment = turns.popleft()
            rest = waiting[experiment]
            if not rest or not _fits(wave, rest[-1], most, most_bytes):
                continue
            wave.append(rest.pop())
            taken[experiment] += 1
            if taken[experiment] < each:
                turns.append(experiment)
        left = [experiment for experiment in order if waiting[experiment]]
        if len(left) == 1:  # nobody else is held up
            rest = waiting[left[0]]
            while rest and _fits(wave, rest[-1], most, most_bytes):
                wave.append(rest.pop())
        yield wave
        # Who got the least of this wave comes first in the next.
        order = sorted((e for e in left if waiting[e]), key=lambda experiment: taken[experiment])


def _fits(wave: list[Day], day: Day, most: int, most_bytes: int) -> bool:
    if not wave:
        return True
    size = sum(taken.size_bytes for taken in wave) + day.size_bytes
    return len(wave) < most and size <= most_bytes
