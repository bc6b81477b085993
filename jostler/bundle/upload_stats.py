"""Counts of commit steps: attempts, failures by class, the last errors, since when they fail.

**Invariant:** any thread may report, any may read; what is read is a copy.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque

from msgspec import Struct, field
from msgspec.structs import replace

from jostler.errors import JostlerError, stable_text

FAILURES_KEPT = 20
ERRORS_KEPT = 20
OBJECTS_KEPT = 100


class FailedAttempt(Struct, frozen=True, kw_only=True):
    """One failed attempt.

    Attributes:
        at_s: Unix time.
        kind: class of the error, such as `QuotaError`.
        what: object that was to be stored, or `journal`.
        text: why, in words that are the same for every object.
        hint: what an operator can do.
        tries: how often this step has failed by now.
        next_try_s: seconds until it is tried again.
    """

    at_s: float
    kind: str
    what: str
    text: str
    hint: str
    tries: int
    next_try_s: float

    @classmethod
    def of(
        cls, exc: Exception, what: str, *, hint: str, tries: int, next_try_s: float
    ) -> FailedAttempt:
        """Take the facts from an error that was just caught."""
        kind = "OSError" if isinstance(exc, OSError) else "Unforeseen"
        if isinstance(exc, JostlerError):
            kind = type(exc).__name__
        return cls(
            at_s=time.time(),
            kind=kind,
            what=what,
            text=stable_text(exc),
            hint=hint,
            tries=tries,
            next_try_s=next_try_s,
        )


class Recurring(Struct, frozen=True, kw_only=True):
    """One kind of error, with a count of all objects and tries that it hit.

    Attributes:
        last: its last attempt.
        first_s: Unix time of its first one.
        times: attempts that it ended.
        objects: the last ones that it hit, newest last, `OBJECTS_KEPT` at most.
        failing: of all steps, those that fail because of it now.
    """

    last: FailedAttempt
    first_s: float
    times: int = 0
    objects: tuple[str, ...] = ()
    failing: int = 0

    def again(self, failure: FailedAttempt) -> Recurring:
        """Return the same error with one more attempt counted."""
        others = [name for name in self.objects if name != failure.what]
        return replace(
            self,
            last=failure,
            times=self.times + 1,
            objects=(*others[1 - OBJECTS_KEPT :], failure.what),
        )


class UploadCounts(Struct, frozen=True, kw_only=True):
    """A copy of all counts at one moment.

    Attributes:
        attempts: steps tried, of bucket and journal, by datatype.
        failures: of these, by (datatype, class of error).
        failing_since_s: Unix time; 0 while nothing fails.
        last_failures: the last ones, oldest first.
        errors: the last ones, newest first, equal ones once.
        tries: failed attempts so far, by the name of a data bundle that is not yet stored.
    """

    attempts: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    failing_since_s: float = 0.0
    last_failures: tuple[FailedAttempt, ...] = ()
    errors: tuple[Recurring, ...] = ()
    tries: dict[str, int] = field(default_factory=dict)


class UploadStats:
    """Counts the steps of all commits; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = UploadCounts()
        self._last_failures: deque[FailedAttempt] = deque(maxlen=FAILURES_KEPT)
        self._failing: dict[tuple[str, str], tuple[str, str]] = {}
        self._errors: dict[tuple[str, str], Recurring] = {}

    def begun(self, datatype: str) -> None:
        """Count the begin of a step."""
        with self._lock:
            self._counts.attempts[datatype] += 1

    def failed(self, datatype: str, bundle: str, failure: FailedAttempt) -> None:
        """Count a failure of a step that will be tried again."""
        with self._lock:
            self._counts.failures[datatype, failure.kind] += 1
            self._last_failures.append(failure)
            self._counts.tries[bundle] = self._counts.tries.get(bundle, 0) + 1
            error = (failure.kind, failure.text)
            self._failing[bundle, failure.what] = error
            known = self._errors.pop(error, None)
            known = known or Recurring(last=failure, first_s=failure.at_s)
            self._errors[error] = known.again(failure)  # the newest stands last
            while len(self._errors) > ERRORS_KEPT:
                del self._errors[next(iter(self._errors))]
            if not self._counts.failing_since_s:
                self._counts = replace(self._counts, failing_since_s=time.time())

    def ended(self, bundle: str, what: str) -> None:
        """End the failing of a step: it succeeded, or was given up."""
        with self._lock:
            self._failing.pop((bundle, what), None)
            if not self._failing:
                self._counts = replace(self._counts, failing_since_s=0.0)

    def forget(self, bundle: str) -> None:
        """Drop the count of tries of a bundle that is stored or given up."""
        with self._lock:
            self._counts.tries.pop(bundle, None)

    def counts(self) -> UploadCounts:
        """Return a copy of all counts."""
        with self._lock:
            return UploadCounts(
                attempts=self._counts.attempts.copy(),
                failures=self._counts.failures.copy(),
                failing_since_s=self._counts.failing_since_s,
                last_failures=tuple(self._last_failures),
                errors=self._recurring(),
                tries=dict(self._counts.tries),
            )

    def _recurring(self) -> tuple[Recurring, ...]:
        failing = Counter(self._failing.values())
        return tuple(
            replace(known, failing=failing[error])
            for error, known in reversed(self._errors.items())
        )
