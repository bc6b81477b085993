"""What the Go agent writes, read from samples of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.format.go import is_bare, is_go_row, loadable_index
from jostler.schema import INDEX1_FIELDS, Judge
from tests.support.golden import go

LINES = go("index1.jsonl").split(b"\n")


def test_an_index_line_of_the_go_agent_fits_the_table_index1() -> None:
    """Its TimeAdded becomes a TIMESTAMP of the same instant; nothing else changes."""
    judge = Judge(INDEX1_FIELDS)
    assert judge.flaw(LINES[1]) is not None

    line = loadable_index(LINES[1])

    assert judge.flaw(line) is None
    assert json.loads(line) == {
        **json.loads(LINES[1]),
        "TimeAdded": "2026-01-02T03:04:06.123456Z",
    }


def test_a_whole_block_of_index_lines_can_be_rewritten_at_once() -> None:
    """And a second time, without effect."""
    block = b"\n".join(LINES)
    assert loadable_index(block) == b"\n".join(map(loadable_index, LINES))
    assert loadable_index(loadable_index(block)) == loadable_index(block)


@given(st.text())
def test_the_text_of_a_filename_is_never_rewritten(text: str) -> None:
    """Not even one that holds an index line."""
    sample = LINES[0].decode()
    line = json.dumps({"Filename": text + sample, "Size": 1, "TimeAdded": "x"}).encode()
    assert loadable_index(line) == line


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        (LINES[0], True),
        (go("data.jsonl").split(b"\n")[0], False),
        (b'{"date":"2026-01-02","raw":{"Filename":"x"}}', False),
        (b'{"Size":1}', False),
        (b"no json", False),
        (b"", False),
    ],
)
def test_bare_lines_are_told_from_rows(line: bytes, bare: bool) -> None:
    """By the keys of the line."""
    assert is_bare(line) is bare


def test_a_row_of_the_go_agent_is_told_from_ours_by_its_columns() -> None:
    """They are capitalised."""
    assert is_go_row(json.loads(go("data.jsonl").split(b"\n")[0]))
    assert not is_go_row({"date": "2026-01-02", "archiver": {}, "raw": {}})
    assert not is_go_row([])
