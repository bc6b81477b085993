"""The judge as a whole: values that travel, whole rows, and time in proportion to length."""

from __future__ import annotations

import base64
import json
import pickle

import pytest

from jostler.schema import (
    INDEX1_FIELDS,
    REJECTED1_FIELDS,
    Field,
    Judge,
    Reason,
    json_object_flaw,
    table_schema,
)
from jostler.schema.fast import FastJudge

ARCHIVER = {"Version": "v", "GitCommit": "c", "ArchiveURL": "gs://b/o", "Filename": "f"}
COMMON = {"Filename": "f", "Size": 1, "TimeAdded": "2020-03-18T00:06:56Z", "Datatype": "foo1"}
INDEX = COMMON | {"Node": "n", "ArchiveURL": "u", "Line": 1, "Hash": "ab", "Offset": 0, "Length": 9}
REJECTED = COMMON | {"Node": "n", "Reason": "not-json", "Detail": "", "Field": "", "Content": ""}


def row(raw: dict[str, object]) -> bytes:
    return json.dumps({"date": "2020-03-18", "archiver": ARCHIVER, "raw": raw}).encode()


def test_a_judge_pickles_as_its_columns() -> None:
    """A judge sent to another process judges there as it does here."""
    judge = pickle.loads(pickle.dumps(Judge(INDEX1_FIELDS)))

    assert judge.fields == INDEX1_FIELDS
    assert judge.flaw(b'{"Line":1}') is None
    assert judge.flaw(b'{"Line":"x"}') is not None


def test_rows_of_the_agents_own_datatypes_are_accepted_fast() -> None:
    """Rows of index1 and rejected1 fit their table schemas without the slow judge."""
    content = {"Content": base64.b64encode(b"\xff{").decode()}

    assert FastJudge(table_schema(INDEX1_FIELDS)).accepts(row(INDEX))
    assert FastJudge(table_schema(REJECTED1_FIELDS)).accepts(row(REJECTED | content))


def test_rows_of_the_go_agent_are_good() -> None:
    """Its capital letters name the same columns."""
    document = row(INDEX).replace(b'"date"', b'"Date"').replace(b'"raw"', b'"Raw"')

    assert Judge(table_schema(INDEX1_FIELDS)).flaw(document) is None


@pytest.mark.parametrize(
    "document",
    [b'{"a":1,"a":1}', b'{"a":":","a":"x"}', b'{"a":1, "a":1 }', b'{"b":":","a":1,"a":2}'],
)
def test_the_fast_judge_sees_duplicate_keys(document: bytes) -> None:
    """A pair that the decoder dropped is noticed, colons in text or not."""
    fields = (Field(name="a", type="STRING"), Field(name="b", type="STRING"))

    assert not FastJudge(fields).accepts(document)


def test_the_fast_judge_accepts_common_spellings() -> None:
    """White space, another order, escapes as Go writes them, quoted numbers need no slow judge."""
    fields = (Field(name="a", type="STRING"), Field(name="b", type="INTEGER"))

    for document in (b'{ "b": "12",\n "a": "\\u003cx\\u0026\\u003e \\"q\\"" }', b'{"b":1,"a":"x"}'):
        assert FastJudge(fields).accepts(document)


@pytest.mark.parametrize(
    "lines",
    [
        b'{"a":1}\n{"a": 1, "a":2}\n',
        b'{"a":1}\n{"a": 1}',
        b'{"a": 1}\n\n{"a":1}\n',
        b'{"a": 1}{"a":1}\n{"a":\n1}\n',
        b'{"a": 1}{"a":1}\n\n',
        b'{"a": 1}\n{"b":\n"x"}',
        b'{"a": 1}\n{"b":\n"x"}\n',
        b'{"a": 1}\n{"b":"\\u0000"}\n',
        b'{"a": 1, "b":"\\u003a"}\n{"b":"", "b":""}\n',
    ],
)
def test_lines_that_are_not_a_good_document_each_are_not_taken_at_once(lines: bytes) -> None:
    """Though the decoder reads them, and as many objects as there are lines."""
    judge = Judge((Field(name="a", type="INTEGER"), Field(name="b", type="STRING")))

    assert judge.all_good(b'{"a": 1}\n{ "b":"x:y","a":1}\n')
    assert not judge.all_good(lines)


LONG = {
    "text": b'"' + b"a:" * 500_000 + b'"',
    "digits": b"1" * 1_000_000,
    "hex": b'"' + b"01" * 500_000 + b'"',
    "brackets": b"[" * 9_000,
    "objects": b"[" + b'{"k":1},' * 99_999 + b"0]",
    "escapes": b'"' + b"\\u0041" * 200_000 + b'"',
    "points": b'"LINESTRING(' + b"1 2," * 250_000 + b'1 2"',
    "rings": b'"POLYGON(' + b"(0 0,1 0,1 1,0 0)," * 50_000 + b'"',
    "collections": b'"' + b"GEOMETRYCOLLECTION(" * 50_000 + b'"',
    "GeoJSON": b'"{\\"type\\":\\"Polygon\\",\\"coordinates\\":[' + b"[[]]," * 200_000 + b'[]]}"',
}


@pytest.mark.parametrize("value", LONG.values(), ids=LONG)
@pytest.mark.parametrize("kind", ["STRING", "INTEGER", "NUMERIC", "TIMESTAMP", "GEOGRAPHY", "JSON"])
@pytest.mark.timeout(60)
def test_a_long_value_takes_no_long_time(kind: str, value: bytes) -> None:
    """A megabyte of one value is judged in a moment, whatever it is."""
    Judge((Field(name="x", type=kind),)).flaw(b'{"x":' + value + b"}")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b'{"a":[1e400],"a":{"b":"\\ud800"}}', None),
        (b' {"a":1}\r\n', None),
        (b"[]", Reason.NOT_OBJECT),
        (b"", Reason.EMPTY),
        (b"{'a':1}", Reason.NOT_JSON),
        (b'{"a":NaN}', Reason.NOT_JSON),
        (b'{"a":1}{}', Reason.NOT_JSON),
        (b'{"a":"\xff"}', Reason.NOT_UTF8),
    ],
)
def test_only_the_form_counts_for_a_json_object(document: bytes, reason: Reason | None) -> None:
    """`-validate=json` asks for one JSON object in UTF-8, with any content."""
    flaw = json_object_flaw(document)

    assert (flaw and flaw.reason) == reason
