"""The errors of jostler, named after what whoever catches them must do.

    JostlerError
    ├── ConfigError      wrong use: report every problem, exit 2, touch nothing
    ├── RecordError      this file can never be archived as data: set it aside, count it, go on
    ├── SchemaError      a schema is invalid or incompatible with the stored one: do not start
    ├── QueryError       a BigQuery query failed
    ├── DamageError      stored bytes are not what their index says: do not use them, find out why
    └── StorageError     a request to the bucket failed
        ├── TransientError   the outcome of the request is unknown: retry later
        │   ├── AuthError        credentials or permissions: retry, but a person must act
        │   ├── QuotaError       too fast or too much: retry more slowly
        │   └── RefusedError     the bucket refuses permanently: retry, but a person must act
        ├── ConflictError    the name already holds different bytes
        └── MissingError     there is no such object

Every message names what was tried, on what, what was expected and what was found; `hint` says what
an operator can do about it.
"""

from __future__ import annotations

import os


class JostlerError(Exception):
    """The root of everything jostler raises on purpose."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(JostlerError):
    """The command line, the environment or a file named there is wrong.

    Attributes:
        problems: every problem found, each one line that names the flag and the reason.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class RecordError(JostlerError):
    """A file that can never be archived as data."""


class SchemaError(JostlerError):
    """A schema is invalid, or incompatible with the stored one.

    Attributes:
        problems: every problem found, each one line that begins with the field's path.
    """

    def __init__(self, message: str, problems: list[str], *, hint: str = "") -> None:
        super().__init__("\n  ".join([message, *problems]), hint=hint)
        self.problems = problems


def stable_text(exc: Exception) -> str:
    """Describe an error without the names of objects and temporary files.

    Errors of the same cause then have the same text, so that it can be reported once with a count.
    """
    if isinstance(exc, StorageError):
        return exc.cause
    if isinstance(exc, OSError) and exc.strerror:
        where = os.path.dirname(str(exc.filename or ""))  # noqa: PTH120 - the path is text
        return f"{where}: {exc.strerror}" if where else exc.strerror
    return str(exc) or type(exc).__name__


class QueryError(JostlerError):
    """BigQuery refused a query, or could not be reached."""


class DamageError(JostlerError):
    """Stored bytes are not what their index says."""


class StorageError(JostlerError):
    """A request to the bucket failed.

    Attributes:
        cause: the reason, in words and without the object's name, so that one cause that hits many
            objects can be reported once; the whole message if nothing shorter is known.
    """

    def __init__(self, message: str, *, hint: str = "", cause: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause or message


class TransientError(StorageError):
    """The outcome is unknown: the request may or may not have been carried out."""


class AuthError(TransientError):
    """Credentials or permissions are missing; retried, because a grant may take effect later."""


class QuotaError(TransientError):
    """The bucket asks its clients to slow down (HTTP 429 or a quota)."""


class RefusedError(TransientError):
    """The bucket refuses for a reason that is unlikely to go away by itself; retried anyway."""


class ConflictError(StorageError):
    """The name already holds different bytes, or the object changed since it was read."""


class MissingError(StorageError):
    """There is no object of that name."""
