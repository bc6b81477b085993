"""Unknown members that are null say nothing: they are let pass, and soon at full speed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.schema import Field, Judge, Mode, Reason
from jostler.schema.nulls import unknown_nulls, with_nulls

FIELDS = (
    Field(name="ID", type="STRING"),
    Field(
        name="Download",
        type="RECORD",
        fields=(
            Field(name="UUID", type="STRING"),
            Field(
                name="Samples",
                type="RECORD",
                mode=Mode.REPEATED,
                fields=(Field(name="T", type="INTEGER"),),
            ),
        ),
    ),
)
REAL = b'{"ID":"a","Download":{"UUID":"u","ClientMeasurements":null,"Samples":[{"T":1,"X":null}]}}'


def test_an_unknown_null_is_good_and_is_learned() -> None:
    """The second such document needs no slow judge."""
    judge = Judge(FIELDS)
    assert judge.flaw(REAL) is None
    assert judge._fast.accepts(REAL)
    assert judge._fast.accepts(REAL.replace(b'"u"', b'"v"'))


def test_what_is_learned_stands_where_the_documents_have_it() -> None:
    """A row can then be written as it was read, byte for byte."""
    first = b'{"A":null,"ID":"a","B":null,"C":null,"Download":{"UUID":"u","Z":null}}'
    columns = with_nulls(FIELDS, unknown_nulls(FIELDS, first, most=9))
    assert [column.name for column in columns] == ["A", "ID", "B", "C", "Download"]
    assert [column.name for column in columns[-1].fields] == ["UUID", "Z", "Samples"]


@pytest.mark.parametrize(
    ("document", "reason", "field"),
    [
        (REAL.replace(b"null", b"[]", 1), Reason.UNKNOWN_FIELD, "Download.ClientMeasurements"),
        (REAL.replace(b'"X":null', b'"X":0'), Reason.UNKNOWN_FIELD, "Download.Samples[0].X"),
        (REAL.replace(b'"X":null', b'"X":null,"X":null'), Reason.DUPLICATE_KEY, None),
        (REAL.replace(b'"X":null', b'"X":null,"x":null'), Reason.DUPLICATE_KEY, None),
        (REAL.replace(b'"T":1', b'"T":1,"T":2'), Reason.DUPLICATE_KEY, None),
    ],
)
def test_what_was_learned_lets_nothing_else_pass(
    document: bytes, reason: Reason, field: str | None
) -> None:
    """A value under the unknown key, or the key twice, is a flaw before and after."""
    judge = Judge(FIELDS)
    for _ in range(2):
        flaw = judge.flaw(document)
        assert flaw
        assert flaw.reason is reason
        assert field is None or flaw.field == field
        assert judge.flaw(REAL) is None


def test_a_producer_that_makes_up_keys_does_not_fill_the_memory() -> None:
    """Learning ends; the answers stay the same."""
    judge = Judge(FIELDS)
    for number in range(300):
        assert judge.flaw(b'{"made-up-%d":null}' % number) is None
    assert len(judge._nulls) <= 100


def test_two_spellings_of_an_unknown_null_are_one_name() -> None:
    """Each alone is good, and learned; both in one object are a key that stands twice."""
    judge = Judge(FIELDS)
    assert judge.flaw(b'{"x":null}') is None
    assert judge.flaw(b'{"X":null}') is None
    assert judge.flaw(b'{"Download":{"y":null}}') is None
    assert judge.flaw(b'{"Download":{"Y":null}}') is None

    for document in (b'{"x":null,"X":null}', b'{"Download":{"Y":null,"y":null}}'):
        flaw = judge.flaw(document)
        assert flaw
        assert flaw.reason is Reason.DUPLICATE_KEY


@pytest.mark.parametrize(
    ("key", "reason"),
    [("\\ud800", Reason.LONE_SURROGATE), ("a\\u0000", Reason.NUL_CHARACTER)],
)
def test_the_key_of_an_unknown_null_is_text(key: str, reason: Reason) -> None:
    """What no STRING can hold is refused in a key too, known or not."""
    for document in (f'{{"{key}":null}}', f'{{"Download":{{"{key}":null}}}}'):
        flaw = Judge(FIELDS).flaw(document.encode())
        assert flaw
        assert flaw.reason is reason
        assert flaw.field.encode()


def made_up(number: int) -> bytes:
    return b"{" + b",".join(b'"k%d":null' % index for index in range(number)) + b"}"


@pytest.mark.timeout(100)
def test_a_file_of_made_up_keys_is_judged_in_a_moment() -> None:
    """It took 150 s: each of 70,000 unknown nulls became a column of the fast judge."""
    judge = Judge(FIELDS)

    assert judge.flaw(made_up(9_000)) is None
    flaw = judge.flaw(made_up(100_000))

    assert flaw
    assert flaw.reason is Reason.TOO_COMPLEX
    assert judge._nulls == {}


@pytest.mark.timeout(100)
def test_learning_takes_no_longer_for_wide_records() -> None:
    """The columns of a RECORD are looked up once, not once for each object in an array."""
    wide = tuple(Field(name=f"c{index}", type="INTEGER") for index in range(5_000))
    judge = Judge((Field(name="x", type="RECORD", mode=Mode.REPEATED, fields=wide),))

    assert judge.flaw(b'{"x":[' + b"{}," * 100_000 + b'{"y":null}]}') is None
    assert ("x", "y") in judge._nulls


values = st.recursive(
    st.one_of(st.none(), st.integers(-5, 5), st.sampled_from(["", "a:b", "é"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["ID", "T", "X", "Samples", "UUID"]), inner, max_size=3),
    ),
    max_leaves=8,
)
documents = st.dictionaries(
    st.sampled_from(["ID", "Download", "X", "Y", "Samples"]), values, max_size=4
)


@given(st.lists(documents, max_size=6))
def test_learning_never_changes_an_answer(some: list[object]) -> None:
    """A judge that has seen other documents answers as one that has seen none."""
    judge = Judge(FIELDS)
    for value in some:
        document = json.dumps(value).encode()
        assert judge.flaw(document) == Judge(FIELDS).flaw(document)
        assert judge.flaw(document) == judge._slow.flaw(document)
