"""Faults that a test injects with requests to `/_faults`, to see how a client handles them.

**Invariant:** a fault happens exactly the requested number of times; without requests to
`/_faults` there are no faults.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embedded.model.errors import STATUS, ApiError, invalid
from embedded.model.wire import Call, Json, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

REQUEST_FAULTS = frozenset(
    {
        "unavailable_before",
        "unavailable_after",
        "rate_limited",
        "quota_exceeded",
        "slow",
        "slow_after",
    }
)
JOB_FAULTS = frozenset({"job_error", "job_slow"})
_LOOK_S = 0.02
KEYS = frozenset({"fault", "times", "method", "path", "job", "seconds", "reason", "message"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault that will happen.

    Args:
        fault: the kind of fault.
        times: how often it will still happen.
        method: a regular expression for the whole method of a request.
        path: a regular expression, searched in the path of a request.
        job: a regular expression, searched in the id of a job.
        seconds: how long `slow`, `slow_after` and `job_slow` take.
        reason: BigQuery's reason for `job_error`.
        message: BigQuery's message for `job_error`.
    """

    fault: str
    times: int = 1
    method: str = ".*"
    path: str = ""
    job: str = ""
    seconds: float = 1.0
    reason: str = "backendError"
    message: str = "Error encountered during execution. Retrying may solve the problem."

    def to_api(self) -> Json:
        """Return the fault as JSON for `/_faults`."""
        return {key: getattr(self, key) for key in sorted(KEYS)}


class Faults:
    """The faults that will happen, in the order of the requests for them."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._cleared = threading.Event()
        self._lock = threading.Lock()

    def insert(self, call: Call) -> Reply:
        """Add a fault."""
        given = call.json()
        unknown = sorted(given.keys() - KEYS)
        if unknown:
            raise invalid(f"A fault has no {', '.join(unknown)}")
        fault = Fault(**given)
        if fault.fault not in REQUEST_FAULTS | JOB_FAULTS:
            raise invalid(f"Unknown fault {fault.fault!r}")
        if fault.reason not in STATUS:
            raise invalid(f"Unknown reason {fault.reason!r}")
        with self._lock:
            self._faults.append(fault)
        return Reply(fault.to_api())

    def list(self, _call: Call) -> Reply:
        """Return the faults that have not happened yet."""
        with self._lock:
            return Reply({"faults": [fault.to_api() for fault in self._faults]})

    def clear(self, _call: Call) -> Reply:
        """Remove all faults, also from jobs that wait because of one."""
        with self._lock:
            self._faults.clear()
            self._cleared.set()
            self._cleared = threading.Event()
        return Reply(status=204)

    def answer(self, call: Call, work: Callable[[], Reply]) -> Reply:
        """Handle a request, with the first fault that matches it.

        Raises:
            ApiError: the fault; depending on its kind the work was done before it.
        """
        fault = self._take(
            lambda fault: (
                fault.fault in REQUEST_FAULTS
                and bool(
                    re.fullmatch(fault.method, call.method) and re.search(fault.path, call.path)
                )
            )
        )
        if fault is None:
            return work()
        if fault.fault == "slow":
            time.sleep(fault.seconds)
        if fault.fault == "rate_limited":
            raise ApiError("rateLimitExceeded", "Exceeded rate limits: too many requests")
        if fault.fault == "quota_exceeded":
            raise ApiError("quotaExceeded", "Quota exceeded: too many jobs today")
        if fault.fault == "unavailable_before":
            raise ApiError("backendError", "Service is unavailable")
        reply = work()
        if fault.fault == "slow_after":
            time.sleep(fault.seconds)
        if fault.fault == "unavailable_after":
            raise ApiError("backendError", "Service is unavailable; the work was done")
        return reply

    def hold_job(self, job: str, cancelled: threading.Event) -> None:
        """Delay a job if a fault requests it, until the job is cancelled or faults are cleared."""
        cleared = self._cleared  # before the fault is taken, or a clearing in between is missed
        fault = self._take(lambda fault: _is_for(fault, "job_slow", job))
        if fault is None:
            return
        until_s = time.monotonic() + fault.seconds
        while (left_s := until_s - time.monotonic()) > 0 and not cleared.is_set():
            if cancelled.wait(min(left_s, _LOOK_S)):
                return

    def fail_job(self, job: str) -> None:
        """Fail a job if a fault requests it; called in the transaction that would end the job.

        Raises:
            ApiError: the fault.
        """
        fault = self._take(lambda fault: _is_for(fault, "job_error", job))
        if fault is not None:
            raise ApiError(fault.reason, fault.message)

    def _take(self, fits: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            for place, fault in enumerate(self._faults):
                if fits(fault):
                    rest = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                    self._faults[place : place + 1] = rest
                    return fault
        return None


def _is_for(fault: Fault, kind: str, job: str) -> bool:
    return fault.fault == kind and bool(re.search(fault.job, job))
