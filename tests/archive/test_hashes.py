"""The Hash of many files at once is the Hash of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.archive.hashes import digest, digests, many
from jostler.schema import Use
from jostler.schema.native import find


@given(st.lists(st.binary(max_size=300), max_size=9))
def test_many_at_once_are_hashed_as_one_by_one(contents: list[bytes]) -> None:
    """The native module hashes four of them together."""
    assert many()(contents) == digests(contents) == [digest(one) for one in contents]


def test_the_native_module_is_used_where_it_is_installed() -> None:
    """It takes a quarter of the time."""
    native = find(Use.AUTO)
    if not native.module:
        pytest.skip(native.why_not)
    assert many() is native.module.digests


def test_a_module_that_answers_wrongly_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Good files would be taken for damaged ones."""
    native = pytest.importorskip("jostler_native")
    monkeypatch.setattr(native, "digests", lambda contents: ["0" * 32 for _ in contents])
    assert many() is digests
    monkeypatch.delattr(native, "digests")
    assert many() is digests
