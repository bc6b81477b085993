"""Samples of the output of other programs, in files under tests/golden."""

from __future__ import annotations

import gzip
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"


def go(name: str) -> bytes:
    """Return a sample of the Go agent's output by its file name."""
    return (GOLDEN / "go" / name).read_bytes()


def go_bundle(name: str) -> bytes:
    """Return a sample as the Go agent uploads it: one gzip stream, no line feed at the end."""
    return gzip.compress(go(name), mtime=0)
