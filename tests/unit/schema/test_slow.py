"""The exact judge decides by the table of what load jobs take, and says what is wrong."""

from __future__ import annotations

import json

import pytest

from jostler.schema import Field, Judge, Mode, Reason
from tests.unit.schema import documents

NINE_DIGITS = '"2020-03-18T00:06:56.613263144Z"'

GOOD = {
    "STRING": ['"text"', "12", "1.50", "true", '"\\u0041"', '"a:b"', '"\\u003a"', '"\\u0022"'],
    "BYTES": ['""', '"QQ=="', '"+/+/"'],
    "INTEGER": ["0", "-0", "9223372036854775807", '"-9223372036854775808"', '"007"'],
    "FLOAT": ["1", "1.5", "1E-400", '"NaN"', '"-Infinity"', '"1e3"', "9" * 300],
    "BOOLEAN": ["true", "1", "0", '"t"', '"No"', '"TRUE"', '"1"'],
    "DATE": ['"2020-02-29"', '"0001-01-01"', '"9999-12-31"'],
    "TIME": ['"23:59:59"', '"00:00:00.123456"'],
    "DATETIME": ['"2020-02-29 23:59:59.1"', '"2020-02-29 00:00:00"'],
    "TIMESTAMP": [
        NINE_DIGITS,
        '"2020/03/18 00:06"',
        '"2020-03-18T00:06:56 UTC"',
        '"2020-03-18T00:06:56+5:30"',
        '"2020-03-18T00:06:56-14:00"',
        '"9999-12-31T23:59:59.999999Z"',
        "1534680695",
        "1.534680695e12",
    ],
    "GEOGRAPHY": [json.dumps(text) for text in documents.GEOGRAPHIES],
    "NUMERIC": ["1", '"-1.5"', "9" * 29, "1e-30", "0e99999999999999999999", "1e-9999999"],
    "BIGNUMERIC": ["5" + "0" * 38, '"0.' + "1" * 60 + '"'],
    "JSON": ['{"a":1,"a":[null]}', "1e300", "18446744073709551615", "[" * 500 + "]" * 500],
}

NO_GEOGRAPHY = [
    *("", " ", "here", "POINT", "POINT(1)", "POINT(1 2 3)", "POINT Z(1 2 3)", "POINT(1 2) x"),
    *("POINT(1 2", "POINT(1 91)", "POINT(1 1e999)", "POINT(x 2)", "POINTS(1 2)", "POINT(1,2)"),
    *("LINESTRING(1 2)", "POLYGON((0 0,1 0,0 0))", "POLYGON((0 0,1 0,1 1,0 1))", "MULTIPOINT()"),
    *(
        "GEOMETRYCOLLECTION()",
        "GEOMETRYCOLLECTION(POINT(1 2)",
        "SRID=4326;POINT(1 2)",
        "FULLGLOBE x",
    ),
    *("GEOMETRYCOLLECTION(" * 20 + "POINT(1 2)" + ")" * 20, "POINT(\u0661 2)"),
    *("{}", "{garbage}", '{"type":"Point"}', '{"type":"Point","coordinates":[1,2,3]}'),
    *('{"type":"Feature","geometry":null}', '{"type":"Point","coordinates":["1",2]}'),
    *('{"type":"LineString","coordinates":[[0,0]]}', '{"type":"Point","coordinates":[1,2]}}'),
    '{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[2,2]]]}',
    '{"type":["Point"],"coordinates":[1,2]}',
    *("0101000000", "01" * 21, "0101000000" + "00" * 15, "0101000000" + "00" * 17),
    *("0101000080" + "00" * 24, "0101000020E6100000" + "00" * 16, "010200000001000000" + "00" * 16),
    *("01020000000f000000" + "00" * 16, "0107000000ffffffff", "0101000000" + "ff" * 16, "0"),
    *("0102000000" + "ff" * 4, "010300000001000000" + "03000000" + "00" * 48, "0x01"),
]

BAD = [
    ("STRING", "{}", Reason.WRONG_TYPE),
    ("STRING", "[]", Reason.WRONG_TYPE),
    ("STRING", '"\\ud800"', Reason.LONE_SURROGATE),
    ("STRING", '"\\u0000"', Reason.NUL_CHARACTER),
    ("BYTES", '"QQ"', Reason.BAD_BASE64),
    ("BYTES", '"-_=="', Reason.BAD_BASE64),
    ("BYTES", "1", Reason.WRONG_TYPE),
    ("INTEGER", "1.0", Reason.WRONG_TYPE),
    ("INTEGER", "1e3", Reason.WRONG_TYPE),
    ("INTEGER", "true", Reason.WRONG_TYPE),
    ("INTEGER", '"abc"', Reason.WRONG_TYPE),
    ("INTEGER", '"\u0663"', Reason.WRONG_TYPE),
    ("INTEGER", '"1\\n"', Reason.WRONG_TYPE),
    ("INTEGER", "9223372036854775808", Reason.OUT_OF_RANGE),
    ("INTEGER", '"-9223372036854775809"', Reason.OUT_OF_RANGE),
    ("INTEGER", "1" * 5000, Reason.OUT_OF_RANGE),
    ("FLOAT", "1e400", Reason.OUT_OF_RANGE),
    ("FLOAT", '"nan"', Reason.WRONG_TYPE),
    ("BOOLEAN", "2", Reason.WRONG_TYPE),
    ("BOOLEAN", '"on"', Reason.WRONG_TYPE),
    ("DATE", '"2022/09/29"', Reason.BAD_DATE),
    ("DATE", '"2021-02-29"', Reason.BAD_DATE),
    ("DATE", '"0000-01-01"', Reason.BAD_DATE),
    ("DATE", '"20200229"', Reason.BAD_DATE),
    ("DATE", "20200229", Reason.WRONG_TYPE),
    ("TIME", '"24:00:00"', Reason.BAD_TIME),
    ("TIME", '"12:00:00.1234567"', Reason.BAD_TIME),
    ("DATETIME", '"2020-02-29T00:00:00Z"', Reason.BAD_DATETIME),
    ("DATETIME", '"2020-02-29"', Reason.BAD_DATETIME),
    ("DATETIME", '"2020-02-29T00:00:00"', Reason.BAD_DATETIME),
    ("TIMESTAMP", '"2020-02-29"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"2020-02/29T00:00:00Z"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"2021-02-29T00:00:00Z"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"2020-02-29T00:00:60Z"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"2020-02-29T00:00.5Z"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"2020-02-29T00:00:00+14:01"', Reason.BAD_TIMESTAMP),
    ("TIMESTAMP", '"9999-12-31T23:59:59-01:00"', Reason.OUT_OF_RANGE),
    ("TIMESTAMP", "253402300800000", Reason.OUT_OF_RANGE),
    ("GEOGRAPHY", '{"type":"Point"}', Reason.WRONG_TYPE),
    *(("GEOGRAPHY", json.dumps(text), Reason.BAD_GEOGRAPHY) for text in NO_GEOGRAPHY),
    ("NUMERIC", "1e29", Reason.OUT_OF_RANGE),
    ("NUMERIC", "9" * 29 + ".9999999995", Reason.OUT_OF_RANGE),
    ("NUMERIC", "1e99999999999999999999", Reason.OUT_OF_RANGE),
    ("NUMERIC", '"NaN"', Reason.WRONG_TYPE),
    ("BIGNUMERIC", "5.79e38", Reason.OUT_OF_RANGE),
    ("JSON", "[" * 501 + "]" * 501, Reason.TOO_DEEP),
    ("JSON", '{"\\u0000":1}', Reason.NUL_CHARACTER),
    ("JSON", "[1e400]", Reason.OUT_OF_RANGE),
]


def flaw_of(field: Field, literal: str) -> tuple[Reason, str] | None:
    flaw = Judge((field,)).flaw(f'{{"{field.name}":{literal}}}'.encode())
    return flaw and (flaw.reason, flaw.field)


@pytest.mark.parametrize(("kind", "literal"), [(k, v) for k, vs in GOOD.items() for v in vs])
def test_a_value_that_loads_is_good(kind: str, literal: str) -> None:
    """Each spelling that load jobs take for a type is good."""
    assert flaw_of(Field(name="x", type=kind), literal) is None


@pytest.mark.parametrize(("kind", "literal", "reason"), BAD)
def test_a_value_that_does_not_load_is_named(kind: str, literal: str, reason: Reason) -> None:
    """Each spelling that load jobs refuse, or that nobody knows of, gets its own reason."""
    assert flaw_of(Field(name="x", type=kind), literal) == (reason, "x")


BEFORE, AFTER, UTC_NOON = (
    "2020-01-01 00:00:00",
    "2020-01-01 00:00:00.000001",
    "2020-01-01T12:00:00Z",
)
RANGES = [
    ("DATE", "[2020-01-01, 2020-01-02)", None),
    ("DATE", "[UNBOUNDED, unbounded)", None),
    ("DATE", "[2020-01-01, 2020-01-01)", Reason.BAD_RANGE),
    ("DATE", "[2020-01-02, 2020-01-01)", Reason.BAD_RANGE),
    ("DATE", "[2020-01-01, )", Reason.BAD_RANGE),
    ("DATETIME", f"[{BEFORE}, {AFTER})", None),
    ("DATETIME", f"[{BEFORE}, {BEFORE}.0)", Reason.BAD_RANGE),
    ("DATETIME", f"[{AFTER}, {BEFORE})", Reason.BAD_RANGE),
    ("TIMESTAMP", f"[{UTC_NOON}, 2020/01/01 12:30+00)", None),
    ("TIMESTAMP", f"[{BEFORE}.0000001, {AFTER})", None),
    ("TIMESTAMP", f"[{UTC_NOON}, 2020-01-01T12:30:00+01:00)", Reason.BAD_RANGE),
    ("TIMESTAMP", f"[{AFTER}, {AFTER}9)", Reason.BAD_RANGE),
    ("TIMESTAMP", "[9999-12-31 23:59:59-01:00, UNBOUNDED)", Reason.BAD_RANGE),
]


@pytest.mark.parametrize(
    ("field", "literal", "reason"),
    [
        (Field(name="x", type="STRING", max_length=2), '"😀😀"', None),
        (Field(name="x", type="STRING", max_length=2), '"abc"', Reason.TOO_LONG),
        (Field(name="x", type="BYTES", max_length=1), '"QUI="', Reason.TOO_LONG),
        (Field(name="x", type="NUMERIC", precision=4, scale=2), "99.994", None),
        (Field(name="x", type="NUMERIC", precision=4, scale=2), "99.995", Reason.OUT_OF_RANGE),
        (Field(name="x", type="RANGE", range_element="DATE"), '"[2020-01-01, NULL)"', None),
        (Field(name="x", type="RANGE", range_element="DATE"), '"[1, 2)"', Reason.BAD_RANGE),
        *(
            (Field(name="x", type="RANGE", range_element=kind), json.dumps(text), reason)
            for kind, text, reason in RANGES
        ),
        (Field(name="x", type="RANGE", range_element="DATE"), '{"start":null}', Reason.WRONG_TYPE),
    ],
)
def test_parameters_of_a_type_count(field: Field, literal: str, reason: Reason | None) -> None:
    """Length, precision, scale and element type narrow what a column takes."""
    assert flaw_of(field, literal) == (reason and (reason, "x"))


NESTED = (
    Field(
        name="Download",
        type="RECORD",
        fields=(
            Field(
                name="Samples",
                type="RECORD",
                mode=Mode.REPEATED,
                fields=(
                    Field(name="RTT", type="INTEGER", mode=Mode.REQUIRED),
                    Field(name="Tags", type="STRING", mode=Mode.REPEATED),
                ),
            ),
        ),
    ),
    Field(name="ID", type="STRING"),
)


@pytest.mark.parametrize(
    ("document", "reason", "field"),
    [
        (b"", Reason.EMPTY, ""),
        (b" \n", Reason.EMPTY, ""),
        (b"\xff", Reason.NOT_UTF8, ""),
        (b'{"ID":"\xed\xa0\x80"}', Reason.NOT_UTF8, ""),
        (b"\xef\xbb\xbf{}", Reason.NOT_JSON, ""),
        (b"{}{}", Reason.NOT_JSON, ""),
        (b'{"ID":"a\nb"}', Reason.NOT_JSON, ""),
        (b'{"ID":NaN}', Reason.NOT_JSON, ""),
        (b"[{}]", Reason.NOT_OBJECT, ""),
        (b"null", Reason.NOT_OBJECT, ""),
        (b"[" * 100_000, Reason.TOO_DEEP, ""),
        (b'{"foo":1}', Reason.UNKNOWN_FIELD, "foo"),
        (b'{"a.b":""}', Reason.UNKNOWN_FIELD, "'a.b'"),
        ('{"\u212a":1}'.encode(), Reason.UNKNOWN_FIELD, "'\u212a'"),
        (b'{"ID":"a","ID":"a"}', Reason.DUPLICATE_KEY, "ID"),
        (b'{"ID":"a","id":"a"}', Reason.DUPLICATE_KEY, "id"),
        (b'{"ID":"a:","\\u0049D":"a"}', Reason.DUPLICATE_KEY, "ID"),
        (b'{"ID":"x","ID":"\\u003a"}', Reason.DUPLICATE_KEY, "ID"),
        (b'{"ID":"x","ID":"\\u003A"}', Reason.DUPLICATE_KEY, "ID"),
        (b'{"Download":1}', Reason.WRONG_TYPE, "Download"),
        (b'{"Download":[]}', Reason.WRONG_TYPE, "Download"),
        (b'{"Download":{"Samples":{}}}', Reason.WRONG_TYPE, "Download.Samples"),
        (b'{"Download":{"Samples":[{}]}}', Reason.MISSING_REQUIRED, "Download.Samples[0].RTT"),
        (b'{"Download":{"Samples":[null]}}', Reason.NULL_ELEMENT, "Download.Samples[0]"),
        (
            b'{"Download":{"Samples":[{"RTT":1},{"RTT":null}]}}',
            Reason.NULL_REQUIRED,
            "Download.Samples[1].RTT",
        ),
        (
            b'{"download":{"samples":[{"rtt":1,"Tags":["a",{}]}]}}',
            Reason.WRONG_TYPE,
            "download.samples[0].Tags[1]",
        ),
    ],
)
def test_a_flaw_says_where_it_is(document: bytes, reason: Reason, field: str) -> None:
    """The path leads to the value at fault, spelled as the document spells it."""
    flaw = Judge(NESTED).flaw(document)

    assert flaw is not None
    assert (flaw.reason, flaw.field) == (reason, field)


@pytest.mark.parametrize(
    "text",
    [
        "2021-04-31T00:00:00Z",
        "2021-06-01T00:00:00+15:00",
        "2021-02-30T00:00:00",
        "2021-13-01T00:00:00",
    ],
)
def test_no_moment_outside_the_calendar_is_good(text: str) -> None:
    """Days that a month does not have and offsets that no zone has are refused."""
    assert flaw_of(Field(name="x", type="TIMESTAMP"), f'"{text}"') == (Reason.BAD_TIMESTAMP, "x")


def test_only_ascii_letters_have_a_case() -> None:
    """A Kelvin sign is no k, though Python lowers it to one."""
    flaw = Judge((Field(name="k", type="STRING"),)).flaw('{"\u212a":1}'.encode())

    assert flaw is not None
    assert flaw.reason is Reason.UNKNOWN_FIELD


def test_null_is_no_element_of_an_array_of_json() -> None:
    """A JSON column takes null, but an array holds none, whatever its elements are."""
    field = Field(name="x", type="JSON", mode=Mode.REPEATED)

    assert flaw_of(field, "[null]") == (Reason.NULL_ELEMENT, "x[0]")


def test_a_flaw_says_what_was_expected_and_found() -> None:
    """The detail has the type of the column and the value, cut to what can be read."""
    flaw = Judge((Field(name="n", type="INTEGER"),)).flaw(b'{"n":"abc' + b"x" * 1000 + b'"}')

    assert flaw is not None
    assert flaw.detail.startswith("expected INTEGER, found string 'abcxx")
    assert len(flaw.detail) < 120


@pytest.mark.parametrize(
    "document",
    [
        b"{}",
        b'{"Download":null,"ID":null}',
        b'{"Download":{"Samples":null}}',
        b'{"DOWNLOAD":{"samples":[{"rtt":"1","tags":null}]},"id":7}',
        b'\r\n{ "Download" : {\t"Samples" : [ {"RTT":1 , "Tags":[]} ] } }\n',
    ],
)
def test_nulls_absences_case_and_white_space_are_good(document: bytes) -> None:
    """Null and absent NULLABLE values, null for an array, any case, any white space load."""
    assert Judge(NESTED).flaw(document) is None
