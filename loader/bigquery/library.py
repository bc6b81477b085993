"""The library `google.cloud.bigquery`, imported without pandas.

**Invariant:** a later import of pandas works as usual.

The library imports pandas wherever it is installed, to make data frames, which the loader does not
ask for.  Spark needs pandas on the driver, so it is always there, and took a third of the CPU of an
hourly run.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Let imports of a module fail as if it were not installed, unless it is imported already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = cast("ModuleType", None)  # the documented way to say that there is none
    try:
        yield
    finally:
        del sys.modules[name]


with _absent("pandas"):
    from google.cloud import bigquery
    from google.cloud.bigquery.retry import DEFAULT_JOB_RETRY, DEFAULT_RETRY

__all__ = ["DEFAULT_JOB_RETRY", "DEFAULT_RETRY", "bigquery"]
