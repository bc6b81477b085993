"""A file that kills the agent is set aside, and no other one."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from jostler.agent.verdicts import Bad, Good
from jostler.bundle import NOTED_BYTES
from tests.unit.agent.parts import DAY, Looking

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.agent.verdicts import Verdict
    from jostler.schema import Flaw

DEADLY = b'{"a":"' + b"x" * NOTED_BYTES + b'"}'


def judge(document: bytes) -> Flaw | None:
    """Die of one document, as a process does that the kernel kills for its memory."""
    if document == DEADLY:
        os._exit(9)
    return None


def look(root: Path, path: str) -> Verdict:
    """Look at a file in a process that was just started."""
    return Looking(root, judge=judge).look(path)


def dies(root: Path, path: str) -> bool:
    """Look at a file in a process of its own; say whether it died."""
    child = os.fork()
    if not child:
        look(root, path)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


def write(root: Path, name: str, content: bytes) -> str:
    path = f"{DAY}/{name}"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)
    return path


def test_a_file_that_killed_the_agent_twice_is_rejected_unjudged(tmp_path: Path) -> None:
    """Good neighbours of its size, judged in between, are taken, and do not make it forgotten."""
    deadly = write(tmp_path, "deadly.json", DEADLY)
    good = write(tmp_path, "good.json", DEADLY.replace(b"a", b"b", 1))
    assert dies(tmp_path, deadly)
    assert not dies(tmp_path, good)
    assert dies(tmp_path, deadly)
    assert not dies(tmp_path, good)

    bad = look(tmp_path, deadly)
    assert isinstance(bad, Bad)
    assert bad.rejection.reason == "too-complex"
    assert isinstance(look(tmp_path, good), Good)


def test_a_file_that_was_mended_is_judged(tmp_path: Path) -> None:
    """What was noted is of a state, not of a path."""
    path = write(tmp_path, "m.json", DEADLY)
    assert dies(tmp_path, path)
    assert dies(tmp_path, path)
    write(tmp_path, "m.json", DEADLY.replace(b"a", b"b", 1))
    assert isinstance(look(tmp_path, path), Good)


def test_a_file_that_is_mended_while_the_agent_runs_is_judged(tmp_path: Path) -> None:
    """The note was read when the agent started."""
    path = write(tmp_path, "m.json", DEADLY)
    assert dies(tmp_path, path)
    assert dies(tmp_path, path)
    looking = Looking(tmp_path, judge=judge)
    write(tmp_path, "m.json", DEADLY.replace(b"a", b"b", 1) + b"\n")
    assert isinstance(looking.look(path), Good)


def test_a_short_note_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    """Else the death of a file would be forgotten with it."""
    note = tmp_path / "judging"
    note.write_bytes(b"x" * (1 << 16))
    deadly = write(tmp_path, "deadly.json", DEADLY)
    assert dies(tmp_path, deadly)
    assert [row[0] for row in json.loads(note.read_bytes())] == [deadly]


@pytest.mark.parametrize("note", [b"", b"null", b"[[1]]", b'[["x"', b"\xff", b'{"a":1}'])
def test_a_damaged_note_stops_nobody(tmp_path: Path, note: bytes) -> None:
    (tmp_path / "judging").write_bytes(note)
    path = write(tmp_path, "m.json", DEADLY.replace(b"a", b"b", 1))
    assert not dies(tmp_path, path)
