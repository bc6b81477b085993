"""The errors of jostler, named for what their catcher must do.

    JostlerError
    ├── ConfigError      wrong use: report every problem, exit 2, touch nothing
    ├── RecordError      this file can never be archived as data: set it aside, count it, go on
    ├── SchemaError      a schema is wrong, or not what the stored one can become: do not start
    ├── QueryError       BigQuery did not answer a question
    └── StorageError     the bucket did not do what was asked
        ├── TransientError   nothing is known about the object; ask again later
        │   ├── AuthError        credentials or permissions; ask again, but a person must act
        │   ├── QuotaError       too fast or too much; ask again more slowly
        │   └── RefusedError     the bucket says no for good; ask again, but a person must act
        ├── ConflictError    the name already holds different bytes
        └── MissingError     there is no such object

Every error says what was tried, on what, what was expected and what was found; `hint` tells an
operator what to do about it.
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
    """A schema that is wrong in itself or that the stored one cannot become.

    Attributes:
        problems: every problem found, each one line that begins with the field's path.
    """

    def __init__(self, message: str, problems: list[str], *, hint: str = "") -> None:
        super().__init__("\n  ".join([message, *problems]), hint=hint)
        self.problems = problems


def told(exc: Exception) -> str:
    """Say an error in words that do not change from one object, or temporary file, to the next.

    So the same cause of many can be told once.
    """
    if isinstance(exc, StorageError):
        return exc.cause
    if isinstance(exc, OSError) and exc.strerror:
        where = os.path.dirname(str(exc.filename or ""))  # noqa: PTH120 - the path is text
        return f"{where}: {exc.strerror}" if where else exc.strerror
    return str(exc) or type(exc).__name__


class QueryError(JostlerError):
    """BigQuery refused a question, or cannot be asked."""


class StorageError(JostlerError):
    """The bucket did not do what was asked.

    Attributes:
        cause: why, in words and without the object's name, so that the same cause of many objects
            can be told once; the whole message if nothing shorter is known.
    """

    def __init__(self, message: str, *, hint: str = "", cause: str = "") -> None:
        super().__init__(message, hint=hint)
        self.cause = cause or message


class TransientError(StorageError):
    """Nothing is known about the object: the request may or may not have been carried out."""


class AuthError(TransientError):
    """The bucket does not know us or does not let us; retried, because grants arrive late."""


class QuotaError(TransientError):
    """The bucket asks us to slow down."""


class RefusedError(TransientError):
    """The bucket refuses for a reason that time alone is unlikely to mend; retried all the same."""


class ConflictError(StorageError):
    """The name already holds different bytes, or the object changed since it was read."""


class MissingError(StorageError):
    """There is no object of that name."""
