"""What somebody typed, taken apart."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.agent.why.live import Questions
from jostler.agent.why.local import Memory
from jostler.agent.why.spool import Doer
from jostler.why.asked import Asked, parse

SPOOL = "/var/spool/exp"
PATH = "foo1/2026/01/02/x.json"
PARTS = st.text(st.characters(exclude_characters="/\0"), min_size=1).filter(
    lambda part: part not in {".", ".."}
)


def ask(text: str) -> Asked:
    return parse(text, spool=SPOOL, datatypes=["foo1", "2026"])


@pytest.mark.parametrize(
    ("text", "datatype", "directory"),
    [
        (f"{SPOOL}/{PATH}", "foo1", "2026/01/02"),
        (f"{SPOOL}//foo1/./2026/01/02/x.json", "foo1", "2026/01/02"),
        (f"/host/spool/exp/{PATH}", "foo1", "2026/01/02"),
        (PATH, "foo1", "2026/01/02"),
        (f"exp/{PATH}", "foo1", "2026/01/02"),
        ("2026/01/02/x.json", "", "2026/01/02"),  # although a datatype looks like a year
        ("2025/01/02/x.json", "", "2025/01/02"),
        ("2025/13/45/x.json", "", "2025/13/45"),
        ("2026/2026/01/02/x.json", "2026", "2026/01/02"),
        ("foo1/x.json", "foo1", ""),
        (f"{SPOOL}/foo1/a/b/x.json", "foo1", "a/b"),
        ("x.json", "", None),
    ],
)
def test_a_name_is_taken_apart_as_far_as_it_tells(
    text: str, datatype: str, directory: str | None
) -> None:
    """What is not known stays empty."""
    asked = ask(text)

    assert (asked.datatype, asked.directory, asked.name) == (datatype, directory, "x.json")


@pytest.mark.parametrize("text", ["", "/", "foo1/", "../x", "foo1/../../etc/passwd", "a\0b", "."])
def test_what_names_no_file_is_refused(text: str) -> None:
    """Above all a path that leads out of the spool."""
    with pytest.raises(ValueError, match="names no file"):
        ask(text)


@given(st.lists(PARTS, min_size=1, max_size=7), PARTS)
def test_every_path_of_the_spool_is_found_by_its_own_name(folders: list[str], name: str) -> None:
    """By its absolute path and by its bare name, whatever bytes are in it."""
    path = "/".join([*folders, name])

    assert ask(f"{SPOOL}/{path}").matches(path)
    assert ask(name).matches(path)
    assert not ask(f"{SPOOL}/{path}").matches(f"{path}x")


@given(st.text())
def test_no_text_leads_out_of_the_spool(text: str) -> None:
    """Whatever is typed either is refused or stays below."""
    try:
        asked = ask(text)
    except ValueError:
        return
    assert ".." not in f"{asked.path}/{asked.filename}".split("/")
    assert not asked.path.startswith("/")


def test_a_loop_that_does_not_answer_is_not_waited_for_longer_than_was_said() -> None:
    """And what nobody waits for any more is not computed."""
    questions = Questions(lambda: None)

    assert questions.ask(ask(PATH), patience_s=0.01) is None

    questions.answer(lambda _: pytest.fail("nobody waits for this"))


def test_questions_in_line_are_bounded() -> None:
    """A page that asks in a loop cannot fill the agent's memory."""
    questions = Questions(lambda: None)
    asking = [
        threading.Thread(target=questions.ask, args=(ask(PATH), 30.0), daemon=True)
        for _ in range(16)
    ]
    for thread in asking:
        thread.start()
    until = time.monotonic() + 60
    while questions._line.qsize() < 16:
        assert time.monotonic() < until

    began_s = time.monotonic()
    assert questions.ask(ask(PATH), patience_s=30.0) is None
    assert time.monotonic() - began_s < 30

    questions.answer(lambda _: Memory(doer=Doer(runs=True)))
    for thread in asking:
        thread.join(60)
        assert not thread.is_alive()
