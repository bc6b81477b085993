"""The check whether the packages of the extra `loader` are installed; the agent needs none.

**Invariant:** the packages are looked up, never imported.
"""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = ("google.cloud.bigquery", "pandas", "pyarrow", "pyspark", "xxhash")


def missing(*packages: str, extra: str = "loader") -> str:
    """Return a sentence: what is not installed and how to install it; empty if nothing is."""
    lacking = [name for name in packages if not _is_there(name)]
    if not lacking:
        return ""
    verb = "is" if len(lacking) == 1 else "are"
    return f"{', '.join(lacking)} {verb} not installed: pip install 'jostler[{extra}]'"


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a package above it is missing
        return False
