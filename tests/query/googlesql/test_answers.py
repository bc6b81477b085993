"""Spark's answers to translated questions are those of BigQuery, over HTTP, on the same rows."""

from __future__ import annotations

import base64
import datetime as dt
import math
import os
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

from jostler.schema.fields import fields_to_api
from loader.query.errors import QueryError
from loader.query.googlesql.python import register
from loader.query.googlesql.reading import read
from loader.query.googlesql.translating import to_spark
from loader.query.googlesql.types import struct, type_of
from tests.embedded.expressions import ANSWERS
from tests.query.googlesql.expressions import (
    AGGREGATES,
    EXPRESSIONS,
    FAILING,
    FAILING_SUMS,
    FIELDS,
    QUERIES,
    ROWS,
    SUMS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from jostler.schema.fields import Field, Fields
    from tests.loader.world import BigQueryServer

pytestmark = pytest.mark.long  # Spark compiles many queries

ALL = bool(os.environ.get("JOSTLER_ALL_EXPRESSIONS"))
"""Also each expression of the embedded BigQuery's tests; it takes minutes."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling hundreds of expressions that run on five rows would take a minute."""


class Tables:
    """The one table of these tests."""

    def names(self) -> tuple[str, ...]:
        return ("v",)

    def columns(self, table: str) -> Fields | None:
        return FIELDS if table == "v" else None


class Engines:
    """The same rows in both engines."""

    def __init__(self, client: bigquery.Client, spark: SparkSession, rows: DataFrame) -> None:
        self.client, self.spark, self.rows = client, spark, rows

    def by_bigquery(self, sql: str) -> list[list[Any]]:
        return [plain(list(row.values())) for row in self.client.query_and_wait(sql)]

    def by_spark(self, sql: str) -> list[list[Any]]:
        text = to_spark(read(sql, Tables()), Tables())
        for one in text.reads:
            self.rows.createOrReplaceTempView(one.view)
        register(self.spark, text.functions)
        return [plain(list(row)) for row in self.spark.sql(text.sql).collect()]


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - a value of any type
    """Return a value of either engine in one form; instants as seconds, NaN as a text."""
    if isinstance(value, dt.datetime):
        # Spark gives a TIMESTAMP without a zone, in this machine's time.
        return value.timestamp() if value.tzinfo is None else value.astimezone(dt.UTC).timestamp()
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.13g}")
    return value


def typed(value: Any, field: Field) -> Any:  # noqa: ANN401, PLR0911 - as above
    """Return a value of `ROWS` as Spark takes it."""
    if isinstance(value, list):
        return [typed(inner, field) for inner in value]
    if value is None:
        return None
    match field.type:
        case "RECORD":
            return tuple(typed(value.get(sub.name), sub) for sub in field.fields)
        case "FLOAT":
            return float(value)
        case "BYTES":
            return base64.b64decode(value)
        case "DATE":
            return dt.date.fromisoformat(value)
        case "TIMESTAMP":
            return dt.datetime.fromisoformat(value).replace(tzinfo=dt.UTC)
        case "DATETIME":
            return dt.datetime.fromisoformat(value)
    return value


@pytest.fixture(scope="module")
def engines(spark: SparkSession, warehouse: BigQueryServer) -> Iterator[Engines]:
    from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - used here alone

    schema = struct((field.name, type_of(field)) for field in FIELDS).spark
    rows = [tuple(typed(row.get(field.name), field) for field in FIELDS) for row in ROWS]
    frame = spark.createDataFrame(rows, schema.removeprefix("STRUCT<").removesuffix(">"))
    before = {name: spark.conf.get(name, None) for name in INTERPRETED}
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    client = bigquery.Client(
        "answers",
        AnonymousCredentials(),
        client_options={"api_endpoint": warehouse.url},
        default_query_job_config=bigquery.QueryJobConfig(default_dataset="answers.d"),
    )
    client.create_dataset("d")
    api = [bigquery.SchemaField.from_api_repr(one) for one in fields_to_api(FIELDS)]
    load = bigquery.LoadJobConfig(schema=api)
    client.load_table_from_json(ROWS, "answers.d.v", job_config=load).result()
    yield Engines(client, spark, frame)
    client.close()
    for name, was in before.items():
        spark.conf.unset(name) if was is None else spark.conf.set(name, was)


def compared(engines: Engines, texts: list[str], rest: str) -> dict[str, tuple[Any, Any]]:
    """Ask for all expressions in one query of each engine; return those that differ."""
    columns = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
    sql = f"SELECT {columns} {rest}"
    ours, theirs = engines.by_spark(sql), engines.by_bigquery(sql)
    assert len(ours) == len(theirs)
    return {
        text: (mine, other)
        for place, text in enumerate(texts)
        for mine, other in [([row[place] for row in ours], [row[place] for row in theirs])]
        if repr(mine) != repr(other)
    }


def test_expressions_have_the_same_values_in_both_engines(engines: Engines) -> None:
    """Over rows with NULL, NaN, infinity, empty texts and arrays; the types agree, too."""
    assert len(EXPRESSIONS) + len(AGGREGATES) > 250
    different = compared(engines, EXPRESSIONS, "FROM v ORDER BY id")
    assert different == {}


def test_aggregates_have_the_same_values_in_both_engines(engines: Engines) -> None:
    """Over all rows, and over none."""
    assert compared(engines, AGGREGATES, "FROM v") == {}
    assert compared(engines, AGGREGATES, "FROM v WHERE id > 99") == {}


def test_what_is_an_error_in_bigquery_is_one_in_spark(engines: Engines) -> None:
    """Overflows that Spark answers with infinity are among them."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark may be missing

    for text in FAILING:
        sql = f"SELECT {text} AS x FROM (SELECT 2.5 AS f, 7 AS i, 'Foo' AS s, [3, 1, 2] AS a)"
        with pytest.raises(BadRequest):
            engines.by_bigquery(sql)
        with pytest.raises(PySparkException):
            engines.by_spark(sql)


def test_sums_are_exact_in_both_engines(engines: Engines) -> None:
    """However large the parts are; infinity and NaN come from infinity and NaN alone."""
    different = {}
    for text, expected in SUMS.items():
        found = [by(f"SELECT {text}") for by in (engines.by_spark, engines.by_bigquery)]
        if found != [[[plain(value)] for value in expected]] * 2:
            different[text] = found
    assert different == {}


def test_sums_out_of_range_are_errors_in_both_engines(engines: Engines) -> None:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark may be missing

    for text in FAILING_SUMS:
        with pytest.raises(BadRequest, match=r"overflow|out of range"):
            engines.by_bigquery(f"SELECT {text}")
        with pytest.raises(PySparkException, match=r"overflow|OVERFLOW|OUT_OF_RANGE"):
            engines.by_spark(f"SELECT {text}")


def test_queries_have_the_same_rows_in_both_engines(engines: Engines) -> None:
    """Joins, groups, orders, set operations, subqueries and pipes."""
    different = {}
    for sql in QUERIES:
        ours, theirs = engines.by_spark(sql), engines.by_bigquery(read(sql, Tables()).sql)
        if " ORDER BY " not in sql:
            ours, theirs = sorted(ours, key=repr), sorted(theirs, key=repr)
        if ours != theirs:
            different[sql] = (ours, theirs)
    assert different == {}


def test_the_references_examples_have_their_answers_in_spark(engines: Engines) -> None:
    """What the reference says of an expression is Spark's answer, unless it is refused."""
    some = ANSWERS if ALL else ANSWERS[::9]
    known = []
    for text, answer in some:
        try:
            read(f"SELECT {text} AS x", Tables())
        except QueryError:
            continue
        known.append((text, plain(answer)))
    assert len(known) > len(some) * 0.7
    for start in range(0, len(known), 80):
        batch = known[start : start + 80]
        columns = ", ".join(f"{text} AS c{place}" for place, (text, _) in enumerate(batch))
        (found,) = engines.by_spark(f"SELECT {columns}")
        different = {
            text: (value, answer)
            for (text, answer), value in zip(batch, found, strict=True)
            if value != answer
        }
        assert different == {}
