"""A schema against the stored one: equal, additions, older, or incompatible with reasons."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.schema import Field, Fields, Mode, Relation, compare, fields_from_api, merged
from tests.unit.schema import documents

A = Field(name="a", type="INTEGER")
B = Field(name="b", type="STRING")
REQUIRED_A = replace(A, mode=Mode.REQUIRED)
REPEATED_A = replace(A, mode=Mode.REPEATED)


def record(*fields: Field, mode: Mode = Mode.NULLABLE) -> Field:
    return Field(name="r", type="RECORD", mode=mode, fields=fields)


def test_order_aliases_modes_case_and_descriptions_make_no_difference() -> None:
    """Two spellings of the same table are equal."""
    stored = fields_from_api([{"name": "A", "type": "INT64"}, {"name": "b", "type": "STRING"}])
    ours = (replace(B, description="words"), A)

    assert compare(stored, ours).relation is Relation.EQUAL


@pytest.mark.parametrize(
    ("stored", "ours", "relation", "added", "missing"),
    [
        ((A,), (A, B), Relation.ADDITIONS, ("b",), ()),
        ((A,), (B, A), Relation.ADDITIONS, ("b",), ()),
        ((record(A),), (record(A, B),), Relation.ADDITIONS, ("r.b",), ()),
        ((B,), (B, record(REQUIRED_A)), Relation.ADDITIONS, ("r",), ()),
        ((B,), (B, REPEATED_A), Relation.ADDITIONS, ("a",), ()),
        ((REQUIRED_A,), (A,), Relation.ADDITIONS, (), ()),
        ((A, B), (A,), Relation.OLDER, (), ("b",)),
        ((record(A, B),), (record(B),), Relation.OLDER, (), ("r.a",)),
        ((A,), (B,), Relation.INCOMPATIBLE, ("b",), ("a",)),
        ((B,), (B, REQUIRED_A), Relation.INCOMPATIBLE, ("a",), ()),
        ((A,), (REQUIRED_A,), Relation.INCOMPATIBLE, (), ()),
        ((A,), (REPEATED_A,), Relation.INCOMPATIBLE, (), ()),
        ((A,), (replace(A, type="FLOAT"),), Relation.INCOMPATIBLE, (), ()),
        ((B,), (replace(B, max_length=9),), Relation.INCOMPATIBLE, (), ()),
        ((record(A),), (replace(A, name="r"),), Relation.INCOMPATIBLE, (), ()),
        ((REQUIRED_A, B), (A,), Relation.INCOMPATIBLE, (), ("b",)),
    ],
)
def test_a_difference_is_what_bigquery_can_make_of_it(
    stored: Fields, ours: Fields, relation: Relation, added: tuple[str], missing: tuple[str]
) -> None:
    """Only NULLABLE and REPEATED additions, new RECORDs and relaxed fields can be uploaded."""
    found = compare(stored, ours)

    assert (found.relation, found.added, found.missing) == (relation, added, missing)
    assert bool(found.conflicts) is (relation is Relation.INCOMPATIBLE)


def test_a_conflict_names_the_field_both_sides_and_the_way_out() -> None:
    """The sentence is enough to repair the schema."""
    (sentence,) = compare((record(A),), (record(replace(A, type="STRING")),)).conflicts

    assert sentence.startswith("r.a: stored is INTEGER, ours is STRING; BigQuery changes no type")


def test_additions_are_appended_at_each_level() -> None:
    """The stored order stays, as BigQuery inserts nothing in the middle."""
    found = merged((record(A), A), (B, A, record(B, A)))

    assert found == (record(A, B), A, B)


def test_a_relaxed_field_stays_relaxed() -> None:
    """REQUIRED becomes NULLABLE by a merge, and a stored NULLABLE stays what it is."""
    assert merged((REQUIRED_A,), (A,)) == (A,)


@settings(max_examples=200, deadline=None)
@given(documents.fields(), documents.fields())
def test_what_is_merged_is_ours_and_holds_the_stored(stored: Fields, ours: Fields) -> None:
    """After an upload of additions the next comparison asks for nothing more."""
    found = compare(stored, ours)

    assert compare(stored, stored).relation is Relation.EQUAL
    if found.relation in {Relation.EQUAL, Relation.ADDITIONS}:
        assert compare(merged(stored, ours), ours).relation is Relation.EQUAL
    if found.relation is Relation.OLDER:
        assert compare(ours, stored).relation in {Relation.ADDITIONS, Relation.INCOMPATIBLE}


@settings(max_examples=100, deadline=None)
@given(documents.fields(), st.data())
def test_a_schema_without_some_fields_is_older(fields: Fields, data: st.DataObject) -> None:
    """Dropping top-level fields makes a schema that can go on with the stored one."""
    kept = data.draw(st.lists(st.sampled_from(fields), unique=True, max_size=len(fields) - 1))

    assert compare(fields, tuple(kept)).relation is Relation.OLDER
