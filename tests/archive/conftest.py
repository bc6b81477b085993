"""What several modules of tests about serving share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.serving import Serving, made_archive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.archive import MadeArchive


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A server whose archive a test chooses."""
    with Serving() as started:
        yield started


@pytest.fixture
def made(tmp_path: Path) -> MadeArchive:
    """A small archive of the test's own."""
    return made_archive(tmp_path)
