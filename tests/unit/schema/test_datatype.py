"""A datatype schema is taken whole or refused with every reason, each behind its path."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jostler.errors import SchemaError
from jostler.schema import Field, Fields, Judge, Mode, parse_datatype_schema, to_json
from jostler.schema.datatype import published
from jostler.schema.fields import ALIASES, TYPES, canonical_type
from jostler.schema.names import name_fault
from jostler.schema.plain import is_plain
from tests.unit.schema import documents


def problems(*fields: object) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        parse_datatype_schema(json.dumps(fields).encode(), source="foo1.json")
    return caught.value.problems


def nested(depth: int) -> dict[str, Any]:
    field: dict[str, Any] = {"name": "x", "type": "STRING"}
    for _ in range(depth):
        field = {"name": "r", "type": "RECORD", "fields": [field]}
    return field


def test_a_schema_is_read() -> None:
    """Aliases, lower case and REST's quoted numbers are taken, with or without byte order mark."""
    data = b'\xef\xbb\xbf[{"name":"a","type":"struct","mode":"repeated","fields":[{"name":"s",'
    data += b'"type":"STRING","maxLength":"9","policyTags":{}}]}]'

    found = parse_datatype_schema(data, source="foo1.json")

    inner = (Field(name="s", type="STRING", max_length=9, others='{"policyTags": {}}'),)
    assert found == (Field(name="a", type="RECORD", mode=Mode.REPEATED, fields=inner),)


@settings(max_examples=60, deadline=None)
@given(documents.fields())
def test_what_is_written_is_accepted(columns: Fields) -> None:
    """A schema written by us passes, unless two names differ in case only, and is the same."""
    assert parse_datatype_schema(to_json(columns), source="x") == columns


usual = {
    "name": st.sampled_from(["a", "B_1", "x" * 300, "_a", "1", "a\n", "x" * 301, 7]),
    "type": st.sampled_from([*sorted(TYPES), "INT64", "STRUCT", "record", "Integer", "TEXT", None]),
}
odd = {
    "mode": st.sampled_from([*Mode, "repeated", "MANY", 0]),
    "description": st.sampled_from(["", "x" * 1024, "x" * 1025, []]),
    "maxLength": st.just(3),
    "rangeElementType": st.just({"type": "DATE"}),
    "Type": st.just("STRING"),
}
shapes = st.recursive(
    st.lists(st.fixed_dictionaries(usual, optional=odd), max_size=2),
    lambda inner: st.lists(
        st.fixed_dictionaries({**usual, "fields": inner}, optional=odd), max_size=2
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(shapes | st.sampled_from([{}, None, [[]], "STRING", 1]))
@example([{"name": "a", "type": "STRING", "description": "x" * 1025}])
@example([{"name": "a", "type": "RANGE"}])
@example([{"name": "a", "type": "RECORD", "fields": []}])
def test_a_plain_schema_is_valid(found: object) -> None:
    """So that nothing wrong passes without a look at the published JSON Schema."""
    if is_plain(found):
        jsonschema.Draft202012Validator(published()).validate(found)


def test_usual_schemas_are_plain() -> None:
    fields = json.loads(to_json((Field(name="a", type="INTEGER"),)))
    assert is_plain([*fields, nested(3)])
    assert not is_plain([])


def test_every_problem_is_reported_at_once() -> None:
    """One reading of a wrong schema tells all that is wrong with it."""
    found = problems(
        {
            "name": "Samples",
            "type": "RECORD",
            "mode": "REPEATED",
            "fields": [
                {"name": "RTT", "type": "INTERVAL"},
                {"name": "rtt", "type": "FLOAT", "mode": "MAYBE"},
                {"type": "STRING", "fnord": 1},
            ],
        },
        {"name": "_table_x", "type": "DATE", "description": "x" * 1025},
    )

    assert [line.split(":")[0] for line in found] == [
        "Samples[].RTT",
        "Samples[].rtt",
        "Samples[].[2]",
        "Samples[].[2]",
        "_table_x",
        "_table_x",
        "Samples[].rtt",
    ]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"name": "a b", "type": "STRING"}, "letters, digits and underscores"),
        ({"name": "é", "type": "STRING"}, "letters, digits and underscores"),
        ({"name": "a\n", "type": "STRING"}, "letters, digits and underscores"),
        ({"name": "1a", "type": "STRING"}, "no digit first"),
        ({"name": "", "type": "STRING"}, "letters, digits and underscores"),
        ({"name": "a" * 301, "type": "STRING"}, "at most 300"),
        ({"name": "_Change_Type", "type": "STRING"}, "keeps for itself"),
        ({"name": "a", "type": "INTERVAL"}, "unknown type 'INTERVAL'"),
        ({"name": "a", "type": "RECORD"}, "needs fields"),
        ({"name": "a", "type": "RECORD", "fields": []}, "needs fields"),
        (
            {"name": "a", "type": "DATE", "fields": [{"name": "b", "type": "DATE"}]},
            "only a RECORD has fields",
        ),
        ({"name": "a", "type": "DATE", "mode": "OPTIONAL"}, "unknown mode 'OPTIONAL'"),
        ({"name": "a", "type": "DATE", "maxLength": 3}, "only for STRING and BYTES"),
        ({"name": "a", "type": "STRING", "maxLength": "0"}, "at least 1"),
        ({"name": "a", "type": "STRING", "maxLength": "x"}, "expected a whole number"),
        ({"name": "a", "type": "STRING", "maxLength": 1.5}, "expected a whole number"),
        ({"name": "a", "type": "NUMERIC", "scale": 2}, "scale needs precision"),
        ({"name": "a", "type": "NUMERIC", "precision": 30}, "must be 1 to 29"),
        ({"name": "a", "type": "NUMERIC", "precision": 12, "scale": 10}, "must be 0 to 9"),
        ({"name": "a", "type": "BIGNUMERIC", "precision": 3, "scale": 3}, "must be 1 to 38"),
        ({"name": "a", "type": "NUMERIC", "roundingMode": "UP"}, "unknown roundingMode"),
        ({"name": "a", "type": "STRING", "collation": "de"}, "unknown collation"),
        ({"name": "a", "type": "RANGE"}, "needs rangeElementType"),
        ({"name": "a", "type": "RANGE", "rangeElementType": {"type": "TIME"}}, "one of DATE"),
        ({"name": "a", "type": "DATE", "generatedColumn": {}}, "only for top-level"),
        ({"name": "a", "type": "DATE", "fnord": 1}, "unknown key 'fnord'"),
        ({"Name": "a", "Type": "DATE"}, "it is spelled 'name'"),
        ({"name": "a"}, "no 'type'"),
        ({"name": 3, "type": "DATE"}, "expected string, found 3"),
        (nested(15), "nest at most 14"),
        (["a"], "expected object"),
        (None, "expected object"),
    ],
)
def test_each_rule_has_its_sentence(field: object, words: str) -> None:
    """A breach of one rule is told in words that name it."""
    assert any(words in line for line in problems(field))


def test_the_published_schema_is_that_of_the_package() -> None:
    """docs/ has it for editors; both are a JSON Schema of draft 2020-12."""
    docs = Path(__file__).parents[3] / "docs" / "datatype.schema.json"

    assert json.loads(docs.read_bytes()) == published()
    assert docs.read_bytes() == (resources.files("jostler.schema") / docs.name).read_bytes()
    jsonschema.Draft202012Validator.check_schema(published())


def test_the_published_schema_knows_all_types_and_modes() -> None:
    """And no other: what it lists is what the code reads."""
    field = published()["$defs"]["field"]["properties"]
    types = field["type"]["anyOf"][0]["enum"]

    assert {canonical_type(kind) for kind in types} == TYPES
    assert set(types) == TYPES | set(ALIASES)
    assert set(field["mode"]["anyOf"][0]["enum"]) == set(Mode)


@pytest.mark.parametrize(
    "name",
    ["a", "_", "a1", "1a", "a b", "a\n", "", "é", "_Table_x", "_tables", "x" * 300, "x" * 301],
)
def test_names_of_a_schema_and_of_a_sample_have_one_rule(name: str) -> None:
    """The JSON Schema and `name_fault`, which judges the keys of samples, agree."""
    text = json.dumps([{"name": name, "type": "DATE"}]).encode()
    try:
        parse_datatype_schema(text, source="x")
    except SchemaError:
        assert name_fault(name)
    else:
        assert name_fault(name) is None


def test_a_problem_names_file_field_and_reason() -> None:
    """In words of ours, with what was found."""
    fields = {"name": "RTT", "type": "INTERVAL", "mode": "maybe", "maxLength": 1.5}
    data = json.dumps([{"name": "S", "type": "RECORD", "mode": "REPEATED", "fields": [fields]}])

    with pytest.raises(SchemaError) as caught:
        parse_datatype_schema(data.encode(), source="foo1.json")

    assert str(caught.value).startswith("foo1.json is not a datatype schema")
    assert caught.value.problems == [
        "S[].RTT: maxLength 1.5: expected a whole number",
        "S[].RTT: maxLength is only for STRING and BYTES",
        "S[].RTT: unknown mode 'maybe': one of NULLABLE, REQUIRED, REPEATED",
        f"S[].RTT: unknown type 'INTERVAL': one of {', '.join(sorted(TYPES | set(ALIASES)))}",
    ]


@pytest.mark.timeout(300)
def test_a_table_has_ten_thousand_columns_and_no_more() -> None:
    """Of any depth; date, archiver and its four fields, and raw are seven of them."""
    half = [{"name": f"c{index}", "type": "FLOAT"} for index in range(4_996)]
    inner = {"name": "n", "type": "RECORD", "mode": "REPEATED", "fields": half}
    rest = [{"name": f"d{index}", "type": "STRING"} for index in range(4_996)]

    columns = parse_datatype_schema(json.dumps([inner, *rest]).encode(), source="x")
    assert Judge(columns).flaw(b'{"d1":"x","d2":"y","n":[{},{"c1":1.5}]}') is None

    assert problems(inner, *rest, {"name": "more", "type": "DATE"}) == [
        "(file): 9994 columns, at most 9993 fit beside date and archiver"
    ]


def test_fourteen_records_may_nest() -> None:
    """BigQuery nests fifteen deep, and raw is one of them."""
    assert parse_datatype_schema(json.dumps([nested(14)]).encode(), source="x")


def test_names_that_differ_in_case_are_one_name() -> None:
    """A second field of the same name is refused at every level."""
    inner = [{"name": "x", "type": "DATE"}, {"name": "X", "type": "DATE"}]

    found = problems({"name": "r", "type": "RECORD", "mode": "REPEATED", "fields": inner})

    assert found == ["r[].X: a second field of this name, after 'x'; case is ignored"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[NaN]",
        b"\xff",
        b'[{"name":"a","name":"b"}]',
        b"[" * 100_000,
        b"{}",
        b"[]",
        b"1" * 5_000,
        b"null",
        b'[{"name":"a","type":"STRING","maxLength":1e999}]',
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_is_no_array_of_fields_is_refused(data: bytes) -> None:
    """Any other file is a SchemaError that names the file."""
    with pytest.raises(SchemaError, match=r"^foo1\.json is not a datatype schema") as caught:
        parse_datatype_schema(data, source="foo1.json")

    assert caught.value.problems
    assert caught.value.hint


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["name", "type", "mode", "fields", "scale", "maxLength", "x"]),
            inner | st.sampled_from(["STRING", "RECORD", "NUMERIC", "RANGE", "5"]),
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(json_values, max_size=3).map(json.dumps).map(str.encode) | st.binary())
def test_any_file_is_read_or_refused(data: bytes) -> None:
    """Nothing but a SchemaError comes out of a wrong file."""
    try:
        assert parse_datatype_schema(data, source="x")
    except SchemaError as error:
        assert error.problems  # noqa: PT017 - either outcome is right
