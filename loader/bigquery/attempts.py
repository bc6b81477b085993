"""Load one day: all its load jobs run one after another, even with several loaders.

**Invariant:** the load jobs of a day have numbers in their ids, and a loader submits number n + 1
only after it saw number n end.  BigQuery accepts an id at most once (a second insert gets HTTP
409), so two loaders can neither load a day at the same time nor replace newer data by older.  A
loader whose number is taken looks at that job; if it loaded another fingerprint, the loader lists
the bucket again before it uses the next number.  A job of the same fingerprint is adopted only if
its rows are still in the table (see `Jobs.counts`).

This needs no lock and no clock: a loader may stop at any point, for an hour or for ever.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from loader.errors import TRANSIENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.bigquery.warehouse import Job

TRIES = 3
LABEL = "jostler-fingerprint"
RUN_LABEL = "jostler-run"
LEDGER_LABEL = "jostler-ledger"
REQUEST_LABEL = "jostler-requested"
"""When the request was made that the job loads a day for: microseconds since 1970."""


class Jobs(Protocol):
    """The load jobs of one day."""

    def submit(self, attempt: int) -> tuple[Job, bool]:
        """Run the job with this number to its end, or wait for the job that has the number.

        Returns:
            The job, and whether this loader submitted it.
        """
        ...

    def look(self, attempt: int) -> Job | None:
        """Wait for the end of the job with this number; return None if there is none."""
        ...

    def counts(self, job: Job) -> bool:
        """Return whether a job that was found, not submitted now, makes a new job unnecessary.

        Call this only for the day's newest job, and only if it has our fingerprint.
        """
        ...

    def lost(self, job: Job) -> str:
        """Return why a new job would delete rows that a job of another fingerprint loaded.

        Returns:
            A sentence, if objects that it loaded are gone; else empty.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The result of loading a day.

    Attributes:
        attempt: the last number used.
        job: the job with that number; None if the load was overtaken.
        failed: the jobs that failed in this run, by number.
        overtaken: the bucket has changed since it was listed, so nothing was loaded.
        adopted: a job of another loader, or of an earlier run that was killed, had loaded the day.
        lost: why nothing was loaded, if loading would delete rows; else empty.
    """

    attempt: int
    job: Job | None
    failed: dict[int, Job]
    overtaken: bool = False
    adopted: bool = False
    lost: str = ""


def load(
    jobs: Jobs,
    fingerprint: str,
    attempt: int,
    *,
    is_unchanged: Callable[[], bool],
    pause: Callable[[int], None],
) -> Ended:
    """Load a day, in up to three attempts if BigQuery recommends a retry.

    Args:
        jobs: the day's load jobs.
        fingerprint: the fingerprint of what is to be loaded.
        attempt: the last number known to be used when the bucket was listed; its job had ended.
        is_unchanged: lists the day again; returns whether it still has this fingerprint.
        pause: waits before a retry; its argument is 1, 2, …

    Raises:
        WarehouseError: a request to BigQuery fails; a job may have been submitted nevertheless.
    """
    failed: dict[int, Job] = {}
    while True:
        attempt += 1
        job, ours = jobs.submit(attempt)
        if not ours:
            # The number may be an old one, used since the ledger was read; only the newest job says
            # what the table holds.  `continue` then takes the number after it.
            attempt, job = _newest(jobs, attempt, job)
            if job.labels.get(LABEL) != fingerprint:
                if not is_unchanged():
                    return Ended(attempt=attempt, job=None, failed=failed, overtaken=True)
                if why := jobs.lost(job):
                    return Ended(attempt=attempt, job=None, failed=failed, lost=why)
                continue
            if not jobs.counts(job):
                continue
        if not job.reason:
            return Ended(attempt=attempt, job=job, failed=failed, adopted=not ours)
        failed[attempt] = job
        # A job that ended with an error has used up its id (BigQuery's "Error messages": retry with
        # a new job id), so each retry takes the next number.
        if job.reason not in TRANSIENT or len(failed) >= TRIES:
            return Ended(attempt=attempt, job=job, failed=failed)
        pause(len(failed))


def pause(failed: int) -> None:
    """Wait before a retry: exponentially longer, with jitter.

    A partitioned table accepts 50 load jobs in ten seconds ("Quotas and limits").  Days that end
    together all write to the one ledger and can reach that limit.
    """
    time.sleep(2 ** (failed - 1) * random.uniform(0.5, 1))  # noqa: S311 - jitter


def _newest(jobs: Jobs, attempt: int, job: Job) -> tuple[int, Job]:
    while newer := jobs.look(attempt + 1):
        attempt, job = attempt + 1, newer
    return attempt, job
