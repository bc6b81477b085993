"""Ask an archive from Python: `jostler.open("gs://archive").query("SELECT …")`.

**Invariant:** importing jostler imports no Spark, no BigQuery client and no loader; `open` does.

The loader is found by its name when it is asked for.  An entry point would need the metadata of an
installed package, and a driver or executor of Spark may have the code as a zip.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from jostler.errors import ConfigError

_MODULE = "loader.query.archive"


def open_archive(buckets: Any, **options: Any) -> Any:  # noqa: ANN401 - the loader's types are not known here
    """Open an archive to be asked; see docs/query.md.

    Args:
        buckets: `gs://NAME` or `file:///DIR`, or a list of such.
        options: those of `loader.query.archive.Archive`, which this returns.

    Raises:
        ConfigError: the packages of the extra `loader` are not installed.
    """
    try:
        module = import_module(_MODULE)
    except ModuleNotFoundError as exc:
        problem = f"{exc.name} is not installed: pip install 'jostler[loader,query]'"
        raise ConfigError([problem]) from exc
    return module.Archive(buckets, **options)
