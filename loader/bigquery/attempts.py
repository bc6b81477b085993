"""One day's load: exactly one job after the other, whoever submits them.

**Invariant:** load jobs of a day have numbered ids, and number n + 1 is submitted only by somebody
who has seen n end.  BigQuery takes an id at most once, so two loaders can neither load at the same
time nor overwrite what a newer listing brought: who finds a number taken looks at that job and, if
it was about another fingerprint, lists the bucket anew before it takes the next number.  A job of
the same fingerprint is adopted only if its rows are still there (see `Jobs.counts`).

There is no lock in it, and no clock decides anything: a loader may stop at any point, for ever or
for an hour.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.bigquery.warehouse import Job

TRIES = 3
TRANSIENT = frozenset(
    {
        *("backendError", "internalError", "rateLimitExceeded", "jobRateLimitExceeded"),
        *("jobBackendError", "jobInternalError", "tableUnavailable", "stopped", "timeout"),
        "resourcesExceeded",
    }
)
"""Reasons for which BigQuery's documentation says: try again with a new job id."""
LABEL = "jostler-fingerprint"
RUN_LABEL = "jostler-run"
LEDGER_LABEL = "jostler-ledger"


class Jobs(Protocol):
    """The load jobs of one day."""

    def submit(self, attempt: int) -> tuple[Job, bool]:
        """Run the job of this number to its end, or wait for the one that has it already.

        Returns:
            The job, and whether it is ours.
        """
        ...

    def look(self, attempt: int) -> Job | None:
        """Wait for the end of the job with this number; None when it is free."""
        ...

    def counts(self, job: Job) -> bool:
        """Say whether a job that we did not submit just now spares us a job of our own.

        To be asked of the newest job of the day, and only if it has our fingerprint.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended.

    Attributes:
        attempt: the last number taken.
        job: that has it; None when the load was overtaken.
        failed: jobs that failed here, by number.
        overtaken: the bucket has changed since it was listed; nothing newer was overwritten.
        adopted: somebody else's job (or ours, of a run that was killed) had done it.
    """

    attempt: int
    job: Job | None
    failed: dict[int, Job]
    overtaken: bool = False
    adopted: bool = False


def load(
    jobs: Jobs,
    fingerprint: str,
    attempt: int,
    *,
    still_so: Callable[[], bool],
    pause: Callable[[int], None],
) -> Ended:
    """Load a day, three times if BigQuery asks for that.

    Args:
        jobs: of the day.
        fingerprint: of what is to be loaded.
        attempt: the last number known to be taken, and its job to have ended, before the bucket
            was listed.
        still_so: lists the day anew and says whether it still has this fingerprint.
        pause: waits before a new try; the argument counts from 1.

    Raises:
        WarehouseError: BigQuery cannot be asked; a job may have been taken all the same.
    """
    failed: dict[int, Job] = {}
    while True:
        attempt += 1
        job, ours = jobs.submit(attempt)
        if not ours:
            attempt, job = _newest(jobs, attempt, job)
            if job.labels.get(LABEL) != fingerprint:
                if not still_so():
                    return Ended(attempt=attempt, job=None, failed=failed, overtaken=True)
                continue
            if not jobs.counts(job):
                continue
        if not job.reason:
            return Ended(attempt=attempt, job=job, failed=failed, adopted=not ours)
        failed[attempt] = job
        if job.reason not in TRANSIENT or len(failed) >= TRIES:
            return Ended(attempt=attempt, job=job, failed=failed)
        pause(len(failed))


def pause(failed: int) -> None:
    """Wait before a new try, longer from time to time, and not in step with other days.

    A partitioned table takes 50 load jobs in ten seconds ("Quotas and limits"); days that end
    together, and all tell the one ledger, can meet that.
    """
    time.sleep(2 ** (failed - 1) * random.uniform(0.5, 1))  # noqa: S311 - jitter


def _newest(jobs: Jobs, attempt: int, job: Job) -> tuple[int, Job]:
    while newer := jobs.look(attempt + 1):
        attempt, job = attempt + 1, newer
    return attempt, job
