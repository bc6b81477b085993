"""A schema drawn from samples fits them, or says which file stands against which."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.schema import Field, Judge, Mode, parse_datatype_schema, to_json
from jostler.schema.infer import infer


def of(*contents: str) -> list[tuple[str, bytes]]:
    return [
        (f"{letter}.json", text.encode()) for letter, text in zip("abcdef", contents, strict=False)
    ]


@pytest.mark.parametrize(
    ("contents", "kind", "mode"),
    [
        (['{"x":1}', '{"x":2}'], "INTEGER", Mode.NULLABLE),
        (['{"x":1}', '{"x":1.5}'], "FLOAT", Mode.NULLABLE),
        (['{"x":1.5}', '{"x":1}'], "FLOAT", Mode.NULLABLE),
        (['{"x":9223372036854775808}'], "FLOAT", Mode.NULLABLE),
        (['{"x":true}'], "BOOLEAN", Mode.NULLABLE),
        (['{"x":"2020-03-18T00:06:56.613263144Z"}'], "TIMESTAMP", Mode.NULLABLE),
        (['{"x":"2020-03-18T00:06:56"}'], "STRING", Mode.NULLABLE),
        (['{"x":"2020-03-18"}'], "DATE", Mode.NULLABLE),
        (['{"x":"2020-03-18"}', '{"x":"never"}'], "STRING", Mode.NULLABLE),
        (['{"x":"7"}'], "STRING", Mode.NULLABLE),
        (['{"x":[1,2]}', '{"x":null}', '{"x":[]}'], "INTEGER", Mode.REPEATED),
    ],
)
def test_the_narrowest_type_that_holds_all_samples_is_taken(
    contents: list[str], kind: str, mode: Mode
) -> None:
    """Types widen over the samples, and nothing is REQUIRED."""
    found = infer(of(*contents))

    assert found.fields == (Field(name="x", type=kind, mode=mode),)
    assert not found.problems


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (['{"x":1}', '{"x":"a"}'], "x: b.json has STRING where a.json has INTEGER"),
        (['{"x":1}', '{"x":[1]}'], "x: b.json has an array where a.json has a single value"),
        (['{"x":{"y":1}}', '{"x":1}'], "x: b.json has INTEGER where a.json has RECORD"),
        (['{"x":[[1]]}'], "x[]: a.json has an array in an array, which no column is"),
        (['{"x":[null]}'], "x[]: a.json has null in an array, which BigQuery refuses"),
        (
            ['{"rtt":1}', '{"RTT":1}'],
            "RTT: b.json spells it so, a.json spells it 'rtt'; BigQuery takes them for one name",
        ),
        (['{"x":1e400}'], "x: a.json: number too large for BigQuery"),
    ],
)
def test_a_conflict_names_both_files(contents: list[str], problem: str) -> None:
    """The file at fault and the file that set the earlier type are both there to look at."""
    assert problem in infer(of(*contents)).problems


@pytest.mark.parametrize("content", ['{"a-b":1}', '{"_table_x":1}', '{"é":{"x":1}}', "{", "[]"])
def test_what_no_table_can_hold_is_reported(content: str) -> None:
    """Names that BigQuery forbids and files that are no JSON object are problems."""
    assert any("a.json: " in line for line in infer(of(content)).problems)


def test_objects_nested_deeper_than_bigquery_goes_are_reported() -> None:
    """Fourteen levels fit below raw, the fifteenth is a problem."""
    assert not infer(of('{"x":' * 15 + "1" + "}" * 15)).problems
    assert infer(of('{"x":' * 16 + "1" + "}" * 16)).problems


def test_types_left_open_are_noted() -> None:
    """A field that is only null, an empty array or an empty object gets a type and a note."""
    found = infer(of('{"n":null,"l":[],"o":{}}'))

    assert [field.type for field in found.fields] == ["STRING", "STRING", "JSON"]
    assert [note.split(":")[0] for note in found.notes] == ["n", "l", "o"]


names = st.sampled_from(["a", "b", "RTT", "rtt", "x1"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.datetimes().map(lambda when: when.isoformat() + "Z"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.dictionaries(names, values, min_size=1, max_size=3), min_size=1, max_size=3))
def test_without_a_problem_every_sample_is_good(samples: list[dict[str, object]]) -> None:
    """The inferred schema is a datatype schema, and a load job would take each sample."""
    contents = [json.dumps(sample, allow_nan=False) for sample in samples]

    found = infer(of(*contents))

    if not found.problems:
        assert parse_datatype_schema(to_json(found.fields), source="x") == found.fields
        judge = Judge(found.fields)
        assert [judge.flaw(content.encode()) for content in contents] == [None] * len(contents)
