"""What the API says no with: an HTTP status, BigQuery's reason and BigQuery's sentence.

**Invariant:** an `ApiError` that leaves a handler becomes exactly one error reply, and one that
ends a job becomes exactly its `errorResult`; both say the same words.

It refuses to guess: a fault of our own is no `ApiError` and is answered as `internalError`.
"""

from __future__ import annotations

from typing import Any

# Reason → HTTP status: "Error messages", https://docs.cloud.google.com/bigquery/docs/error-messages
STATUS = {
    "accessDenied": 403,
    "backendError": 503,
    "conditionNotMet": 412,
    "duplicate": 409,
    "internalError": 500,
    "invalid": 400,
    "invalidQuery": 400,
    "jobRateLimitExceeded": 400,
    "notFound": 404,
    "quotaExceeded": 403,
    "rateLimitExceeded": 403,
    "resourceInUse": 400,
    "stopped": 499,
}


class ApiError(Exception):
    """A refusal in BigQuery's words.

    Args:
        reason: one of `STATUS`.
        message: the sentence that the caller sees.
        location: the object or field at fault, as `errors[].location`.
        more: further entries of `errors[]`, after the first.
    """

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        location: str = "",
        more: tuple[dict[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.location = location
        self.more = more

    @property
    def status(self) -> int:
        """The HTTP status that goes with the reason."""
        return STATUS[self.reason]

    def proto(self) -> dict[str, str]:
        """Render as an ErrorProto, which a job's status holds."""
        proto = {"reason": self.reason, "message": self.message}
        if self.location:
            proto["location"] = self.location
        return proto

    def body(self) -> dict[str, Any]:
        """Render as the body of an error reply."""
        return {
            "error": {
                "code": self.status,
                "message": self.message,
                "errors": [{**self.proto(), "domain": "global"}],
                "status": self.reason,
            }
        }


def invalid(message: str) -> ApiError:
    """A request or a job that can never succeed as it stands."""
    return ApiError("invalid", message)


def unsupported(what: str) -> ApiError:
    """Something that BigQuery has and this stand-in has not; never answered with a guess."""
    return ApiError("invalid", f"{what} is not supported by the embedded BigQuery")


def not_found(kind: str, name: str) -> ApiError:
    """A resource that is not there, named as BigQuery names it."""
    return ApiError("notFound", f"Not found: {kind} {name}")


def already_exists(kind: str, name: str) -> ApiError:
    """A resource that is there already."""
    return ApiError("duplicate", f"Already Exists: {kind} {name}")
