"""Index objects: the native module writes the bytes that Python writes."""

from __future__ import annotations

import gzip
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.bundle import Attempt, Entry, Facts, FileState, index_object, native_index_rows
from jostler.bundle.bundle import IndexForm
from jostler.bundle.entry import Entries
from jostler.bundle.index import PART_FILES, Part, rows
from jostler.format.blocks import Block
from jostler.schema import Native, Use
from jostler.schema.native import find
from tests.unit.bundle.parts import header

if TYPE_CHECKING:
    from collections.abc import Sequence

NATIVE = find(Use.AUTO)
WRITTEN = native_index_rows(NATIVE)
need_native = pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)

DAY_US = 86_400_000_000
LATEST_US = 2_932_897 * DAY_US  # 10000-01-01
MOST = (1 << 63) - 1

usual_us = st.integers(0, LATEST_US - 1) | st.integers(0, LATEST_US // DAY_US - 1).map(
    lambda day: day * DAY_US
)
plain = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\/'))
strange = st.sampled_from(['"', "\\", "é", "\x7f", "\n", "\t", "\0", "🙂", "\udcff", "/"])
facts = st.builds(Facts, st.none() | usual_us, st.none() | usual_us, st.none() | plain)
entries = st.builds(
    Entry,
    plain.map("foo1/2026/01/02/{}".format),
    st.builds(
        FileState,
        st.integers(-MOST - 1, MOST),
        st.integers(0, MOST),
        st.integers(0, MOST),
        st.integers(0, MOST),
    ),
    usual_us,
    st.binary(min_size=16, max_size=16),
    st.none() | facts,
)

# What makes a row unusual; any one of them in a row that is else a usual one.
any_us = st.integers(-DAY_US, LATEST_US - 1)
odd_name = st.tuples(plain, strange, plain).map("".join)
odd_work_id = odd_name.filter(lambda name: "\udcff" not in name)  # no document has such a text
odd_members: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"path": odd_name.map("foo1/{}".format) | plain}),
    st.fixed_dictionaries({"hash": st.binary(max_size=17)}),
    st.fixed_dictionaries({"added_us": any_us}),
    st.fixed_dictionaries({"state": st.builds(FileState, *[st.integers(-(10**15), 10**15)] * 4)}),
    st.fixed_dictionaries({"facts": st.builds(Facts, any_us, any_us, st.none() | odd_work_id)}),
)


def changed(entry: Entry, members: dict[str, Any]) -> Entry:
    return entry._replace(**members)


def attempt_of(files: Sequence[Entry], sizes: Sequence[int] = ()) -> Attempt:
    """Make an attempt whose blocks have so many files each, the last block the rest."""
    firsts = [line for line in accumulate(sizes, initial=1) if line <= max(1, len(files))]
    blocks = tuple(Block(line, 10 + 7 * line, 100 + line) for line in firsts)
    return Attempt(upload_id="u", entries=Entries(files), blocks=blocks)


def part_of(*files: Entry) -> Part:
    blocks = (Block(1, 10, 20),)
    return Part(head=b"{", shared=b'"s":1', first=1, entries=Entries(files), blocks=blocks)


ONE = Entry("foo1/2026/01/02/a", FileState(1, 2, 3, 4), 5, bytes(range(16)))


@need_native
@settings(max_examples=200, deadline=None)
@given(st.lists(entries, max_size=12), st.lists(st.integers(1, 5), max_size=4))
def test_the_native_module_writes_usual_rows_as_python_does(
    files: list[Entry], sizes: list[int]
) -> None:
    """And leaves none of them to Python."""
    assert WRITTEN
    attempt = attempt_of(files, sizes)
    seen: list[list[bytes] | None] = []

    def written(part: Part) -> list[bytes] | None:
        seen.append(WRITTEN(part))
        return seen[-1]

    assert index_object(header(), attempt, written) == index_object(header(), attempt)
    assert None not in seen
    assert len(seen) == bool(files)


@need_native
@settings(max_examples=150, deadline=None)
@given(st.lists(entries | st.builds(changed, entries, odd_members), max_size=4))
def test_with_unusual_rows_the_index_is_the_same(files: list[Entry]) -> None:
    """Names escaped, no UTF-8 or in no directory, strange years, no hash, facts of all kinds."""
    assert WRITTEN
    attempt = attempt_of(files)
    assert index_object(header(), attempt, WRITTEN) == index_object(header(), attempt)


@need_native
@pytest.mark.parametrize(
    "other",
    [
        *(
            ONE._replace(path=path)
            for path in ("a.json", *map("foo1/{}".format, '"\\\n\x7fé\udcff'))
        ),
        *(ONE._replace(hash=digest) for digest in (b"", bytes(15), bytes(32))),
        *(ONE._replace(added_us=micros) for micros in (-1, LATEST_US)),
        ONE._replace(state=FileState(1, 2, -1, 4)),
        *(ONE._replace(facts=Facts(start, None, None)) for start in (-1, LATEST_US, 1 << 70)),
        *(ONE._replace(facts=Facts(None, 1, work_id)) for work_id in '"\\é\udcff'),
    ],
)
def test_what_needs_a_decision_is_left_to_python(other: Entry) -> None:
    """With the files beside it, and without an error."""
    assert WRITTEN
    assert WRITTEN(part_of(ONE, ONE)) == rows(part_of(ONE, ONE))
    assert WRITTEN(part_of(ONE, other)) is None


@pytest.mark.parametrize("with_native", [False, pytest.param(True, marks=need_native)])
def test_a_long_index_goes_on_from_part_to_part(*, with_native: bool) -> None:
    """Lines, blocks and facts are those of the whole, though some parts are left to Python."""
    files = [ONE._replace(path=f"foo1/m{line}", added_us=line) for line in range(2 * PART_FILES)]
    files += [ONE, ONE._replace(path="foo1/é")]
    files[PART_FILES + 1] = ONE._replace(facts=Facts(None, None, "job"))
    attempt = attempt_of(files, [*[7] * 40, PART_FILES, 3])

    native = WRITTEN if with_native else None
    assert bool(native) is with_native

    plain = gzip.decompress(index_object(header(), attempt, native)).splitlines(keepends=True)

    for line, entry, block in attempt.lines():
        alone = Attempt(upload_id="u", entries=Entries([entry]), blocks=(block._replace(line=1),))
        expected = gzip.decompress(index_object(header(), alone))
        assert plain[line - 1] == expected.replace(b'"Line":1,', b'"Line":%d,' % line)
    assert len(plain) == len(files)


@need_native
def test_rows_of_the_form_without_facts_are_left_to_python() -> None:
    assert WRITTEN
    bare = replace(header(), index_form=IndexForm.BARE)
    assert b"Start" not in gzip.decompress(index_object(bare, attempt_of([ONE]), WRITTEN))


class Module:
    """A native module whose rows are those of Python, but for a change."""

    def index_rows(self, *columns: Any, **told: Any) -> list[bytes] | None:  # noqa: ANN401
        assert NATIVE.module
        made: list[bytes] | None = NATIVE.module.index_rows(*columns, **told)
        return made and [*made[:-1], made[-1].replace(b"job-7", b"job-8")]


class FailsLater:
    """A native module that writes the sample, and nothing more."""

    def __init__(self) -> None:
        self._calls = 0

    def index_rows(self, *columns: Any, **told: Any) -> list[bytes] | None:  # noqa: ANN401
        self._calls += 1
        if self._calls > 1:
            raise RuntimeError("a mistake")
        made: list[bytes] | None = NATIVE.module.index_rows(*columns, **told)
        return made


@need_native
def test_an_index_that_the_module_fails_to_write_is_written_by_python() -> None:
    """Whatever it raises; else the bundle would never be stored."""
    native = native_index_rows(Native(use=Use.AUTO, module=FailsLater()))
    assert native
    attempt = attempt_of([ONE])
    assert index_object(header(), attempt, native) == index_object(header(), attempt)


@need_native
def test_a_module_that_writes_other_rows_or_none_is_not_asked() -> None:
    assert native_index_rows(Native(use=Use.AUTO, module=NATIVE.module)) is not None
    for module in (Module(), None):
        assert native_index_rows(Native(use=Use.AUTO, module=module)) is None
