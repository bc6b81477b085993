"""The words of a row: whatever SEARCH can find in it, the text index has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from loader.query.text.words import line_pieces, pieces, words

TEXTS = st.text(max_size=30) | st.text(
    alphabet='aZ09_ .:-"\\/\n\u00e9\u0130\u03a3\u03c2\u6f22\U0001d7d8', max_size=20
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def float_text(value: float) -> str:
    """CAST(x AS STRING) of a FLOAT64, as BigQuery's reference has it."""
    short = f"{value:.15g}"
    return short if float(short) == value else f"{value:.17g}"


def found(value: Any) -> set[str]:  # noqa: ANN401 - JSON
    """Return the words that SEARCH finds in a value, its numbers cast to STRING."""
    match value:
        case dict():
            return set().union(*map(found, value.values()))
        case list():
            return set().union(*map(found, value))
        case bool():
            return {str(value).lower()}
        case int():  # the column may be an INTEGER or a FLOAT
            return set(words(str(value))) | set(words(float_text(float(value))))
        case float():
            return set(words(float_text(value)))
    return {word.lower() for word in re.findall(r"\w+", value or "")}


def row(raw: str) -> bytes:
    """Return a row as it is stored."""
    archiver = '{"Version":"jostler@1","GitCommit":"x","ArchiveURL":"gs://b/o","Filename":"f.json"}'
    return f'{{"date":"2026-01-02","archiver":{archiver},"raw":{raw}}}\n'.encode(
        errors="surrogatepass"
    )


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.booleans())
@example({"a": "\u0391\u03a3.\u0391"}, False)
@example({"a": "\u0130x \u212a"}, True)
@example({"a": 1e21, "b": 0.00001, "c": 12345678901234567890.0}, True)
def test_each_word_that_search_finds_has_its_pieces(raw: dict[str, Any], ascii_: bool) -> None:
    """No false negatives, whatever the document, and with escapes or without."""
    have = line_pieces(row(json.dumps(raw, ensure_ascii=ascii_)))

    missing = {
        word: sorted(pieces(word))
        for word in found(raw)
        if not {piece.encode(errors="surrogatepass") for piece in pieces(word)} <= have
    }

    assert not missing


@given(TEXTS, st.sampled_from(sorted("\u0561\u1c90\ua7c2\U0001e900\u0378")))
def test_it_does_not_matter_which_characters_are_letters(text: str, contested: str) -> None:
    """An engine of another Unicode divides at other characters; its words are there as well."""
    have = line_pieces(row(json.dumps({"a": f"{text}{contested}z9"}, ensure_ascii=False)))

    assert all(
        piece.encode(errors="surrogatepass") in have
        for part in f"{text}{contested}z9".split(contested)
        for word in words(part)
        for piece in pieces(word)
    )


@pytest.mark.parametrize(
    ("literal", "word"),
    [
        ("93.20", "2"),
        ("1E2", "100"),
        ('"007"', "7"),
        ('".5"', "0"),
        ("1e400", "inf"),
        ("100000000000000000000", "1e"),
        ("0.00001", "05"),
        ('"x\\u00c9t\\u00e9"', "xété"),
        ('"\\ud834\\udd1e7"', "7"),
        ('"a\\nb"', "b"),
        ('"a\\/b"', "b"),
    ],
)
def test_a_value_is_found_by_the_text_that_it_gets(literal: str, word: str) -> None:
    """A number has the texts of its columns' types, an escape is what it stands for."""
    have = line_pieces(row(f'{{"a":{literal}}}'))

    assert {piece.encode() for piece in pieces(word)} <= have


def test_the_columns_beside_raw_are_left_out() -> None:
    """They have the same words in each row: `fulltext` looks in `raw`."""
    assert line_pieces(row('{"a":"b"}') * 2) == {b"a", b"b"}


def test_what_is_no_row_of_ours_is_taken_as_a_whole() -> None:
    """A bundle of another program may have any form."""
    assert {b"b", b"c1"} <= line_pieces(b'{"raw":{"a":"b"},"date":"2026-01-02"} c1')


def test_words_are_those_of_the_language() -> None:
    """Lower case, each once; an underscore divides nothing; a sign does."""
    assert words("Foo-bar foo_BAR 1.5 \u00c9T\u00c9!") == ["foo", "bar", "foo_bar", "1", "5", "été"]
    assert pieces("m\u00fcller_2") == {"m", "\u00fc", "ller_2"}
    assert pieces("a\u0378b") == {"a", "b"}  # of a later Unicode: its lower case is not known
