"""What several tests share: one real GCS server for the whole run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.gcs import GcsServer

if TYPE_CHECKING:
    from collections.abc import Iterator


LONGEST_FIRST = ("loader", "crash", "demo", "spark", "e2e", "k8s", "browser", "embedded")
"""Folders whose files take long: one that began last would be waited for by all workers."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; within a file the order stays."""

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=rank)


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """Run a GCS server that keeps its objects in memory."""
    with GcsServer() as server:
        yield server
