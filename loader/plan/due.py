"""Decide which days must be loaded, and why.

**Invariant:** a day is skipped only if its newest ledger row is a success with the fingerprint that
the bucket has now.  The attempt numbers are read from the ledger *before* the bucket is listed, so
the loader that gets the next attempt loads a listing no older than that of the last attempt.

Pure: listings and ledger are arguments.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from jostler.schema import to_json
from loader.errors import WOULD_LOSE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date

    from jostler.schema import Field, Fields
    from loader.plan.discover import Bundle, Table
    from loader.plan.window import Window

    DayKey = tuple[str, date]

FORCED = "forced"
REQUESTED = "requested"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGEST_BYTES = 4  # short, for a ledger row has one for each object of the day
KEPT = timedelta(days=7)
"""How long a refused request is looked at again: its bundles, or its schema, may still come."""
FORMAT_VERSION = 2
"""Change this when the same bundles would give other rows; all days are then due."""


class Status(StrEnum):
    """The result of an attempt to load a day."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    FAILED = "failed"
    REJECTED = "rejected"
    ABANDONED = "abandoned"
    """It has failed for longer than --give-up-after, and is not tried again as it is."""
    DELETED = "deleted"
    """`jostler delete` has deleted its objects and rows."""


ENDS = tuple(status for status in Status if status is not Status.DELETED)
"""How a day ends in a run of the loader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The newest ledger row of a day.

    Attributes:
        attempt: the highest number of the day's load jobs; 0 for none.
        status: the status in that row.
        fingerprint: the fingerprint in that row.
        buckets: the buckets of the bundles that were last loaded.
        bad_fraction: the fraction of bad rows in that row.
        failed_since: when the day first failed with that fingerprint, since it last ended
            otherwise; None if it has not.
        error: ErrorClass and ErrorText of that row.
    """

    attempt: int = 0
    status: Status | None = None
    fingerprint: str = ""
    buckets: frozenset[str] = frozenset()
    bad_fraction: float = 0.0
    failed_since: datetime | None = None
    error: tuple[str, str] = ("", "")


UNKNOWN = Known()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Who asked for a day to be loaded anew: a request's id, and when it was made."""

    id: str
    at: datetime

    @property
    def label(self) -> str:
        """The time as a label of a load job: microseconds since 1970."""
        return str((self.at - EPOCH) // timedelta(microseconds=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The objects from which a day was last loaded.

    Attributes:
        count: the number of objects.
        objects: their digests (see `object_digest`); None if an older version wrote the ledger row.
        rows: the number of rows that were loaded.
    """

    count: int
    objects: frozenset[str] | None
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDay:
    """A day of a table, as listed in the bucket.

    Attributes:
        table: the table to load.
        date: the day, and so the table's partition.
        bundles: its bundles, the earliest first.
        fingerprint: the digest of bundles and schema.
        attempt: the number of the last load job when the ledger was read.
        reason: why the day is due.
        owed: how many good rows it must have at least, because objects are gone that it was loaded
            from and merged bundles have taken their place; else 0.
        requested: the newest request that asks for the day; None if nobody does.
        own_max_bad: the largest fraction of bad rows, if its asset says one.
        has_expired: whether BigQuery keeps no partition of it any more.
    """

    table: Table
    date: date
    bundles: tuple[Bundle, ...]
    fingerprint: str
    attempt: int = 0
    reason: str = ""
    owed: int = 0
    requested: Asked | None = None
    own_max_bad: float | None = None
    has_expired: bool = False

    def max_bad(self, of_run: float) -> float:
        """Return the largest fraction of bad rows with which it is loaded: its own or the run's."""
        return of_run if self.own_max_bad is None else self.own_max_bad

    @property
    def key(self) -> DayKey:
        """The day's key in the ledger: table and date."""
        return str(self.table.name), self.date

    @property
    def forced(self) -> bool:
        """Whether it is loaded because of --force, whatever the ledger says."""
        return self.reason == FORCED

    @property
    def size_bytes(self) -> int:
        """The size of all its objects."""
        return sum(bundle.size_bytes for bundle in self.bundles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A day that is not loaded, and why.

    Attributes:
        day: the day.
        status: how it ends in the run.
        why: a sentence.
        error: the ErrorClass of the ledger row that is to say so; empty if a row has said it.
    """

    day: TableDay
    status: Status
    why: str
    error: str = ""

    def is_known(self, known: Known) -> bool:
        """Return whether the day's newest ledger row says the same of the same objects."""
        same = known.status is self.status and known.fingerprint == self.day.fingerprint
        return same and known.error == (self.error, self.why)


def fingerprint(bundles: Iterable[Bundle], schema: str) -> str:
    """Return the digest of a day: its objects, their generations, the columns, our version."""
    digest = hashlib.blake2b(f"{FORMAT_VERSION}\n{schema}\n".encode(), digest_size=16)
    # The generation, too: an object that was replaced under its name makes the day due.
    for url, generation in sorted((bundle.url, bundle.generation) for bundle in bundles):
        digest.update(f"{url}#{generation}\n".encode())
    return digest.hexdigest()


def has_expired(date: date, kept_days: float, today: date) -> bool:
    """Return whether BigQuery has deleted a day's partition, so that loading it is of no use.

    Args:
        date: the day; its partition ends with it, and expires so many days later.
        kept_days: how many.
        today: the current day, UTC.
    """
    return (today - date).days >= kept_days + 1


def object_digest(bundle: Bundle) -> str:
    """Return a short digest of an object's URL, not of its content."""
    return hashlib.blake2b(bundle.url.encode(), digest_size=DIGEST_BYTES).hexdigest()


def gone_objects(day: TableDay, loaded: Loaded | None) -> int:
    """Return how many of the objects from which a day was loaded are gone."""
    if loaded is None:
        return 0
    if loaded.objects is None:
        return max(0, loaded.count - len(day.bundles))
    return len(loaded.objects - {object_digest(bundle) for bundle in day.bundles})


def loss_message(gone: int, count: int) -> str:
    """Return the sentence for a day of whose `count` loaded objects `gone` are gone."""
    return (
        f"{gone} of the {count} objects that it was loaded from are gone: to load the day"
        " would remove their rows; restore the objects, or use --accept-deletions"
    )


def schema_digest(fields: Fields) -> str:
    """Return the digest of columns without their descriptions, which do not affect rows."""
    bare = to_json(tuple(_without_description(field) for field in fields))
    return hashlib.blake2b(bare, digest_size=16).hexdigest()


def _without_description(field: Field) -> Field:
    inner = tuple(_without_description(part) for part in field.fields)
    return replace(field, description="", fields=inner)


def decide(
    day: TableDay,
    known: Known,
    *,
    force: bool,
    accept: bool,
    max_bad: float,
    asked: Asked | None = None,
) -> TableDay | Refusal | None:
    """Decide what to do with a day: load it (with the reason), refuse it, or skip it (None).

    Args:
        day: the day as listed in the bucket.
        known: its newest ledger row.
        force: load it even if it is up to date.
        accept: load it even if objects or buckets from which it was loaded are gone.
        max_bad: the largest fraction of bad rows with which a day is loaded.
        asked: the newest request for the day that is not answered.
    """
    day = replace(day, attempt=max(day.attempt, known.attempt), requested=asked)
    missing = known.buckets - {bundle.bucket for bundle in day.bundles}
    if missing and not accept:
        why = (
            f"the day was loaded from {', '.join(sorted(missing))} too, which holds nothing of it"
            " now or was not given: replacing it would lose rows; name all buckets, or use"
            " --accept-deletions"
        )
        return Refusal(day=day, status=Status.FAILED, why=why, error=WOULD_LOSE)
    if force or asked:
        return replace(day, reason=FORCED if force else REQUESTED)
    return _of_known(day, known, max_bad)


def _of_known(day: TableDay, known: Known, max_bad: float) -> TableDay | Refusal | None:
    """Decide by the newest ledger row of a day alone."""
    if known.status is None or known.fingerprint != day.fingerprint:
        return replace(day, reason="changed" if known.status else "new")
    if known.status is Status.SUCCESS:
        return None
    if known.status is Status.ABANDONED:
        why = "it has failed for too long, and has not changed: ask for it, or use --force"
        return Refusal(day=day, status=Status.ABANDONED, why=why)
    if known.status is Status.REJECTED and known.bad_fraction > max_bad:
        why = f"{known.bad_fraction:.3f} of its rows are bad, and nothing has changed since"
        return Refusal(day=day, status=Status.REJECTED, why=why)
    return replace(day, reason=f"{known.status} before")


def within(days: Iterable[TableDay], left: Mapping[str, int], window: Window) -> list[TableDay]:
    """Choose the days to load now: those asked for, those in the window, then the oldest.

    Args:
        days: the due days.
        left: for each table, how many more load jobs it may have.
        window: the days that the options select; the first load of a table has more.
    """
    taken: Counter[str] = Counter()
    chosen = []
    urgency = lambda day: (day.requested is None, day.date not in window, day.date)  # noqa: E731
    for day in sorted(days, key=urgency):
        name = str(day.table.name)
        if taken[name] < left.get(name, 0):
            taken[name] += 1
            chosen.append(day)
    return chosen


def parts(days: Iterable[TableDay], *, most: int, most_bytes: int) -> Iterator[list[TableDay]]:
    """Divide days into parts that are compared together, the oldest first.

    Args:
        days: the days, in any order.
        most: the maximum number of days in a part.
        most_bytes: the maximum size of a part's objects, unless one day alone is larger.
    """
    part: list[TableDay] = []
    for day in sorted(days, key=lambda day: (day.date, str(day.table.name))):
        size = sum(taken.size_bytes for taken in part) + day.size_bytes
        if part and (len(part) == most or size > most_bytes):
            yield part
            part = []
        part.append(day)
    if part:
        yield part
