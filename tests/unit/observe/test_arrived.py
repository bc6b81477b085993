"""What counts as an arrival, and when."""

from __future__ import annotations

from jostler.agent.observe.arrived import Arrived

ROOT = "/spool/exp/foo1"


def test_an_event_counts_when_it_comes() -> None:
    """However often the same sums are told."""
    arrived = Arrived("/spool/exp")
    arrived.note({ROOT: 3}, {}, 100.0)
    arrived.note({ROOT: 3}, {}, 200.0)
    assert (arrived.files, arrived.last_s) == ({"foo1": 3}, {"foo1": 100.0})
    arrived.note({ROOT: 4}, {}, 300.0)
    assert (arrived.files, arrived.last_s) == ({"foo1": 4}, {"foo1": 300.0})


def test_a_file_that_only_a_scan_brings_counts_when_it_does() -> None:
    """Such as those that were there before the agent."""
    arrived = Arrived("/spool/exp")
    arrived.met(f"{ROOT}/2026/01/02/a.json")
    arrived.note({}, {}, 100.0)
    assert (arrived.files, arrived.last_s) == ({"foo1": 1}, {"foo1": 100.0})


def test_an_event_for_which_there_was_no_room_is_not_counted_again_by_the_scan() -> None:
    """Its file is brought by a scan, later; the file after it by that scan alone."""
    arrived = Arrived("/spool/exp")
    arrived.note({ROOT: 5}, {ROOT: 2}, 100.0)
    for name in ("a", "b", "c"):
        arrived.met(f"{ROOT}/2026/01/02/{name}.json")
    arrived.note({ROOT: 5}, {ROOT: 2}, 200.0)
    assert arrived.files == {"foo1": 6}
