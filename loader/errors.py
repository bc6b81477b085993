"""The loader's errors, named after what the loader must do.

**Invariant:** a message says what was tried, on what, and what was found; a hint says what to do.

    LoaderError
    ├── UsageError        wrong options: exit 2 before anything is touched
    ├── BucketError       an object cannot be read or written: its day fails
    │   ├── MissingError  there is no such object, or it has another generation
    │   ├── NoBucketError there is no such bucket
    │   └── UnlistedError a bucket as a whole cannot be listed: the run fails
    ├── SchemaError       a table cannot be created or changed: its datatype fails
    ├── WarehouseError    BigQuery refused a request: the day fails
    └── RunError          the whole run fails: exit 1
"""

from __future__ import annotations

import re
from enum import StrEnum


class FailureClass(StrEnum):
    """What kind of failure kept a day from being loaded, and so who can do something about it."""

    TRANSIENT = "transient"
    """It passes by itself: try again."""
    DATA = "data"
    """The files, or the objects of the day, are not as they should be."""
    SCHEMA = "schema"
    """The table cannot have the columns of the datatype's schema."""
    PERMISSION = "permission"
    """The loader may not do something, or somebody has not made something for it."""
    QUOTA = "quota"
    """A quota of hours or days is used up: it passes, but not within a run."""
    BUG = "bug"
    """Nobody foresaw it."""


TRANSIENT = frozenset(
    {
        *("backendError", "internalError", "rateLimitExceeded", "jobRateLimitExceeded"),
        *("jobBackendError", "jobInternalError", "tableUnavailable", "stopped", "timeout"),
        "resourcesExceeded",
    }
)
"""Error reasons for which BigQuery's documentation recommends a retry with a new job id."""
GONE = "ObjectsGone"
"""The ErrorClass of a day that was read, and had fewer good rows than it was loaded with."""
WOULD_LOSE = "WouldLoseRows"
"""The ErrorClass of a day that was not even read: objects are gone that it was loaded from."""
REFUSALS = frozenset({GONE, WOULD_LOSE})
"""ErrorClasses of days that no further try mends: they are refused, and told at once."""
_CLASSES = {
    FailureClass.TRANSIENT: TRANSIENT | {"CountMismatch", "MissingError", "notFound"},
    FailureClass.DATA: {"invalid", "TooManyBad", GONE, WOULD_LOSE, "AuditDiffers"},
    FailureClass.SCHEMA: {"SchemaError", "invalidSchema", "duplicate"},
    FailureClass.PERMISSION: {"accessDenied", "NoBucketError", "blocked"},
    FailureClass.QUOTA: {"quotaExceeded", "billingNotEnabled", "billingTierLimitExceeded"},
}
_REQUESTS = frozenset({"BucketError", "WarehouseError"})
_FORBIDDEN_RE = re.compile(r"\b40[13]\b|permission|credentials|access denied", re.IGNORECASE)
_QUOTA_RE = re.compile(r"quota exceeded", re.IGNORECASE)
_MEMORY_RE = re.compile(r"memory|executor was lost|JVM has ended", re.IGNORECASE)


def failure_class(label: str, text: str = "") -> FailureClass:
    """Return the class of a failure.

    Args:
        label: the ErrorClass of its ledger row: BigQuery's reason of a job, or the name of one of
            the loader's own errors.
        text: the ErrorText; it tells refused requests from those without an answer.
    """
    for kind, labels in _CLASSES.items():
        if label in labels:
            return kind
    if label in _REQUESTS:
        if _FORBIDDEN_RE.search(text):
            return FailureClass.PERMISSION
        return FailureClass.QUOTA if _QUOTA_RE.search(text) else FailureClass.TRANSIENT
    if label == "SparkError" and _MEMORY_RE.search(text):
        return FailureClass.TRANSIENT
    return FailureClass.BUG


class LoaderError(Exception):
    """Base of all errors raised on purpose."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.hint = hint


class UsageError(LoaderError):
    """Wrong options; `problems` has one line for each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class BucketError(LoaderError):
    """An object cannot be read or written."""


class MissingError(BucketError):
    """There is no such object at the generation that was listed."""


class NoBucketError(BucketError):
    """There is no bucket of this name."""


class UnlistedError(BucketError):
    """A bucket as a whole cannot be listed.

    Attributes:
        bucket: its URL.
        label: the name of the error that says why.
    """

    def __init__(self, bucket: str, why: BucketError) -> None:
        super().__init__(str(why))
        self.bucket = bucket
        self.label = type(why).__name__


class SchemaError(LoaderError):
    """A datatype's table cannot be made or changed."""


class WarehouseError(LoaderError):
    """BigQuery refused a request; `reason` is BigQuery's own label."""

    def __init__(self, message: str, *, reason: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class RunError(LoaderError):
    """The run as a whole cannot go on."""
