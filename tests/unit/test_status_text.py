"""`jostler status`: a screen that fits, with what is wrong first; or all details."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.cli.status_text import details, screen
from tests.browser import documents

NAMES = st.one_of(
    st.text(min_size=1, max_size=300), st.sampled_from(["\x1b[2J", "日本語" * 40, "\u202e", "a\nb"])
)


def columns(line: str) -> int:
    """Count as terminals do: wide characters are two columns."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in line)
    return len(line) + wide - sum(map(bool, map(unicodedata.combining, line)))


def busy(datatypes: int = 60) -> dict[str, Any]:
    """Return the document of an agent with many datatypes, errors and rejects."""
    document = documents.bucket_down()
    document["datatypes"] += [documents.datatype(f"type{n}") for n in range(datatypes)]
    document["datatypes"][0]["level"] = "bad"
    document["datatypes"][0]["rejected"] = documents.rejects(50)
    document["uploads"]["errors"] *= 10
    document["health"]["problems"] *= 10
    return document


@pytest.mark.parametrize("state", documents.STATES)
def test_whatever_happens_it_fits_a_terminal(state: str) -> None:
    """80 columns, and 24 lines with the prompt."""
    lines = screen(documents.STATES[state]()).splitlines()

    assert max(map(columns, lines)) <= 80
    assert len(lines) <= 23


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_no_name_or_number_breaks_out_of_the_screen(data: st.DataObject) -> None:
    """However long, wide or hostile."""
    document = busy(data.draw(st.integers(0, 40)))
    for datatype in document["datatypes"][:3]:
        datatype["name"] = data.draw(NAMES)
        datatype["waiting"]["files"] = data.draw(st.integers(0, 10**15))
    document["datatypes"][0]["rejected"][0]["file"] = data.draw(NAMES)
    document["health"]["headline"] = data.draw(NAMES)
    document["agent"]["bucket"] = data.draw(NAMES)
    width, height = data.draw(st.integers(60, 200)), data.draw(st.integers(24, 80))

    lines = screen(document, width, height).split("\n")[:-1]

    assert max(map(columns, lines)) <= width
    assert len(lines) < height
    assert all(line.isprintable() for line in lines)
    assert all(line.isprintable() for line in details(document).split("\n"))


def test_what_is_wrong_comes_first_and_what_is_left_out_is_counted() -> None:
    """Then the datatypes, in the document's order, which has those with problems first."""
    document = busy()

    text = screen(document)

    assert text.startswith("BAD  Uploads have been failing since 07:31 UTC")
    assert "X  ndt7" in text
    assert "datatypes more: jostler status -full" in text
    assert "type59" not in text
    assert "type59: 89,690 archived in 96 bundles" in details(document)


def test_the_runbook_is_named_or_linked() -> None:
    """By its address, if the agent was given one."""
    document = documents.bucket_down()
    assert "https://docs.example.org/runbook.md#uploads-failing" in screen(document)
    document["health"]["problems"][0]["runbook"] = None
    assert "runbook: uploads-failing" in screen(document)


def test_the_same_error_of_many_bundles_is_told_once() -> None:
    """With its counts."""
    document = documents.bucket_down()
    document["uploads"]["errors"][0] |= {"times": 1200, "failing": 40}

    text = screen(document)

    assert text.count("error 1,200 times, 40 failing now, last 20 s ago (TransientError)") == 1


def test_when_the_disk_is_full_is_said() -> None:
    """If it fills."""
    document = documents.well()
    assert "full in" not in screen(document)
    document["spool"]["full_in_s"] = 12_000
    assert "7.6 GiB free of 20.0 GiB, full in 3 h 20 min" in screen(document)
