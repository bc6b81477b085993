"""A file that kills the agent is set aside, and no other one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jostler.agent.intake import Intake, Taken
from jostler.agent.tally import Tally
from jostler.bundle import NOTED_BYTES, Confined, Judging
from jostler.watchdir import How
from tests.unit.agent.parts import open_bundles, rules_of

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.bundle import OpenBundles
    from jostler.schema import Flaw

DEADLY = b'{"a":"' + b"x" * NOTED_BYTES + b'"}'


def judge(document: bytes) -> Flaw | None:
    """Die of one document, as a process does that the kernel kills for its memory."""
    if document == DEADLY:
        os._exit(9)
    return None


def intake_of(root: Path) -> tuple[Intake, OpenBundles]:
    """Start an agent's intake in a process that was just started."""
    files = Confined(str(root / "spool"))
    bundles = open_bundles()
    judging = Judging(root / "judging", files)
    tally = Tally()
    rules = rules_of(root / "spool", judge=judge)
    return Intake(rules, files, bundles, tally, judging), bundles


def dies(root: Path, path: Path) -> bool:
    """Take a file in a process of its own; say whether it died."""
    child = os.fork()
    if not child:
        intake_of(root)[0].take(str(path), How.EVENT)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def write(root: Path, name: str, content: bytes) -> Path:
    path = root / "spool/foo1/2026/01/02" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_a_file_that_killed_the_agent_twice_is_rejected_unjudged(tmp_path: Path) -> None:
    """Good neighbours of its size, judged in between, are taken, and do not make it forgotten."""
    deadly = write(tmp_path, "deadly.json", DEADLY)
    good = write(tmp_path, "good.json", DEADLY.replace(b"a", b"b", 1))
    assert dies(tmp_path, deadly)
    assert not dies(tmp_path, good)
    assert dies(tmp_path, deadly)
    assert not dies(tmp_path, good)

    intake, bundles = intake_of(tmp_path)
    assert intake.take(str(deadly), How.EVENT) is Taken.ADDED
    assert intake.take(str(good), How.EVENT) is Taken.ADDED

    reasons = [bundle.rejection("foo1/2026/01/02/deadly.json") for bundle in bundles.open_bundles]
    assert [found.reason for found in reasons if found] == ["too-complex"]
    assert len(bundles.open_bundles) == 2


def test_a_file_that_was_mended_is_judged(tmp_path: Path) -> None:
    """What was noted is of a state, not of a path."""
    path = write(tmp_path, "m.json", DEADLY)
    assert dies(tmp_path, path)
    assert dies(tmp_path, path)
    write(tmp_path, "m.json", DEADLY.replace(b"a", b"b", 1))
    intake, bundles = intake_of(tmp_path)
    assert intake.take(str(path), How.EVENT) is Taken.ADDED
    assert [bundle.header.name.datatype for bundle in bundles.open_bundles] == ["foo1"]


@pytest.mark.parametrize("note", [b"", b"null", b"[[1]]", b'[["x"', b"\xff", b'{"a":1}'])
def test_a_damaged_note_stops_nobody(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "judging").write_bytes(note)
    path = write(tmp_path, "m.json", DEADLY.replace(b"a", b"b", 1))
    assert not dies(tmp_path, path)
