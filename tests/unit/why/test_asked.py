"""What somebody typed, taken apart."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.agent.ages import Ages
from jostler.agent.why.live import Remembered
from jostler.agent.why.questions import Questions
from jostler.agent.why.spool import AgentView
from jostler.bundle import Limits
from jostler.why.asked import Asked, parse

if TYPE_CHECKING:
    from jostler.agent.why.again import Again

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


def remembered() -> Remembered:
    """Make what an agent remembers that has not seen any file."""
    limits = Limits(max_bytes=1, max_age_s=1.0)
    return Remembered(
        agent=AgentView(runs=True),
        bundles=(),
        limits=limits,
        again=cast("Again", None),  # there is nothing to judge again
        spool=SPOOL,
        ages=Ages(0.0, 0.0),
        in_bundles=(),
        stay={},
        doubtful={},
        uploads={},
    )


def test_a_loop_that_does_not_answer_is_not_waited_for_longer_than_was_said() -> None:
    """And nothing is copied for somebody who waits no more."""
    questions = Questions(lambda: None)

    assert questions.ask(patience_s=0.01) is None

    questions.answer(lambda: pytest.fail("nobody waits for this"))


def in_line(questions: Questions, count: int) -> list[threading.Thread]:
    """Let threads ask, and wait until all of them are in line."""
    asking = [
        threading.Thread(target=questions.ask, args=(30.0,), daemon=True) for _ in range(count)
    ]
    for thread in asking:
        thread.start()
    until = time.monotonic() + 60
    while questions._line.qsize() < count:
        assert time.monotonic() < until
    return asking


def test_questions_in_line_are_bounded() -> None:
    """A page that asks in a loop cannot fill the agent's memory."""
    questions = Questions(lambda: None)
    asking = in_line(questions, 16)

    began_s = time.monotonic()
    assert questions.ask(patience_s=30.0) is None
    assert time.monotonic() - began_s < 30

    questions.answer(remembered)
    for thread in asking:
        thread.join(60)
        assert not thread.is_alive()


def test_a_round_of_the_loop_copies_its_memory_once_however_many_ask() -> None:
    """Who asks again meanwhile waits for the next round: clients in a loop cannot hold it up."""
    questions = Questions(lambda: None)
    asking = in_line(questions, 3)
    again: list[threading.Thread] = []

    def remember() -> Remembered:
        assert not again, "the loop was held up"
        again.extend(in_line(questions, 1))
        return remembered()

    questions.answer(remember)

    for thread in asking:
        thread.join(60)
        assert not thread.is_alive()
    questions.answer(remembered)
    again[0].join(60)
    assert not again[0].is_alive()


def test_one_thread_at_a_time_searches_what_was_copied() -> None:
    """The others wait for their turn, for so long and no longer."""
    questions = Questions(lambda: None)
    with questions.turn(0.0) as first, questions.turn(0.01) as second:
        assert (first, second) == (True, False)
    with questions.turn(0.0) as third:
        assert third
