"""GoogleSQL expressions and what the function reference says they give."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pytest
import sqlglot
from google.api_core.exceptions import BadRequest

from embedded.sql.grammar import ALLOWED
from embedded.sql.pipes import without_pipes
from tests.embedded.expressions import ANSWERS, ERRORS, REFUSED
from tests.embedded.test_query import CHANGES, FILTERED, SHAPES, TRUNCATE, WITH_PARAMETER

if TYPE_CHECKING:
    from google.cloud import bigquery

AT_ONCE = 80


def answers(client: bigquery.Client, expressions: list[str]) -> list[object]:
    """Ask for several at once; if one of them fails, each alone, so that it can be named."""
    columns = ", ".join(f"{text} AS c{place}" for place, text in enumerate(expressions))
    try:
        (row,) = client.query_and_wait(f"SELECT {columns}")
    except BadRequest as exc:
        if len(expressions) == 1:
            return [exc]
        return [answers(client, [text])[0] for text in expressions]
    return list(row.values())


def is_same(value: object, expected: object) -> bool:
    if type(value) is not type(expected):
        return False
    if isinstance(expected, float):
        return value == pytest.approx(expected, nan_ok=True)
    return value == expected


def test_expressions_give_what_the_reference_says(client: bigquery.Client) -> None:
    """Each value has the type and the value that GoogleSQL's reference gives."""
    assert len(ANSWERS) > 500
    wrong = {}
    for start in range(0, len(ANSWERS), AT_ONCE):
        batch = ANSWERS[start : start + AT_ONCE]
        found = answers(client, [text for text, _ in batch])
        for (text, expected), value in zip(batch, found, strict=True):
            if not is_same(value, expected):
                wrong[text] = (value, expected)
    assert not wrong


@pytest.mark.parametrize("group", ["ERRORS", "REFUSED"])
def test_what_has_no_answer_is_an_error(client: bigquery.Client, group: str) -> None:
    """No value is given where BigQuery gives an error, or where the right one is not known."""
    given = {}
    for text in {"ERRORS": ERRORS, "REFUSED": REFUSED}[group]:
        try:
            (row,) = client.query_and_wait(f"SELECT {text} AS value")
        except BadRequest as exc:
            if re.search("DuckDB|[a-z] Error:|bq_|VARCHAR|internal", exc.message):
                given[text] = exc.message
            if group == "REFUSED" and "not supported" not in exc.message:
                given[text] = exc.message
        else:
            given[text] = row.value
    assert not given


def shown_of(values: list[object]) -> list[str]:
    return ["-" if value is None else str(value) for value in values]


def test_nan_is_a_value_of_its_own_in_a_table(client: bigquery.Client, dataset: str) -> None:
    """Comparisons, orders, MIN and windows over a FLOAT64 column with NaN and NULL."""
    client.query_and_wait(
        f"CREATE VIEW {dataset}.v AS SELECT x, x AS y FROM "
        "UNNEST([1.0, CAST('nan' AS FLOAT64), NULL, CAST('-inf' AS FLOAT64)]) AS x"
    )
    shown = "IFNULL(CAST(x AS STRING), '-')"

    def column(sql: str) -> list[object]:
        return [row[0] for row in client.query_and_wait(sql.replace("t.v", f"{dataset}.v"))]

    assert column(f"SELECT {shown} FROM t.v ORDER BY x") == ["-", "NaN", "-inf", "1"]
    assert column(f"SELECT {shown} FROM t.v ORDER BY x DESC") == ["1", "-inf", "NaN", "-"]
    assert column(f"SELECT {shown} FROM t.v ORDER BY x NULLS LAST") == ["NaN", "-inf", "1", "-"]
    assert shown_of(column("SELECT DISTINCT x FROM t.v ORDER BY x")) == ["-", "nan", "-inf", "1.0"]
    assert shown_of(column("SELECT DISTINCT a.x FROM t.v AS a ORDER BY a.x DESC LIMIT 3")) == [
        "1.0", "-inf", "nan",
    ]  # fmt: skip
    assert shown_of(column("SELECT DISTINCT * FROM t.v ORDER BY y NULLS LAST LIMIT 2")) == [
        "nan", "-inf",
    ]  # fmt: skip
    both = "SELECT x FROM t.v UNION DISTINCT SELECT 2.0"
    assert shown_of(column(f"{both} ORDER BY x")) == ["-", "nan", "-inf", "1.0", "2.0"]
    assert shown_of(column(f"({both}) ORDER BY 1 LIMIT 1 OFFSET 1")) == ["nan"]
    assert shown_of(column(f"WITH w AS ({both}) SELECT DISTINCT -x AS z FROM w ORDER BY z")) == [
        "-", "nan", "-2.0", "-1.0", "inf",
    ]  # fmt: skip
    assert column(f"SELECT {shown} AS s FROM t.v WHERE x >= 1") == ["1"]
    assert column("SELECT COUNT(*) FROM t.v AS a JOIN t.v AS b ON a.x = b.y") == [2]
    assert column("SELECT DISTINCT IS_NAN(MIN(x) OVER ()) FROM t.v") == [True]
    assert column("SELECT MIN(x) FROM t.v WHERE NOT IS_NAN(x)") == [-math.inf]
    assert column(
        f"SELECT {shown} FROM t.v QUALIFY ROW_NUMBER() OVER (ORDER BY x NULLS LAST) = 1"
    ) == ["NaN"]


def test_each_part_of_the_grammar_is_held_to_a_value() -> None:
    """Whatever a query may contain stands in one of these tests with what it gives."""
    queries = [f"SELECT {expression}" for expression, _ in ANSWERS] + [
        f"SELECT {expression}" for expression in REFUSED
    ]
    queries += [sql for sql, _ in SHAPES] + FILTERED + CHANGES + [TRUNCATE, WITH_PARAMETER]
    tested = {
        type(node).__name__
        for sql in queries
        for node in sqlglot.parse_one(without_pipes(sql), read="bigquery").walk()
    }
    assert ALLOWED - tested == set()
