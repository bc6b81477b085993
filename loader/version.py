"""Which versions a run has, for the rows that it writes."""

from __future__ import annotations

import platform
from importlib import metadata


def version_of_run() -> str:
    """Return the versions of Python, jostler and Spark, for the ledger."""
    parts = [f"python {platform.python_version()}"]
    for package in ("jostler", "pyspark"):
        try:
            parts.append(f"{package} {metadata.version(package).partition('+')[0]}")
        except metadata.PackageNotFoundError:  # shipped as a zip
            parts.append(f"{package} unknown")
    return ", ".join(sorted(parts))
