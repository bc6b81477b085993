"""Identities of files in bounded memory: the answers do not depend on where they lie."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.archive.seen import Seen
from jostler.errors import StorageError

KEY = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(KEY, max_size=6))), st.integers(0, 12))
def test_in_memory_and_in_a_file_the_answers_are_the_same(
    batches: list[tuple[str, list[int]]], most: int
) -> None:
    """Each batch is compared with the earlier ones of its group, and with itself."""
    known: dict[str, set[int]] = {"a": set(), "b": set()}
    with closing(Seen(most)) as seen:
        for group, keys in batches:
            earlier = known[group] & set(keys)
            is_new = not earlier and len(set(keys)) == len(keys)
            assert seen.add(group, keys) == (None if is_new else earlier)
            known[group].update(keys)


def test_what_is_in_memory_is_bounded() -> None:
    """More lies in a file, of which SQLite holds 8 MiB."""
    with closing(Seen(100)) as seen:
        for number in range(30):
            seen.add("a", range(10 * number, 10 * number + 10))
            assert sum(map(len, seen._sets.values())) <= 100
        assert seen.add("a", [0, 300]) == {0}


def test_a_full_disk_is_told_with_what_to_do() -> None:
    """A listing that has lost identities would show files twice."""
    with closing(Seen(0)) as seen:
        seen.add("a", [1])
        assert seen._db
        seen._db.execute("PRAGMA max_page_count = 1")
        with pytest.raises(StorageError, match="disk is full") as caught:
            seen.add("a", range(100_000))
        assert "SQLITE_TMPDIR" in caught.value.hint
        assert isinstance(caught.value.__cause__, sqlite3.Error)
