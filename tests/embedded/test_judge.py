"""The judgement of rows: by itself, and against the agent's, which is written independently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.load.judge import RowJudge, encoded
from embedded.load.scalars import Flaw
from embedded.model.fields import from_api
from jostler.schema import Judge, fields_from_api

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

TYPES = (
    *("STRING", "BYTES", "INTEGER", "FLOAT", "NUMERIC", "BOOLEAN"),
    *("TIMESTAMP", "DATE", "TIME", "DATETIME", "JSON"),
)
# Literals at the borders of the rules, as they stand in a file.
LITERALS = """
0e99999999999999999999 1e99999999999999999999 1e-99999999999999999999 -0e99999999999999999999
99999999999999999999999999999 "-99999999999999999999999999999.999999999" 1e28
0 1 -1 7 1.5 1.0 1e3 -0 -0.0 1E400 1e-400 0.1 9223372036854775807 9223372036854775808
-9223372036854775808 18446744073709551616 1e28 1e29 99999999999999999999999999999.9999999999
1534680695 1.534680695e12 -62135596801 253402300800 1e15 NaN Infinity
true false "true" "T" "yes" "no" "Y" "on" "2"
"" "x" "é" "0" "-5" "+5" " 5" "5 " "007" "1.5" "1e3" ".5" "5." "0x1f" "1_000" "NaN" "nan"
"-Infinity" "inf" "AA==" "AA" "A-_=" "AP9c" "@@@@" "\\ud800" "\\u0041"
"2022-09-29" "2022/09/29" "2022-9-29" "2022-02-30" "0000-01-01" "9999-12-31" "2022-09-29 "
"12:34:56" "12:34" "24:00:00" "12:34:60" "12:34:56.123456" "12:34:56.1234567"
"2022-09-29 12:34:56" "2022-09-29T12:34:56" "2022-09-29t12:34:56" "2022-09-29T12:34"
"2022-09-29T12:34:56Z" "2022-09-29T12:34:56z" "2022-09-29 12:34:56 UTC" "2022-09-29 12:34:56+02"
"2022-09-29 12:34:56+02:30" "2022-09-29 12:34:56+0230" "2022-09-29 12:34:56 +02:00"
"2022-09-29 12:34:56+15:00" "2022-09-29 12:34:56 Europe/Paris" "2022-09-29T12:34:56.123456789Z"
"2022/09/29 12:34:56" "2022-09/29 12:34:56" "0001-01-01 00:00:00+01" "9999-12-31 23:59:59-01"
null {} [] [1] [null] [[1]] {"a":1} {"a":1,"a":2} {"a":1e400} [{"b":"\\ud800"}]
"""


LONG = ["1" * 400, "1" * 5_000, "-" + "1" * 5_000 + ".5", f'"{"0" * 5_000}1"', f'"{"1" * 5_000}"']
DEEP = ["[" * 500 + "]" * 500, "[" * 501 + "]" * 501, '{"a":' * 500 + "1" + "}" * 500]


def literals() -> list[str]:
    """Split LITERALS at spaces that stand outside of quotes, and add what is too long to read."""
    found: list[str] = [*LONG, *DEEP]
    quoted, current = False, ""
    for char in LITERALS + " ":
        if char == '"' and not current.endswith("\\"):
            quoted = not quoted
        if char.isspace() and not quoted:
            found += [current] if current else []
            current = ""
        else:
            current += char
    return found


def verdict(judge: RowJudge, line: bytes) -> str:
    """Return the flaw's sentence, or "" for a good row."""
    try:
        encoded(judge.row(line))
    except Flaw as flaw:
        return str(flaw)
    return ""


def fields_of(kind: str) -> dict[str, Any]:
    modes = {"a": "NULLABLE", "r": "REQUIRED", "l": "REPEATED"}
    inner = [{"name": name, "type": kind, "mode": mode} for name, mode in modes.items()]
    return {"fields": inner}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["a", "r", "l"])
def test_both_judges_agree_on_every_literal(kind: str, name: str) -> None:
    """Two programs, written apart from the same documents, take and refuse the same values."""
    schema = fields_of(kind)
    ours = RowJudge(from_api(schema))
    agents = Judge(fields_from_api(schema["fields"]))
    good = {"STRING": '"x"', "BYTES": '"AA=="', "BOOLEAN": "true", "DATE": '"2022-09-29"'}
    good |= {"TIME": '"12:34:56"', "DATETIME": '"2022-09-29 12:34:56"'}
    good |= {"TIMESTAMP": '"2022-09-29 12:34:56"'}
    required = "" if name == "r" else f',"r":{good.get(kind, "1")}'

    differ = {}
    for text in literals():
        if (kind, text) in {("BOOLEAN", "-0"), ("DATETIME", '"2022-09-29T12:34:56"')}:
            continue  # no page says whether that is 0; a `T` is in the pages on SQL alone
        for value in (text, f"[{text}]", f"[{text},{text}]"):
            line = f'{{"{name}":{value}{required}}}'.encode()
            said, flaw = verdict(ours, line), agents.flaw(line)
            if bool(said) != bool(flaw):
                differ[value] = (said, flaw)

    assert differ == {}


KEYS = st.sampled_from(["a", "A", "b", "rec", "Rec", "list", "unknown", "r"])
VALUES = st.sampled_from(literals())
SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "a", "type": "INTEGER"},
        {"name": "b", "type": "TIMESTAMP", "mode": "REPEATED"},
        {"name": "r", "type": "STRING", "mode": "REQUIRED"},
        {
            "name": "rec",
            "type": "RECORD",
            "fields": [
                {"name": "a", "type": "NUMERIC", "precision": "5", "scale": "2"},
                {"name": "B", "type": "STRING", "maxLength": "3"},
                {
                    "name": "list",
                    "type": "RECORD",
                    "mode": "REPEATED",
                    "fields": [{"name": "a", "type": "JSON"}, {"name": "r", "type": "FLOAT"}],
                },
            ],
        },
        {
            "name": "list",
            "type": "RECORD",
            "mode": "REPEATED",
            "fields": [{"name": "r", "type": "BOOLEAN", "mode": "REQUIRED"}],
        },
    ]
}


def documents() -> SearchStrategy[str]:
    """JSON texts, mostly nearly right: keys of the schema, literals of the list, nested."""
    return st.recursive(
        VALUES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
            st.lists(st.tuples(KEYS, inner), max_size=4).map(
                lambda pairs: "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
            ),
        ),
        max_leaves=8,
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(KEYS, documents()), max_size=5))
def test_both_judges_agree_on_generated_rows(pairs: list[tuple[str, str]]) -> None:
    """Nesting, arrays, letter case, duplicates, missing and unknown fields included."""
    text = "{" + ",".join(f'"{key}":{value}' for key, value in [("r", '"x"'), *pairs]) + "}"
    line = text.replace('"unknown":null', '"unknown":0').encode()
    said = verdict(RowJudge(from_api(SCHEMA)), line)
    flaw = Judge(fields_from_api(SCHEMA["fields"])).flaw(line)
    assert bool(said) == bool(flaw), (line, said, flaw)


def test_where_the_judges_differ_on_purpose() -> None:
    """The agent lets unknown nulls pass and refuses NUL and bad UTF-8; BigQuery's pages do not."""
    schema = {"fields": [{"name": "a", "type": "STRING"}]}
    strict, agents = RowJudge(from_api(schema)), Judge(fields_from_api(schema["fields"]))
    lenient = RowJudge(from_api(schema), ignore_unknown=True)

    unknown_null = b'{"x":null}'
    assert agents.flaw(unknown_null) is None
    assert verdict(strict, unknown_null) == "No such field: x."
    assert verdict(lenient, unknown_null) == ""
    for line in (b'{"a":"\\u0000"}', b'{"a":"\xff"}'):
        assert agents.flaw(line) is not None
        assert verdict(strict, line) == ""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "Parser terminated before end of string"),
        (b"", "Parser terminated before end of string"),
        (b"[1]", "Start of array encountered without start of object."),
        (b'{"a":1}{"a":2}', "Parser terminated before end of string"),
        (b'\xef\xbb\xbf{"a":1}', "Parser terminated before end of string"),
        (b'{"a":"\n"}', "Parser terminated before end of string"),
        (b'{"a":1,"a":1}', "Multiple definition of field: a"),
        (b'{"a":1,"A":1}', "Multiple definition of field: a"),
        (b"{}", ""),
        (b'{"a":null}', ""),
        (b"[" * 100_000, "Parser terminated before end of string"),
    ],
)
def test_a_line_that_is_no_row(line: bytes, said: str) -> None:
    """The parser's rules: one object a line, strict JSON, each key once."""
    judge = RowJudge(from_api({"fields": [{"name": "a", "type": "STRING"}]}))
    assert verdict(judge, line).startswith(said)
    assert bool(verdict(judge, line)) == bool(said)


@pytest.mark.parametrize(
    ("kind", "written", "stored"),
    [
        ("STRING", "1.10", "1.10"),
        ("STRING", "true", "true"),
        ("INTEGER", '"007"', 7),
        ("FLOAT", "-0.0", 0.0),
        ("FLOAT", "1e-400", 0.0),
        ("NUMERIC", "0.0000000005", "0.000000001"),
        ("NUMERIC", "-0.0000000005", "-0.000000001"),
        ("TIMESTAMP", "1534680695", "2018-08-19 12:11:35+00:00"),
        ("TIMESTAMP", "1.534680695e12", "2018-08-19 12:11:35+00:00"),
        (
            "TIMESTAMP",
            '"2022-09-29T23:59:59.999999999Z"',
            "2022-09-29 23:59:59.999999+00:00",
        ),
        ("TIMESTAMP", '"2022-09-29 00:00+02:30"', "2022-09-28 21:30:00+00:00"),
        ("BYTES", '"QQA="', "\\x41\\x00"),
        (
            "JSON",
            '{"b":1.0,"b":2,"a":18446744073709551616}',
            '{"b":1.0,"a":1.8446744073709552e+19}',
        ),
    ],
)
def test_what_a_good_value_becomes(kind: str, written: str, stored: object) -> None:
    """Rounded half away from zero, cut to microseconds, in UTC; the first of equal keys."""
    judge = RowJudge(from_api({"fields": [{"name": "a", "type": kind}]}))
    value = judge.row(f'{{"a":{written}}}'.encode())["a"]
    assert value == stored
    assert json.dumps(value) == json.dumps(stored)


@pytest.mark.parametrize("number", ["9" * 29, "5" + "0" * 38, "0." + "1" * 19])
def test_a_bignumeric_that_is_too_wide_for_duckdb_is_called_so(number: str) -> None:
    """BigQuery takes it, so it is not called invalid."""
    judge = RowJudge(from_api({"fields": [{"name": "a", "type": "BIGNUMERIC"}]}))
    assert "wider than the embedded BigQuery can hold" in verdict(
        judge, f'{{"a":{number}}}'.encode()
    )
    assert verdict(judge, b'{"a":5.79e38}').startswith("Invalid BIGNUMERIC value")


def test_a_row_is_at_most_100_mb() -> None:
    """The quota of load jobs."""
    judge = RowJudge(from_api({"fields": [{"name": "a", "type": "STRING"}]}))
    line = b'{"a":"' + b"x" * (100 * 2**20) + b'"}'
    assert verdict(judge, line).startswith("Row size is larger than")
