"""The audit by the threads of one machine; `loader/spark/audit.py` does the same on a cluster.

**Invariant:** it only reads.  A bundle is checked by `bundle.check` alone, from the objects as they
were listed; one that went away meanwhile was merged or deleted, and is no problem.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from jostler.archive.audit.bundle import Checked, check
from jostler.archive.audit.days import Keys, Limits, Schemas, of_listing, repeated
from jostler.archive.audit.problem import Kind, Problem
from jostler.archive.audit.scope import days as listed_days
from jostler.errors import MissingError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.archive.audit.scope import Bundle, ListedDay, Scope
    from jostler.format.names import Place
    from jostler.storage import Storage

READERS = 4
AHEAD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFound:
    """What was found of a bundle, without its files; small enough to be sent about.

    Attributes:
        rows: how many rows it has.
        plain_bytes: of its lines.
        go: whether the Go agent wrote it.
        is_gone: whether it went away since it was listed: it was merged or deleted.
        keys: of its rows, in order; see `bundle.keys`.
        problems: what is wrong.
    """

    rows: int = 0
    plain_bytes: int = 0
    go: bool = False
    is_gone: bool = False
    keys: tuple[bytes, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True, kw_only=True)
class DayFound:
    """What was found of one day of one datatype.

    Attributes:
        listed: what the bucket lists.
        rows: the number of rows of each bundle that is still there, by its name.
        of_go: how many bundles the Go agent wrote.
        plain_bytes: of all lines.
        problems: in the order of objects and lines.
    """

    listed: ListedDay
    rows: dict[str, int] = field(default_factory=dict)
    of_go: int = 0
    plain_bytes: int = 0
    problems: list[Problem] = field(default_factory=list)


@dataclass(slots=True)
class Sums:
    """The counts of an audit.

    Attributes:
        days: days of datatypes.
        bundles: bundles read.
        of_go: how many of them the Go agent wrote.
        rows: rows, by datatype.
        plain_bytes: of all lines.
        problems: by kind.
    """

    days: int = 0
    bundles: int = 0
    of_go: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    plain_bytes: int = 0
    problems: Counter[Kind] = field(default_factory=Counter)

    def add(self, day: DayFound) -> None:
        """Add a day."""
        self.days += 1
        self.bundles += len(day.listed.bundles)
        self.of_go += day.of_go
        self.rows[day.listed.datatype] += sum(day.rows.values())
        self.plain_bytes += day.plain_bytes
        self.problems.update(problem.kind for problem in day.problems)


class Same(Protocol):
    """Knows which rows of a day occur more than once."""

    def add(self, bundle: int, keys: Iterable[bytes]) -> None:
        """Take the keys of a bundle's lines, in order."""

    def repeated(self) -> Iterable[Sequence[tuple[int, int]]]:
        """Return bundle and line of the rows that are equal, for each row with a repeat."""


def checked(storage: Storage, bundle: Bundle) -> Checked | None:
    """Read and check a bundle as it was listed; None if it went away.

    Raises:
        StorageError: an object cannot be read.
    """
    try:
        data = storage.read(bundle.data.name, bundle.data.version).data
    except MissingError:
        return None
    index, index_name = None, None
    if bundle.index:
        try:
            index = storage.read(bundle.index.name, bundle.index.version).data
            index_name = bundle.index_name
        except MissingError:
            return None
    return check(bundle.name, storage.url, data, index_name, index)


def found_of(storage: Storage, bundle: Bundle) -> BundleFound:
    """Read and check a bundle; one that cannot be read has a problem that says so."""
    try:
        found = checked(storage, bundle)
    except StorageError as exc:
        problem = Problem(bundle.data.name, 0, Kind.UNREADABLE, str(exc))
        return BundleFound(problems=(problem,))
    if found is None:
        return BundleFound(is_gone=True)
    return BundleFound(
        rows=found.lines,
        plain_bytes=found.plain_bytes,
        go=found.go,
        keys=tuple(found.keys),
        problems=found.problems,
    )


def audit(
    storage: Storage, places: Iterable[Place], scope: Scope, limits: Limits
) -> Iterator[DayFound]:
    """Yield what is found of each day; several bundles are read at once.

    Raises:
        TransientError: the bucket cannot be listed.
    """
    schemas = Schemas(storage)
    with ThreadPoolExecutor(READERS, thread_name_prefix="audit") as pool:
        for place in places:
            for listed in listed_days(storage, place, scope):
                same = Keys()
                results = _in_order(pool, storage, listed.bundles)
                yield summed(listed, results, same, limits, schemas)


def summed(
    listed: ListedDay,
    results: Iterable[BundleFound],
    same: Same,
    limits: Limits,
    schemas: Schemas,
) -> DayFound:
    """Return what was found of a day.

    Args:
        listed: what the bucket lists.
        results: what was found of each bundle, in order.
        same: gets the keys of the rows, and knows which occur more than once.
        limits: from when on a day has too many small bundles.
        schemas: looks at table schemas.
    """
    day = DayFound(listed=listed)
    for number, one in enumerate(results):
        if not one.is_gone:
            day.rows[listed.bundles[number].data.name] = one.rows
        day.of_go += one.go
        day.plain_bytes += one.plain_bytes
        day.problems += one.problems
        same.add(number, one.keys)
    day.problems += of_listing(listed, limits)
    day.problems += repeated(listed.bundles, same.repeated())
    if listed.bundles:
        day.problems += schemas.of(listed.place, listed.datatype)
    day.problems.sort()
    return day


def _in_order(
    pool: ThreadPoolExecutor, storage: Storage, bundles: Iterable[Bundle]
) -> Iterator[BundleFound]:
    ahead: deque[Future[BundleFound]] = deque()
    for bundle in bundles:
        ahead.append(pool.submit(found_of, storage, bundle))
        if len(ahead) > AHEAD:
            yield ahead.popleft().result()
    while ahead:
        yield ahead.popleft().result()
