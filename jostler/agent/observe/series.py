"""The values of each metric, taken from the status: functions for the table in `metrics`.

**Invariant:** every possible series has a value from the start, 0 if nothing was counted, because
Prometheus' `increase` does not see the step from no series to its first value.  No label's value
comes from a file's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.format.names import REJECTED
from jostler.watchdir import ScanReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jostler.agent.observe.snapshot import Snapshot
    from jostler.agent.observe.status import Status

Values = dict[tuple[str, ...], float]
"""The values of one metric by the values of its labels."""
FAILURES = (
    *("AuthError", "ConflictError", "OSError", "QuotaError", "RefusedError", "TransientError"),
    "Unforeseen",
)
"""The values of the label `class`."""
UNFORESEEN = "unforeseen"
"""The reason of files that stay on disk because of an unforeseen error."""
IGNORED = ("extension", "not-regular")
NO_DATATYPE = ""
"""The datatype of the requests at the start, which concern all datatypes at once."""


def by_datatype(
    pick: Callable[[Snapshot], Mapping[str, float]],
) -> Callable[[Status, Snapshot], Values]:
    """Return a function that gives one value for each datatype; `pick` returns the values."""

    def values(status: Status, snapshot: Snapshot) -> Values:
        found = pick(snapshot)
        return {(name,): found.get(name, 0) for name in datatypes(status)}

    return values


def by_reason(
    reasons: Iterable[str], pick: Callable[[Snapshot], Mapping[tuple[str, str], float]]
) -> Callable[[Status, Snapshot], Values]:
    """Return a function that gives one value for each datatype and reason."""

    def values(status: Status, snapshot: Snapshot) -> Values:
        made: Values = {(name, str(r)): 0 for name in datatypes(status) for r in reasons}
        return made | {key: value for key, value in pick(snapshot).items() if key[1]}

    return values


def attempts(status: Status, _snapshot: Snapshot) -> Values:
    """Return the number of steps of commits tried, by datatype."""
    found = status.upload_stats.counts().attempts
    return {(name,): found.get(name, 0) for name in (*datatypes(status), NO_DATATYPE)}


def failures(status: Status, _snapshot: Snapshot) -> Values:
    """Return the number of steps of commits that failed, by datatype and class of the error."""
    found = status.upload_stats.counts().failures
    made: Values = {
        (name, kind): 0 for name in (*datatypes(status), NO_DATATYPE) for kind in FAILURES
    }
    return made | dict(found)


def unlabelled(pick: Callable[[Status, Snapshot], float]) -> Callable[[Status, Snapshot], Values]:
    """Return a function that gives the value of a metric without labels."""
    return lambda status, snapshot: {(): pick(status, snapshot)}


def datatypes(status: Status) -> list[str]:
    """Return the configured datatypes, and rejected1."""
    return [*(datatype.name for datatype in status.config.datatypes), REJECTED]


def open_sums(pick: Callable[[int], int]) -> Callable[[Snapshot], Mapping[str, float]]:
    """Return a function that sums `pick` of the held bytes of the open bundles, by datatype."""

    def sums(snapshot: Snapshot) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for one in snapshot.now.open if snapshot.now else ():
            found[one.datatype] = found.get(one.datatype, 0) + pick(one.held_bytes)
        return found

    return sums


def disk_lack(status: Status, snapshot: Snapshot) -> Values:
    """Return whether the disk lacks space, under the action that is configured."""
    lacks = bool(snapshot.now and snapshot.now.disk.lacks)
    return {(str(status.config.disk_lack_action),): float(lacks)}


def scans(_status: Status, snapshot: Snapshot) -> Values:
    """Return the number of scans by reason."""
    found = snapshot.now.counts.scans if snapshot.now else {}
    return {(str(reason),): found.get(reason, 0) for reason in ScanReason}


def ignored(status: Status, snapshot: Snapshot) -> Values:
    """Return the number of ignored files by datatype and reason."""
    made: Values = {(name, reason): 0 for name in datatypes(status) for reason in IGNORED}
    prefix = f"{status.config.spool}/"
    for (root, reason), times in (snapshot.now.counts.ignored if snapshot.now else {}).items():
        key = (root.removeprefix(prefix), reason)
        if key in made:
            made[key] = times
    return made


def index_nulls(status: Status, snapshot: Snapshot) -> Values:
    """Return the number of missing index values by datatype and column, for each `-index-field`."""
    fields = status.config.index_fields
    made: Values = {(field.datatype, str(field.column)): 0 for field in fields}
    return made | dict(snapshot.tally.index_nulls)


def waiting(pick: str) -> Callable[[Status, Snapshot], Values]:
    """Return a function that gives an attribute of `Waiting`, named by `pick`, by datatype."""

    def values(status: Status, _view: Snapshot) -> Values:
        found = status.disk.waiting
        return {(n,): getattr(found[n], pick) if n in found else 0 for n in datatypes(status)}

    return values
