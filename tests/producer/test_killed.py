"""A small sample of the campaign of kills; `make torture` runs a larger one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.torture import pushes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_killed_push_leaves_no_half_written_file_and_can_be_repeated(tmp_path: Path) -> None:
    """At whatever moment it is killed, and whatever the agent takes meanwhile."""
    assert pushes.run(tmp_path / "foo1", kills=8, seed=1) > 0
