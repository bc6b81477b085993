"""The filters of a bundle's blocks: what is in a block is never denied, the bytes are stable."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.query.text import bloom, filters, needed
from loader.query.text.filters import Made
from loader.query.text.needed import Need, both, either, may_answer, of_words

MADE = Made("1700000000000001", 12345)
GOLDEN = "86089494a020e148"
LINES = (b'{"a":"red 17"}\n{"a":"green"}\n', b'{"a":"blue green"}')


@given(st.sets(st.binary(max_size=12), max_size=200))
def test_a_filter_has_what_was_put_in(members: set[bytes]) -> None:
    """There are no false negatives; the order of members does not matter."""
    data = bloom.made(members)

    assert all(bloom.has(data, member) for member in members)
    assert data == bloom.made(sorted(members))


@pytest.mark.parametrize("count", [1, 7, 100, 3000])
def test_of_other_words_at_most_one_in_a_hundred_passes(count: int) -> None:
    """Measured over random words; a little more is left to chance."""
    rng = random.Random(count)
    data = bloom.made({b"in%d" % rng.getrandbits(64) for _ in range(count)})
    tries = 4000

    wrong = sum(bloom.has(data, b"out%d" % rng.getrandbits(64)) for _ in range(tries))

    assert wrong <= 0.0125 * tries


def test_the_bytes_of_a_filter_stay_the_same() -> None:
    """They are in buckets: another hash would make every filter a false negative."""
    assert bloom.made([b"red", b"green", b"17"]).hex() == GOLDEN


def object_of(*lines: bytes) -> bytes:
    """Return the filters of blocks that lie one after another."""
    found, line = [], 1
    for nth, block in enumerate(lines):
        found.append(filters.of_lines(block, line=line, offset=10 + 100 * nth, length=100))
        line += found[-1][0].rows
    return filters.pack(MADE, found)


def test_an_object_reads_back_and_finds_the_blocks() -> None:
    """A need that no block can fulfil finds none."""
    found = filters.unpack(object_of(*LINES))

    assert found.made == MADE
    assert [(one.line, one.rows, one.offset) for one in found.blocks] == [(1, 2, 10), (3, 1, 110)]
    wanted = {"red": [1], "green": [1, 3], "blue": [3], "17": [1], "none": []}
    for word, lines in wanted.items():
        need = of_words((word,))
        assert need is not None
        assert [one.line for one in found.matching(need)] == lines, word


@given(st.data())
def test_a_damaged_object_is_refused(data: st.DataObject) -> None:
    """Any byte that is another, and any that is missing."""
    packed = bytearray(object_of(*LINES))
    at = data.draw(st.integers(0, len(packed) - 1))
    if data.draw(st.booleans()):
        packed[at] ^= data.draw(st.integers(1, 255))
    else:
        del packed[at:]

    with pytest.raises(ValueError, match="token filters"):
        filters.unpack(bytes(packed))


@pytest.mark.parametrize("head", [b"{}", b"[]", b"no JSON", b'{"form":2}'])
def test_an_object_of_another_form_is_refused(head: bytes) -> None:
    """Its check sum may be right."""
    body = head + b"\n"
    packed = body + zlib.crc32(body).to_bytes(4, "little")

    with pytest.raises(ValueError, match="token filters"):
        filters.unpack(packed)


WORDS = ("a", "b", "c")
Tree = tuple[str, "Tree | str", "Tree | str"] | str
TREES = st.recursive(
    st.sampled_from([*WORDS, "?"]),
    lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), inner, inner),
    max_leaves=8,
)


def need_of(tree: Tree) -> Need | None:
    """Return the need of a condition; of NOT, and of one that is not understood, none."""
    match tree:
        case "?" | ("not", _, _):
            return None
        case str(word):
            return of_words((word,))
        case (sign, left, right):
            return (both if sign == "and" else either)(need_of(left), need_of(right))
    raise AssertionError(tree)


def holds(tree: Tree, have: set[str]) -> bool:
    """Return whether a row of some words fulfils a condition."""
    match tree:
        case "?":
            return True
        case str(word):
            return word in have
        case ("not", inner, _):
            return not holds(inner, have)
        case (sign, left, right):
            sides = holds(left, have), holds(right, have)
            return all(sides) if sign == "and" else any(sides)
    raise AssertionError(tree)


@given(TREES, st.sets(st.sampled_from(WORDS)))
def test_no_row_that_answers_is_left_out(tree: Tree, have: set[str]) -> None:
    """Whatever the condition: only what must be there is needed."""
    need = need_of(tree)

    if holds(tree, have):
        assert need is None or may_answer(need, {word.encode() for word in have}.__contains__)


def test_and_or_and_not_leave_out_what_they_can() -> None:
    """`a and (b or not c)` needs a; `a and (b or c)` one of the others, too."""
    a, b, c = (of_words((word,)) for word in WORDS)

    assert both(a, either(b, None)) == a
    whole = both(a, either(b, c))
    assert whole is not None
    assert not may_answer(whole, {b"a"}.__contains__)
    assert not may_answer(whole, {b"b", b"c"}.__contains__)
    assert may_answer(whole, {b"a", b"c"}.__contains__)
    assert needed.texts(whole) == '("a") and (("b") or ("c"))'
