"""Numbers, sizes, durations and instants as a person reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler import words
from jostler.why.finding import Answer, Finding, State, as_text

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((0, "0 s"), (0.9, "0.9 s"), (8.04, "8 s"), (59.9, "59 s"), (60, "1 min")),
        *((528, "8 min 48 s"), (3600, "1 h"), (5880, "1 h 38 min"), (90_061, "1 d 1 h")),
        *((None, "–"), (float("nan"), "–"), (True, "–"), ("5", "–")),  # noqa: RUF001 - a dash
    ],
)
def test_durations_have_two_units(seconds: object, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (2_104_331, "2.0 MiB"),
        (1 << 50, "1024 TiB"),
    ],
)
def test_sizes_are_binary(count: int, said: str) -> None:
    assert words.size(count) == said


@given(st.text())
def test_printable_text_is_left_alone_and_the_rest_can_be_seen(text: str) -> None:
    """What is shown is printable and can be encoded; what was printable has not changed."""
    shown = words.visible(text)

    assert shown.isprintable()
    assert shown.encode().decode() == shown
    assert shown == text or not text.isprintable()


@given(st.text() | st.text("\x1b\x00\udcff\u202e[2Ja"))
def test_no_terminal_obeys_text_that_is_shown(text: str) -> None:
    """Nor does it fail to be encoded."""
    shown = words.shown(text)
    assert shown.isprintable()
    assert shown.encode().decode() == shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5880, "1 h 38 min ago"), (0, "now"), (90, "1 min 30 s ahead of this clock")],
)
def test_a_finding_says_how_long_ago_it_began(seconds: int, said: str) -> None:
    """Another machine's clock may be ahead."""
    since = NOW + timedelta(seconds=seconds)
    found = Finding(state=State.OPEN, file="f", since=since, why="w", next="n")
    assert f"since {words.rfc3339(since)} ({said})\n" in as_text(Answer.of([found], []), "f", NOW)
