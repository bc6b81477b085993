"""What several tests share: one real GCS server for the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.gcs import GcsServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """Run a GCS server that keeps its objects in memory."""
    with GcsServer() as server:
        yield server
