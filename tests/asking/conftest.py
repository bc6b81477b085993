"""An archive in a directory, with the bundles that a test asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.asking.archive import Archive

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "bucket")
