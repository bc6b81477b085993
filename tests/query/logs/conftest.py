from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.query.logs.archive import Archive

if TYPE_CHECKING:
    from tests.loader.world import BigQueryServer


@pytest.fixture(scope="session")
def archive(warehouse: BigQueryServer) -> Archive:
    """The tables of `archive.ROWS` in the embedded BigQuery."""
    return Archive(warehouse.url)
