"""What this is: the version and the commit it was built from, neither ever empty."""

from __future__ import annotations

import os
from importlib import metadata

UNKNOWN = "unknown"


def version() -> str:
    """Return the version of the installed distribution, without the local part of a checkout."""
    try:
        return metadata.version("jostler").partition("+")[0]
    except metadata.PackageNotFoundError:
        return UNKNOWN


def commit() -> str:
    """Return the commit: what the image was told, else what the build wrote down."""
    if told := os.environ.get("JOSTLER_COMMIT", ""):
        return told
    try:
        from jostler._version import commit_id  # noqa: PLC0415 - written by the build
    except ImportError:
        return UNKNOWN
    return (commit_id or UNKNOWN).removeprefix("g")
