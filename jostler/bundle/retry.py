"""Retries: when a job that failed is tried again.

A cause is what a job needs and what may fail for several jobs: the journal, a bucket, or, under the
job's own name, only that job.

**Invariant:** no job is given up, and a job waits only for its own cause.  While a cause fails, one
job at a time, the probe, is tried for all that wait for it.  When the probe succeeds, all of them
are tried at once.

Pure: the current time, in monotonic seconds, and a random number in [0, 1) are arguments.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Collection

LONE_S = 60.0
"""How long one failing job holds back new jobs; then its failure is taken for its own."""
STRIKES = 2
"""After so many failures between successes of others, a failure is the job's own."""


class Backoff(Struct, frozen=True, kw_only=True):
    """Exponential backoff with jitter; in seconds.

    The ceiling doubles with each failure up to a cap; a wait is random between half the ceiling and
    the ceiling.  So the agents of a fleet, which lose the bucket at the same moment, do not all
    come back at the same moment.

    Attributes:
        first_s: the ceiling after the first failure.
        cap_s: the greatest ceiling.
    """

    first_s: float = 0.5
    cap_s: float = 60.0

    def wait_s(self, failures: int, chance: float) -> float:
        """Return the wait before the next try.

        Args:
            failures: how often the job failed so far, at least 1.
            chance: a random number, uniform in [0, 1).
        """
        # Without the 32, a float overflows after some 1,000 failures: OverflowError.
        ceiling = min(self.cap_s, self.first_s * 2.0 ** min(failures - 1, 32))
        return ceiling / 2 + chance * ceiling / 2


class _Waiting(Struct):
    """A job that failed and waits.

    Attributes:
        cause: the cause that it waits for.
        failures: how often it failed.
        failed_at: the number of its last failure in the sequence of all failures and successes.
        strikes: how often it failed again after others with the same cause had succeeded.
        due_s: when it is tried again on its own, monotonic seconds; inf while it waits for its
            cause.
        trying: whether it is being tried now.
    """

    cause: str
    failures: int = 0
    failed_at: int = 0
    strikes: int = 0
    due_s: float = inf
    trying: bool = False

    @property
    def alone(self) -> bool:
        """Whether the failure is the job's own: its cause works for others."""
        return self.strikes >= STRIKES


class _Outage(Struct):
    """A cause that fails; times are monotonic seconds.

    Attributes:
        since_s: when it first failed.
        failures: how often its probes failed.
        next_s: when the next probe is tried.
        probe: the name of the job that is the probe now; empty if none is.
    """

    since_s: float
    failures: int = 0
    next_s: float = 0.0
    probe: str = ""


class Retries:
    """The jobs that failed and wait, by name; used by one thread only.

    Args:
        common: the waits between probes of a cause.  They may be short, because only one job is
            tried for all that wait.
        alone: the waits of a job whose failure is its own.
    """

    def __init__(self, common: Backoff = Backoff(cap_s=15.0), alone: Backoff = Backoff()) -> None:
        self._common = common
        self._alone = alone
        self._waiting: dict[str, _Waiting] = {}
        self._outages: dict[str, _Outage] = {}
        self._succeeded_at: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        """The number of jobs that failed and have not succeeded since."""
        return len(self._waiting)

    def failed(self, name: str, cause: str, now_s: float, chance: float) -> float:
        """Record that a job failed; return the seconds until it, or the probe of its cause, is due.

        Args:
            name: the job's name.
            cause: what failed: the cause's name, or the job's own name.
            now_s: monotonic seconds.
            chance: a random number, uniform in [0, 1).
        """
        self._count += 1
        job = self._waiting.get(name)
        if job is None or job.cause != cause:
            self._forget_probe(name)
            job = self._waiting[name] = _Waiting(cause, failures=job.failures if job else 0)
        elif self._succeeded_at.get(cause, 0) > job.failed_at:
            job.strikes += 1  # the cause worked for another job since this one's last failure
        if cause == name:  # no other job can be the probe for it
            job.strikes = STRIKES
        job.failures += 1
        job.failed_at, job.trying = self._count, False
        if job.alone:
            self._forget_probe(name)
            wait_s = self._alone.wait_s(job.failures, chance)
            job.due_s = now_s + wait_s
            return wait_s
        job.due_s = inf  # from now on the probe decides when it is tried
        outage = self._outages.setdefault(cause, _Outage(now_s))
        # Jobs that were under way when the cause began to fail, fail one after the other.  Only the
        # first of them and the probes count, so that one outage does not lengthen its own wait.
        if not outage.failures or outage.probe == name:
            outage.failures += 1
            outage.probe = ""
            outage.next_s = now_s + self._common.wait_s(outage.failures, chance)
        return max(0.0, outage.next_s - now_s)

    def works(self, *causes: str) -> None:
        """Record that these causes work: all jobs that wait for one of them become due."""
        for cause in causes:
            self._count += 1
            self._succeeded_at[cause] = self._count
            if self._outages.pop(cause, None):
                for job in self._waiting.values():
                    if job.cause == cause and not job.alone:
                        job.due_s = 0.0

    def forget(self, name: str) -> None:
        """Remove a job that succeeded or was given up by the caller."""
        if self._waiting.pop(name, None):
            self._forget_probe(name)

    def due(self, now_s: float) -> list[str]:
        """Return the names of the jobs to try now; the caller must report how each ends."""
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
        """Make every job due now, because the agent ends soon."""
        for job in self._waiting.values():
            job.due_s = 0.0

    def next_s(self) -> float:
        """Return when the next job is due, monotonic seconds; inf if none waits."""
        waiting = [job.due_s for job in self._waiting.values() if not job.trying]
        # An outage with a probe under way has no time of its own: the probe's end sets the next.
        return min(
            [*waiting, *(one.next_s for one in self._outages.values() if not one.probe)],
            default=inf,
        )

    def fails(self, causes: Collection[str], now_s: float) -> bool:
        """Return whether one of these causes fails, so that a new job should not be started.

        If only one job has failed for `LONE_S` seconds, the failure may be its own; then new jobs
        may start.  If they fail as well, the cause fails for all.
        """
        return any(
            now_s - outage.since_s < LONE_S
            or sum(job.cause == cause and not job.alone for job in self._waiting.values()) > 1
            for cause, outage in self._outages.items()
            if cause in causes
        )

    def _is_probe(self, name: str, job: _Waiting, now_s: float) -> bool:
        """Return whether a job becomes the probe of its cause; the first that asks becomes it."""
        outage = self._outages.get(job.cause)
        if job.alone or not outage or outage.probe or now_s < outage.next_s:
            return False
        outage.probe = name
        return True

    def _forget_probe(self, name: str) -> None:
        """Let another job be the probe; forget causes that no other job waits for."""
        for cause, outage in list(self._outages.items()):
            if outage.probe == name:
                outage.probe = ""
            if not any(
                job.cause == cause and not job.alone
                for other, job in self._waiting.items()
                if other != name
            ):
                del self._outages[cause]
