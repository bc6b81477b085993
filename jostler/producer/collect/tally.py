"""What was counted of one feed since the collector started.

**Invariant:** the event loop alone writes; other threads read single numbers at any moment.  Each
attempt ends as saved, unchanged or one failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jostler.producer.collect.answers import Failure


@dataclass(frozen=True, slots=True)
class Error:
    """The last failure: its class, in words, when (Unix time), and how many since a success."""

    failure: Failure
    words: str
    at_s: float
    times: int


@dataclass(slots=True)
class Tally:
    """Counts of one feed; times are Unix time, 0 for never.

    Attributes:
        attempts: fetches begun.
        saved: files written.
        unchanged: answers 304, and bodies that equal the last one.
        failures: by class; has each class from the beginning.
        seconds: of all attempts that ended, from the request until the file was durable.
        received_bytes: of bodies, as they were sent.
        success_s: the last answer that was saved or unchanged.
        saved_s: the last file's time.
        error: the last failure; None after a success.
    """

    attempts: int = 0
    saved: int = 0
    unchanged: int = 0
    failures: dict[Failure, int] = field(default_factory=lambda: dict.fromkeys(Failure, 0))
    seconds: float = 0.0
    received_bytes: int = 0
    success_s: float = 0.0
    saved_s: float = 0.0
    error: Error | None = None

    def fail(self, failure: Failure, words: str, at_s: float) -> None:
        """Count a failure."""
        self.failures[failure] += 1
        times = self.error.times + 1 if self.error else 1
        self.error = Error(failure, words, at_s, times)

    def succeed(self, at_s: float, *, saved: bool) -> None:
        """Count a success."""
        if saved:
            self.saved += 1
            self.saved_s = at_s
        else:
            self.unchanged += 1
        self.success_s = at_s
        self.error = None
