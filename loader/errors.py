"""The loader's errors, named after what the loader must do.

**Invariant:** a message says what was tried, on what, and what was found; a hint says what to do.

    LoaderError
    ├── UsageError        wrong options: exit 2 before anything is touched
    ├── BucketError       an object cannot be read or written: its day fails
    │   ├── MissingError  there is no such object, or it has another generation
    │   └── NoBucketError there is no such bucket
    ├── SchemaError       a table cannot be created or changed: its datatype fails
    ├── WarehouseError    BigQuery refused a request: the day fails
    └── RunError          the whole run fails: exit 1
"""

from __future__ import annotations


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


class SchemaError(LoaderError):
    """A datatype's table cannot be made or changed."""


class WarehouseError(LoaderError):
    """BigQuery refused a request; `reason` is BigQuery's own label."""

    def __init__(self, message: str, *, reason: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class RunError(LoaderError):
    """The run as a whole cannot go on."""
