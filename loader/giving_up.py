"""Days that fail: when they are tried again in the same run, and when no run tries them any more.

**Invariant:** a day is given up only after it was tried, and failed, once more at the end of the
time; so a loader that did not run for a week gives up nothing that it has tried only once.

Pure.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING

from loader.bigquery.record import row_of_unread
from loader.errors import TRANSIENT, FailureClass
from loader.plan.due import Status

if TYPE_CHECKING:
    from datetime import datetime

    from loader.bigquery.record import Outcome, Run
    from loader.bigquery.warehouse import Json
    from loader.plan.due import Known

TRIES = 3
"""How often a day is tried in a run, if its failure can pass."""
PAUSE_S = 5.0
GROWTH = 3


def can_pass(outcome: Outcome) -> bool:
    """Return whether a day's failure can pass while the run lasts.

    A load job that BigQuery failed for a passing reason has had its tries already.
    """
    passing = outcome.failure is FailureClass.TRANSIENT and outcome.error not in TRANSIENT
    return outcome.status is Status.FAILED and passing


def pause_s(tries: int) -> float:
    """Return how long to wait after so many tries: longer each time, with jitter."""
    return float(PAUSE_S * GROWTH ** (tries - 1)) * random.uniform(0.5, 1)  # noqa: S311 - jitter


def failing_since(outcome: Outcome, known: Known, now: datetime, after_s: float) -> datetime | None:
    """Return since when a day has failed, if that is too long; else None.

    Args:
        outcome: how the day ended in this run.
        known: its newest ledger row before this run.
        now: the time.
        after_s: how long a day may fail.
    """
    same = known.status is Status.FAILED and known.fingerprint == outcome.day.fingerprint
    recorded = outcome.status is Status.FAILED and bool(outcome.error) and not outcome.overtaken
    if not (same and recorded and known.failed_since):
        return None
    return known.failed_since if now - known.failed_since >= timedelta(seconds=after_s) else None


def abandoned_row(outcome: Outcome, known: Known, run: Run, made_ms: int) -> Json:
    """Return the ledger row of a day that is given up; it counts no rows, the row before does."""
    return row_of_unread(
        outcome.day,
        Status.ABANDONED,
        known,
        run,
        made_ms=made_ms,
        why=(outcome.error, outcome.why),
        attempt=outcome.attempt,
    )
