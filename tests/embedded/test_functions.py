"""GoogleSQL expressions and what the function reference says they give."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import sqlglot
from google.api_core.exceptions import BadRequest

from embedded.grammar import ALLOWED
from embedded.pipes import without_pipes
from tests.embedded.test_query import CHANGES, FILTERED, SHAPES, TRUNCATE, WITH_PARAMETER

if TYPE_CHECKING:
    from google.cloud import bigquery

CASES: list[tuple[str, object]] = [
    # Conversion.
    ("1.5", 1.5),
    ("0.1 + 0.2", 0.1 + 0.2),
    ("2147483647 + 1", 2147483648),
    ("NUMERIC '1.50'", Decimal("1.5")),
    ("NUMERIC '1.5' * 2", Decimal(3)),
    ("BIGNUMERIC '1.000000000000000001'", Decimal("1.000000000000000001")),
    ("CAST(1.0 AS STRING)", "1"),
    ("CAST(1.5 AS STRING)", "1.5"),
    ("CAST(12 AS STRING)", "12"),
    ("CAST(TRUE AS STRING)", "true"),
    ("CAST(NUMERIC '1.50' AS STRING)", "1.5"),
    ("CAST(DATE '2020-01-02' AS STRING)", "2020-01-02"),
    ("CAST(TIMESTAMP '2020-01-02 03:04:05' AS STRING)", "2020-01-02 03:04:05+00"),
    ("CAST(TIMESTAMP '2020-01-02 03:04:05.5' AS STRING)", "2020-01-02 03:04:05.500+00"),
    ("CAST(DATETIME '2020-01-02 03:04:05.123456' AS STRING)", "2020-01-02 03:04:05.123456"),
    ("CAST(TIME '03:04:05' AS STRING)", "03:04:05"),
    ("CAST(b'\\xc3\\xa9' AS STRING)", "é"),
    ("CAST('é' AS BYTES)", "é".encode()),
    ("CAST(2.5 AS INT64)", 3),
    ("CAST(-2.5 AS INT64)", -3),
    ("CAST('12' AS INT64)", 12),
    ("CAST(TRUE AS INT64)", 1),
    ("SAFE_CAST('1.5' AS INT64)", None),
    ("SAFE_CAST('x' AS DATE)", None),
    ("SAFE_CAST('yes' AS BOOL)", None),
    ("CAST('true' AS BOOL)", True),
    ("CAST('1.5' AS FLOAT64)", 1.5),
    ("CAST('NaN' AS FLOAT64)", math.nan),
    ("CAST('2020-01-02' AS DATE)", date(2020, 1, 2)),
    ("CAST('1.5' AS NUMERIC)", Decimal("1.5")),
    ("CAST(TIMESTAMP '2020-01-02 03:04:05' AS DATE)", date(2020, 1, 2)),
    # Numbers.
    ("7 / 2", 3.5),
    ("DIV(-7, 2)", -3),
    ("MOD(-7, 3)", -1),
    ("SAFE_DIVIDE(1, 0)", None),
    ("SAFE_DIVIDE(1, 4)", 0.25),
    ("ROUND(2.5)", 3.0),
    ("ROUND(-2.5)", -3.0),
    ("ROUND(123.456, 1)", 123.5),
    ("ROUND(123)", 123.0),
    ("CEIL(1.2)", 2.0),
    ("FLOOR(-1.2)", -2.0),
    ("TRUNC(-1.8)", -1.0),
    ("SIGN(-3)", -1),
    ("ABS(-3)", 3),
    ("SQRT(16)", 4.0),
    ("POW(2, 10)", 1024.0),
    ("LN(1)", 0.0),
    ("LOG(8, 2)", 3.0),
    ("EXP(0)", 1.0),
    ("GREATEST(1, 3, 2)", 3),
    ("GREATEST(1, NULL)", None),
    ("LEAST(2, 1)", 1),
    ("5 ^ 3", 6),
    ("~5", -6),
    ("SIN(0) + COS(0) + TAN(0) + ASIN(0) + ACOS(1) + ATAN(0) + ATAN2(0, 1)", 1.0),
    ("RAND() < 1", True),
    ("IS_INF(CAST('-Infinity' AS FLOAT64))", True),
    ("5 & 3", 1),
    ("5 | 3", 7),
    ("IS_NAN(CAST('NaN' AS FLOAT64))", True),
    # Conditions.
    ("IF(1 < 2, 'a', 'b')", "a"),
    ("IFNULL(NULL, 3)", 3),
    ("COALESCE(NULL, NULL, 4)", 4),
    ("NULLIF(1, 1)", None),
    ("CASE WHEN FALSE THEN 1 ELSE 2 END", 2),
    ("CASE 3 WHEN 3 THEN 'three' END", "three"),
    ("2 BETWEEN 1 AND 3", True),
    ("2 IN (1, 2)", True),
    ("2 IN UNNEST([1, 2])", True),
    ("3 IN UNNEST([1, 2])", False),
    ("NULL IS NULL", True),
    ("1 IS DISTINCT FROM NULL", True),
    ("1 IS NOT DISTINCT FROM 1", True),
    ("1 != 2 AND 1 <> 2 OR NOT TRUE", True),
    ("'a%b' LIKE 'a\\\\%b'", True),
    ("'axb' LIKE 'a\\\\%b'", False),
    ("'axb' LIKE 'a_b'", True),
    ("'abc' NOT LIKE '%d%'", True),
    # Strings.
    ("CONCAT('a', 'b', 'c')", "abc"),
    ("CONCAT('a', NULL)", None),
    ("'a' || 'b'", "ab"),
    ("LENGTH('héé')", 3),
    ("LENGTH(b'abc')", 3),
    ("CHAR_LENGTH('héé')", 3),
    ("LOWER('ABC')", "abc"),
    ("UPPER('abc')", "ABC"),
    ("TRIM('  a ')", "a"),
    ("TRIM('xax', 'x')", "a"),
    ("LTRIM('  a')", "a"),
    ("RTRIM('a  ')", "a"),
    ("SUBSTR('apple', 2)", "pple"),
    ("SUBSTR('apple', 2, 2)", "pp"),
    ("SUBSTR('apple', -2)", "le"),
    ("SUBSTR('apple', 0, 2)", "ap"),
    ("SUBSTR('apple', -9, 2)", "ap"),
    ("STARTS_WITH('apple', 'app')", True),
    ("ENDS_WITH('apple', 'le')", True),
    ("STRPOS('apple', 'l')", 4),
    ("STRPOS('apple', 'z')", 0),
    ("REPLACE('apple', 'p', 'b')", "abble"),
    ("REVERSE('abc')", "cba"),
    ("REPEAT('ab', 3)", "ababab"),
    ("LPAD('7', 3, '0')", "007"),
    ("RPAD('7', 3, '0')", "700"),
    ("LEFT('apple', 2)", "ap"),
    ("RIGHT('apple', 2)", "le"),
    ("SPLIT('a,b,c')", ["a", "b", "c"]),
    ("SPLIT('a b', ' ')", ["a", "b"]),
    ("SPLIT('')", [""]),
    ("REGEXP_CONTAINS('foo@bar', r'@b')", True),
    ("REGEXP_CONTAINS('a\\nb', r'a.b')", False),
    ("REGEXP_EXTRACT('foo@bar.com', r'@(\\w+)')", "bar"),
    ("REGEXP_EXTRACT('foo@bar.com', r'o+')", "oo"),
    ("REGEXP_EXTRACT('foo', r'x')", None),
    ("REGEXP_EXTRACT_ALL('a1b2', r'[0-9]')", ["1", "2"]),
    ("REGEXP_REPLACE('a1b22', r'[0-9]+', '#')", "a#b#"),
    ("REGEXP_REPLACE('ab', r'(a)(b)', r'\\2\\1')", "ba"),
    ("TO_BASE64(b'abc')", "YWJj"),
    ("FROM_BASE64('YWJj')", b"abc"),
    ("TO_HEX(b'\\x00\\xff')", "00ff"),
    ("TO_HEX(MD5('abc'))", "900150983cd24fb0d6963f7d28e17f72"),
    ("TO_HEX(SHA1('abc'))", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    ("LENGTH(GENERATE_UUID())", 36),
    ("MD5('abc')", bytes.fromhex("900150983cd24fb0d6963f7d28e17f72")),
    (
        "TO_HEX(SHA256('abc'))",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    ),
    # Dates and times.
    ("DATE '2020-02-03'", date(2020, 2, 3)),
    ("DATE(2020, 2, 3)", date(2020, 2, 3)),
    ("DATE(TIMESTAMP '2020-02-03 23:30:00+00')", date(2020, 2, 3)),
    ("DATE(TIMESTAMP '2020-02-03 23:30:00+00', 'Europe/Paris')", date(2020, 2, 4)),
    ("DATE_ADD(DATE '2020-01-31', INTERVAL 1 MONTH)", date(2020, 2, 29)),
    ("DATE_ADD(DATE '2020-01-31', INTERVAL 1 DAY)", date(2020, 2, 1)),
    ("DATE_SUB(DATE '2020-01-31', INTERVAL 1 WEEK)", date(2020, 1, 24)),
    ("DATE '2020-01-02' - 1", date(2020, 1, 1)),
    ("DATE '2020-01-02' + 1", date(2020, 1, 3)),
    ("TIMESTAMP '2020-01-02' - INTERVAL 1 DAY", datetime(2020, 1, 1, tzinfo=UTC)),
    ("DATE_DIFF(DATE '2020-01-31', DATE '2020-01-01', DAY)", 30),
    ("DATE_DIFF(DATE '2020-01-05', DATE '2020-01-04', WEEK)", 1),
    ("DATE_DIFF(DATE '2020-01-06', DATE '2020-01-05', WEEK)", 0),
    ("DATE_DIFF(DATE '2020-01-06', DATE '2020-01-05', ISOWEEK)", 1),
    ("DATE_DIFF(DATE '2020-02-01', DATE '2020-01-31', MONTH)", 1),
    ("DATE_TRUNC(DATE '2020-02-05', MONTH)", date(2020, 2, 1)),
    ("DATE_TRUNC(DATE '2020-02-05', WEEK)", date(2020, 2, 2)),
    ("DATE_TRUNC(DATE '2020-02-05', WEEK(MONDAY))", date(2020, 2, 3)),
    ("DATE_TRUNC(DATE '2020-02-05', ISOWEEK)", date(2020, 2, 3)),
    ("DATE_TRUNC(DATE '2020-05-05', QUARTER)", date(2020, 4, 1)),
    ("LAST_DAY(DATE '2020-02-05')", date(2020, 2, 29)),
    ("UNIX_DATE(DATE '1970-01-11')", 10),
    ("EXTRACT(YEAR FROM DATE '2020-02-05')", 2020),
    ("EXTRACT(DAYOFWEEK FROM DATE '2020-02-02')", 1),
    ("EXTRACT(WEEK FROM DATE '2020-01-04')", 0),
    ("EXTRACT(WEEK FROM DATE '2020-01-05')", 1),
    ("EXTRACT(ISOWEEK FROM DATE '2020-01-01')", 1),
    ("EXTRACT(DAYOFYEAR FROM DATE '2020-02-01')", 32),
    ("EXTRACT(HOUR FROM TIMESTAMP '2020-01-01 10:20:30.456')", 10),
    ("EXTRACT(MILLISECOND FROM TIMESTAMP '2020-01-01 10:20:30.456')", 456),
    ("EXTRACT(HOUR FROM TIMESTAMP '2020-01-01 10:00:00' AT TIME ZONE 'Europe/Paris')", 11),
    ("EXTRACT(DATE FROM TIMESTAMP '2020-01-01 10:00:00')", date(2020, 1, 1)),
    ("TIMESTAMP '2020-01-01 00:00:00+02'", datetime(2019, 12, 31, 22, tzinfo=UTC)),
    ("TIMESTAMP('2020-01-01')", datetime(2020, 1, 1, tzinfo=UTC)),
    ("TIMESTAMP(DATE '2020-01-01')", datetime(2020, 1, 1, tzinfo=UTC)),
    (
        "TIMESTAMP_TRUNC(TIMESTAMP '2020-01-01 10:20:30', HOUR)",
        datetime(2020, 1, 1, 10, tzinfo=UTC),
    ),
    (
        "TIMESTAMP_TRUNC(TIMESTAMP '2020-02-05 10:20:30', WEEK)",
        datetime(2020, 2, 2, tzinfo=UTC),
    ),
    (
        "TIMESTAMP_ADD(TIMESTAMP '2020-01-01 00:00:00', INTERVAL 90 MINUTE)",
        datetime(2020, 1, 1, 1, 30, tzinfo=UTC),
    ),
    (
        "TIMESTAMP_SUB(TIMESTAMP '2020-01-01 00:00:00', INTERVAL 1 DAY)",
        datetime(2019, 12, 31, tzinfo=UTC),
    ),
    (
        "TIMESTAMP_DIFF(TIMESTAMP '2020-01-01 11:01:00', TIMESTAMP '2020-01-01 10:59:00', HOUR)",
        0,
    ),
    (
        "TIMESTAMP_DIFF(TIMESTAMP '2020-01-01 10:00:00', TIMESTAMP '2020-01-01 12:30:00', HOUR)",
        -2,
    ),
    ("DATETIME_DIFF(DATETIME '2020-01-02 00:01:00', DATETIME '2020-01-01 23:59:00', DAY)", 1),
    ("DATETIME(TIMESTAMP '2020-01-01 10:00:00')", datetime(2020, 1, 1, 10)),  # noqa: DTZ001
    ("DATETIME_ADD(DATETIME '2020-01-01 10:00:00', INTERVAL 1 HOUR)", datetime(2020, 1, 1, 11)),  # noqa: DTZ001
    (
        "DATETIME_TRUNC(DATETIME '2020-01-01 10:20:00', DAY)",
        datetime(2020, 1, 1),  # noqa: DTZ001
    ),
    ("DATETIME_SUB(DATETIME '2020-01-01 10:00:00', INTERVAL 1 HOUR)", datetime(2020, 1, 1, 9)),  # noqa: DTZ001
    ("CURRENT_DATETIME() > DATETIME '2020-01-01 00:00:00'", True),
    (
        "DATETIME_DIFF(CURRENT_DATETIME('Asia/Tokyo'), CURRENT_DATETIME(), MINUTE) IN (539, 540)",
        True,
    ),
    ("CURRENT_DATE('Asia/Tokyo') >= CURRENT_DATE()", True),
    ("CURRENT_TIME() >= TIME '00:00:00'", True),
    ("TIME '10:20:30.5'", time(10, 20, 30, 500_000)),
    ("UNIX_SECONDS(TIMESTAMP '1970-01-01 00:00:01.9')", 1),
    ("UNIX_MILLIS(TIMESTAMP '1970-01-01 00:00:01.9')", 1900),
    ("UNIX_MICROS(TIMESTAMP '1970-01-01 00:00:01.9')", 1_900_000),
    ("TIMESTAMP_SECONDS(1)", datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ("TIMESTAMP_MILLIS(1500)", datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)),
    ("TIMESTAMP_MICROS(1)", datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    ("FORMAT_DATE('%Y/%m/%d', DATE '2020-02-05')", "2020/02/05"),
    ("FORMAT_TIMESTAMP('%F %T', TIMESTAMP '2020-02-05 10:20:30')", "2020-02-05 10:20:30"),
    ("PARSE_DATE('%Y%m%d', '20200205')", date(2020, 2, 5)),
    (
        "FORMAT_TIMESTAMP('%H', TIMESTAMP '2020-02-05 10:20:30', 'Europe/Paris')",
        "11",
    ),
    ("EXTRACT(MICROSECOND FROM TIME '10:20:30.000456')", 456),
    ("PARSE_DATETIME('%Y-%m-%d', '2020-02-05')", datetime(2020, 2, 5)),  # noqa: DTZ001
    ("TIME(TIMESTAMP '2020-02-05 10:20:30')", time(10, 20, 30)),
    ("DATETIME(TIMESTAMP '2020-01-01 10:00:00', 'Europe/Paris')", datetime(2020, 1, 1, 11)),  # noqa: DTZ001
    ("TIMESTAMP('2020-01-01 10:00:00', 'Europe/Paris')", datetime(2020, 1, 1, 9, tzinfo=UTC)),
    (
        "PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%S', '2020-02-05 10:20:30')",
        datetime(2020, 2, 5, 10, 20, 30, tzinfo=UTC),
    ),
    ("CURRENT_DATE() >= DATE '2020-01-01'", True),
    ("CURRENT_TIMESTAMP() > TIMESTAMP '2020-01-01'", True),
    # Arrays and structs.
    ("[1, 2, 3]", [1, 2, 3]),
    ("ARRAY<STRING>[]", []),
    ("[10, 20][OFFSET(1)]", 20),
    ("[10, 20][ORDINAL(1)]", 10),
    ("[10, 20][SAFE_OFFSET(5)]", None),
    ("[10, 20][SAFE_ORDINAL(0)]", None),
    ("[10, 20][0]", 10),
    ("ARRAY_LENGTH([1, 2, 3])", 3),
    ("ARRAY_CONCAT([1], [2, 3])", [1, 2, 3]),
    ("ARRAY_REVERSE([1, 2])", [2, 1]),
    ("ARRAY_TO_STRING(['a', 'b'], '-')", "a-b"),
    ("GENERATE_ARRAY(1, 7, 3)", [1, 4, 7]),
    (
        "GENERATE_DATE_ARRAY('2020-01-30', '2020-02-01')",
        [date(2020, 1, 30), date(2020, 1, 31), date(2020, 2, 1)],
    ),
    ("ARRAY(SELECT x * 2 FROM UNNEST([1, 2]) AS x ORDER BY x)", [2, 4]),
    ("STRUCT(1, 'x')", {"_field_1": 1, "_field_2": "x"}),
    ("STRUCT(1 AS a, 'x' AS b)", {"a": 1, "b": "x"}),
    ("STRUCT<a INT64, b STRING>(1, 'x')", {"a": 1, "b": "x"}),
    ("STRUCT(1 AS a, [STRUCT('y' AS c)] AS b).b[OFFSET(0)].c", "y"),
    ("(SELECT AS STRUCT 1 AS a, 2 AS b)", {"a": 1, "b": 2}),
    ("EXISTS(SELECT 1 FROM UNNEST([1, 2]) AS x WHERE x = 2)", True),
    # JSON.
    ("""JSON_VALUE('{"a": {"b": 1}}', '$.a.b')""", "1"),
    ("""JSON_VALUE('{"a": {"b": 1}}', '$.a')""", None),
    ("""JSON_VALUE('{"a": null}', '$.a')""", None),
    ("""JSON_VALUE('{"a": ["x", "y"]}', '$.a[1]')""", "y"),
    ("""JSON_EXTRACT_SCALAR('{"a": "x"}', '$.a')""", "x"),
    ("""JSON_QUERY('{"a": {"b": 1}}', '$.a')""", '{"b":1}'),
    ("""JSON_QUERY(JSON '{"a": {"b": 1}}', '$.a')""", {"b": 1}),
    ("""JSON_EXTRACT('{"a": [1, 2]}', '$.a')""", "[1,2]"),
    ("""JSON_VALUE_ARRAY('{"a": ["x", "y"]}', '$.a')""", ["x", "y"]),
    ("""ARRAY_LENGTH(JSON_VALUE_ARRAY('{"a": ["x", {}]}', '$.a'))""", None),
    ("""ARRAY_LENGTH(JSON_QUERY_ARRAY(JSON '{"a": [1, {}]}', '$.a'))""", 2),
    ("""PARSE_JSON('{"a": 1}')""", {"a": 1}),
    ("INT64(JSON '7')", 7),
    ("STRING(JSON '\"x\"')", "x"),
    ("BOOL(JSON 'true')", True),
    ("FLOAT64(JSON '1.5')", 1.5),
    ("TO_JSON_STRING('a')", '"a"'),
    # Aggregates.
    ("(SELECT SUM(x) FROM UNNEST([1, 2, 3]) AS x)", 6),
    ("(SELECT AVG(x) FROM UNNEST([1, 2]) AS x)", 1.5),
    ("(SELECT COUNT(DISTINCT x) FROM UNNEST([1, 1, 2]) AS x)", 2),
    ("(SELECT COUNTIF(x > 1) FROM UNNEST([1, 2, 3]) AS x)", 2),
    ("(SELECT APPROX_COUNT_DISTINCT(x) FROM UNNEST([1, 1, 2]) AS x)", 2),
    ("(SELECT APPROX_QUANTILES(x, 2) FROM UNNEST([1, 2, 3]) AS x)", [1, 2, 3]),
    ("(SELECT APPROX_QUANTILES(x, 100)[OFFSET(50)] FROM UNNEST([1, 2, 3]) AS x)", 2),
    ("(SELECT STRING_AGG(x) FROM UNNEST(['a', 'b']) AS x)", "a,b"),
    ("(SELECT STRING_AGG(x, '-' ORDER BY x DESC) FROM UNNEST(['a', 'b']) AS x)", "b-a"),
    ("(SELECT ARRAY_AGG(x ORDER BY x DESC) FROM UNNEST([1, 2]) AS x)", [2, 1]),
    ("(SELECT ARRAY_AGG(x IGNORE NULLS ORDER BY x) FROM UNNEST([2, NULL, 1]) AS x)", [1, 2]),
    ("(SELECT ARRAY_AGG(x ORDER BY x DESC LIMIT 2) FROM UNNEST([1, 3, 2]) AS x)", [3, 2]),
    ("(SELECT ARRAY_AGG(DISTINCT x ORDER BY x) FROM UNNEST([2, 1, 2]) AS x)", [1, 2]),
    ("(SELECT LOGICAL_AND(x > 0) FROM UNNEST([1, 2]) AS x)", True),
    ("(SELECT ANY_VALUE(x HAVING MAX x) FROM UNNEST([1, 3, 2]) AS x)", 3),
    ("(SELECT MAX_BY(x, -x) FROM UNNEST([1, 3, 2]) AS x)", 1),
    ("(SELECT MIN(x) FROM UNNEST(['b', 'a']) AS x)", "a"),
    ("(SELECT LOGICAL_OR(x > 1) FROM UNNEST([1, 2]) AS x)", True),
    ("(SELECT MIN_BY(x, -x) FROM UNNEST([1, 3, 2]) AS x)", 3),
    ("(SELECT STDDEV_POP(x) FROM UNNEST([1, 3]) AS x)", 1.0),
    ("(SELECT STDDEV_SAMP(x) FROM UNNEST([1, 3]) AS x)", math.sqrt(2)),
    ("(SELECT VARIANCE(x) FROM UNNEST([1, 3]) AS x)", 2.0),
    ("(SELECT VAR_SAMP(x) FROM UNNEST([1, 3]) AS x)", 2.0),
    ("(SELECT VAR_POP(x) FROM UNNEST([1, 3]) AS x)", 1.0),
    ("(SELECT CORR(x, -x) FROM UNNEST([1, 3]) AS x)", -1.0),
    ("(SELECT COVAR_POP(x, x) FROM UNNEST([1, 3]) AS x)", 1.0),
    ("(SELECT COVAR_SAMP(x, x) FROM UNNEST([1, 3]) AS x)", 2.0),
    ("(SELECT STDDEV(x) FROM UNNEST([1, 3]) AS x)", math.sqrt(2)),
    # NULLs come first, and last when descending.
    ("ARRAY(SELECT IFNULL(x, -1) FROM UNNEST([1, NULL, 2]) AS x ORDER BY x)", [-1, 1, 2]),
    ("ARRAY(SELECT IFNULL(x, -1) FROM UNNEST([1, NULL, 2]) AS x ORDER BY x DESC)", [2, 1, -1]),
    ("ARRAY(SELECT o FROM UNNEST(['a', 'b']) AS x WITH OFFSET AS o ORDER BY o)", [0, 1]),
]


@pytest.mark.parametrize(("expression", "expected"), CASES, ids=[case[0] for case in CASES])
def test_an_expression_gives_what_the_reference_says(
    client: bigquery.Client, expression: str, expected: object
) -> None:
    """The value has the right Python type and the value that GoogleSQL's reference gives."""
    (row,) = client.query_and_wait(f"SELECT {expression} AS value")

    value = row.value
    assert type(value) is type(expected)
    if isinstance(expected, float):
        assert value == pytest.approx(expected, nan_ok=True)
    else:
        assert value == expected


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "MOD(1, 0)",
        "[1, 2][OFFSET(2)]",
        "[1, 2][ORDINAL(0)]",
        "CAST('1.5' AS INT64)",
        "CAST('yes' AS BOOL)",
        "CAST(1e15 AS STRING)",
        "9223372036854775807 + 1",
        "[1, NULL]",
        "[[1]]",
        "INT64(JSON '\"x\"')",
        "NUMERIC '1' / 3",
        "ROUND(NUMERIC '1.55', 1)",
        "(SELECT AVG(x) FROM UNNEST([NUMERIC '1']) AS x)",
        "FARM_FINGERPRINT('a')",
        "FORMAT('%d', 3)",
        "ST_GEOGPOINT(1, 2)",
        "NET.HOST('x')",
        "SAFE.SUBSTR('a', 0, -1)",
        "FORMAT_DATE('%Q', DATE '2020-01-01')",
        "CAST(DATE '2020-01-01' AS STRING FORMAT 'YYYY')",
        "TIMESTAMP_TRUNC(TIMESTAMP '2020-01-01', DAY, 'Europe/Paris')",
        "EXTRACT(WEEK(MONDAY) FROM DATE '2020-01-01')",
        "JSON_VALUE('{}', '$.*')",
        "JSON '{\"a\": 1}'['a']",
        "TO_JSON_STRING(TIMESTAMP '2020-01-01')",
        "SESSION_USER()",
        "PARSE_DATE('%m/%d', '02/05')",
        "LAST_DAY(DATE '2020-02-05', WEEK)",
        "TO_JSON_STRING([1.5])",
    ],
)
def test_what_cannot_be_done_is_an_error(client: bigquery.Client, expression: str) -> None:
    """No value is given where BigQuery gives an error, or where the right one is not known."""
    with pytest.raises(BadRequest):
        client.query_and_wait(f"SELECT {expression} AS value")


def test_each_part_of_the_grammar_is_held_to_a_value() -> None:
    """Whatever a query may contain stands in one of these tests with what it gives."""
    queries = [f"SELECT {expression}" for expression, _ in CASES]
    queries += [sql for sql, _ in SHAPES] + FILTERED + CHANGES + [TRUNCATE, WITH_PARAMETER]
    tested = {
        type(node).__name__
        for sql in queries
        for node in sqlglot.parse_one(without_pipes(sql), read="bigquery").walk()
    }
    assert ALLOWED - tested == set()
