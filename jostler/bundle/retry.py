"""Trying again: what failed waits for its cause, and for how long.

**Invariant:** nothing here gives up by itself, and what waits for one cause does not wait for
another.  A cause that fails is tried by one job at a time; when that one succeeds, all that wait
for the cause are tried at once.

Waiting is pure: now, in monotonic seconds, and chance, uniform in [0, 1), are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

LONE_S = 60.0
STRIKES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits between tries: under a ceiling that doubles up to a cap, half of it left to chance.

    The chance spreads a fleet that lost its bucket at one moment; in seconds.
    """

    first_s: float = 0.5
    cap_s: float = 60.0

    def wait_s(self, failures: int, chance: float) -> float:
        """Return the wait after `failures` tries; `chance` is uniform in [0, 1)."""
        ceiling = min(self.cap_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return ceiling / 2 + chance * ceiling / 2


@dataclass(slots=True)
class _Waiting:
    """One job that failed.

    Attributes:
        cause: for which it waits.
        failures: so far.
        failed_at: number of its last failure, in the order of all failures and successes.
        strikes: how often it failed again although others had succeeded in between.
        due_s: when it is tried again whatever its cause does; inf while the cause decides.
        trying: it is being tried.
    """

    cause: str
    failures: int = 0
    failed_at: int = 0
    strikes: int = 0
    due_s: float = inf
    trying: bool = False

    @property
    def alone(self) -> bool:
        """Whether the failure is its own: what it waits for works for others."""
        return self.strikes >= STRIKES


@dataclass(slots=True)
class _Outage:
    """A cause that fails."""

    since_s: float
    failures: int = 0
    next_s: float = 0.0
    probe: str = ""


class Retries:
    """The jobs that failed and wait, by name; belongs to one thread.

    Args:
        common: waits for a cause that several may have.  One job tries for all, so this may be
            short: the sooner is it seen that the cause is over.
        alone: waits of a job whose failure is its own.
    """

    def __init__(self, common: Backoff = Backoff(cap_s=15.0), alone: Backoff = Backoff()) -> None:
        self._common = common
        self._alone = alone
        self._waiting: dict[str, _Waiting] = {}
        self._outages: dict[str, _Outage] = {}
        self._succeeded_at: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many jobs failed and have not yet succeeded."""
        return len(self._waiting)

    def failed(self, name: str, cause: str, now_s: float, chance: float) -> float:
        """Learn that a job failed; return the seconds until it, or another for it, is tried."""
        self._count += 1
        job = self._waiting.get(name)
        if job is None or job.cause != cause:
            self._forget_probe(name)
            job = self._waiting[name] = _Waiting(cause, failures=job.failures if job else 0)
        elif self._succeeded_at.get(cause, 0) > job.failed_at:
            job.strikes += 1
        if cause == name:
            job.strikes = STRIKES
        job.failures += 1
        job.failed_at, job.trying = self._count, False
        if job.alone:
            self._forget_probe(name)
            wait_s = self._alone.wait_s(job.failures, chance)
            job.due_s = now_s + wait_s
            return wait_s
        job.due_s = inf
        outage = self._outages.setdefault(cause, _Outage(now_s))
        if not outage.failures or outage.probe == name:
            outage.failures += 1
            outage.probe = ""
            outage.next_s = now_s + self._common.wait_s(outage.failures, chance)
        return max(0.0, outage.next_s - now_s)

    def works(self, *causes: str) -> None:
        """Learn that a job went well, so that these causes do not fail now."""
        for cause in causes:
            self._count += 1
            self._succeeded_at[cause] = self._count
            if self._outages.pop(cause, None):
                for job in self._waiting.values():
                    if job.cause == cause and not job.alone:
                        job.due_s = 0.0

    def forget(self, name: str) -> None:
        """Learn that a job needs no further try."""
        if self._waiting.pop(name, None):
            self._forget_probe(name)

    def due(self, now_s: float) -> list[str]:
        """Return the jobs to try now; each counts as being tried until it fails or succeeds."""
        if not self._waiting:
            return []
        names = [
            name
            for name, job in self._waiting.items()
            if not job.trying and (job.due_s <= now_s or self._is_probe(name, job, now_s))
        ]
        for name in names:
            self._waiting[name].trying = True
        return names

    def try_all_now(self) -> None:
        """Let every job be tried at once, for there is little time left."""
        for job in self._waiting.values():
            job.due_s = 0.0

    def next_s(self) -> float:
        """Return when `due` may have something, monotonic seconds; inf if nothing waits."""
        waiting = [job.due_s for job in self._waiting.values() if not job.trying]
        return min(
            [*waiting, *(one.next_s for one in self._outages.values() if not one.probe)],
            default=inf,
        )

    def fails(self, causes: Collection[str], now_s: float) -> bool:
        """Say whether what a new job needs fails.

        One job that fails alone for a while may be the one thing that is wrong: then others are
        let go on.  If they fail too, they wait with it.
        """
        return any(
            now_s - outage.since_s < LONE_S
            or sum(job.cause == cause and not job.alone for job in self._waiting.values()) > 1
            for cause, outage in self._outages.items()
            if cause in causes
        )

    def _is_probe(self, name: str, job: _Waiting, now_s: float) -> bool:
        """Choose the oldest of those that wait for a cause to try for all of them."""
        outage = self._outages.get(job.cause)
        if job.alone or not outage or outage.probe or now_s < outage.next_s:
            return False
        outage.probe = name
        return True

    def _forget_probe(self, name: str) -> None:
        """Let another job try for the cause; with none left to try, the cause is forgotten."""
        for cause, outage in list(self._outages.items()):
            if outage.probe == name:
                outage.probe = ""
            if not any(
                job.cause == cause and not job.alone
                for other, job in self._waiting.items()
                if other != name
            ):
                del self._outages[cause]
