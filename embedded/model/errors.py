"""Errors of the API: an HTTP status, BigQuery's reason and BigQuery's message.

**Invariant:** an `ApiError` that a handler raises becomes one error reply, and one that ends a job
becomes the job's `errorResult`, with the same reason and message.

Any other exception is a defect of this program; the reply to it has the reason `internalError`.
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
    """An error with BigQuery's reason and message.

    Args:
        reason: one of `STATUS`.
        message: the message for the client.
        location: the object or field that is wrong (`errors[].location`).
        more: the entries of `errors[]` after the first.
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
        """The HTTP status of the reason."""
        return STATUS[self.reason]

    def proto(self) -> dict[str, str]:
        """Return the error as an ErrorProto, as in a job's status."""
        proto = {"reason": self.reason, "message": self.message}
        if self.location:
            proto["location"] = self.location
        return proto

    def body(self) -> dict[str, Any]:
        """Return the body of an error reply."""
        return {
            "error": {
                "code": self.status,
                "message": self.message,
                "errors": [{**self.proto(), "domain": "global"}],
                "status": self.reason,
            }
        }


def invalid(message: str) -> ApiError:
    """Return an error for a request or job that can never succeed."""
    return ApiError("invalid", message)


def unsupported(what: str) -> ApiError:
    """Return an error for a feature of BigQuery that the embedded one does not have."""
    return ApiError("invalid", f"{what} is not supported by the embedded BigQuery")


def not_found(kind: str, name: str) -> ApiError:
    """Return an error for a resource that does not exist; `name` is in BigQuery's form."""
    return ApiError("notFound", f"Not found: {kind} {name}")


def already_exists(kind: str, name: str) -> ApiError:
    """Return an error for a resource that exists already."""
    return ApiError("duplicate", f"Already Exists: {kind} {name}")
