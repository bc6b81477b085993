"""The version of jostler and the commit that it was built from; neither is ever empty."""

from __future__ import annotations

import os

UNKNOWN = "unknown"


def version() -> str:
    """Return the version that the build wrote down, without the local part of a checkout."""
    try:
        from jostler._version import version as written  # noqa: PLC0415 - as below
    except ImportError:
        return _installed_version()
    return written.partition("+")[0]


def _installed_version() -> str:
    """Return the version of the installed distribution; to look for it takes a tenth of a start."""
    from importlib import metadata  # noqa: PLC0415 - as above

    try:
        return metadata.version("jostler").partition("+")[0]
    except metadata.PackageNotFoundError:
        return UNKNOWN


def commit() -> str:
    """Return the commit: the one set in the image, else the one that the build wrote down."""
    if found := os.environ.get("JOSTLER_COMMIT", ""):
        return found
    try:
        from jostler._version import commit_id  # noqa: PLC0415 - written by the build
    except ImportError:
        return UNKNOWN
    return (commit_id or UNKNOWN).removeprefix("g")
