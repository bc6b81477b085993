"""The embedded BigQuery as a process of its own, for the benches of the loader."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def bigquery(home: Path) -> Iterator[str]:
    """Run an embedded BigQuery with its data in `home`; yield its URL."""
    server = subprocess.Popen(
        [sys.executable, "-m", "embedded", "--data-dir", str(home), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout
        yield server.stdout.readline().split("listens on ")[1].split(",")[0]
    finally:
        server.terminate()
        server.wait()
