"""Default values of columns, in REST and in SQL, and who asks."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

from tests.embedded.test_statements import run

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def asked(client: bigquery.Client, dataset: str) -> str:
    """A table by REST with a default of each kind, named as in SQL."""
    table = bigquery.Table(
        f"{client.project}.{dataset}.asked",
        [
            _column("ID", "STRING", "GENERATE_UUID()", mode="REQUIRED"),
            bigquery.SchemaField("Day", "DATE"),
            _column("By", "STRING", "SESSION_USER()"),
            _column("At", "TIMESTAMP", "CURRENT_TIMESTAMP()"),
            _column("Rank", "INTEGER", "7"),
        ],
    )
    client.create_table(table)
    return dataset


def _column(name: str, kind: str, default: str, mode: str = "NULLABLE") -> bigquery.SchemaField:
    return bigquery.SchemaField(name, kind, mode=mode, default_value_expression=default)


def defaults(client: bigquery.Client, table: str) -> Sequence[str | None]:
    return [field.default_value_expression for field in client.get_table(table).schema]


def test_an_insert_gets_the_defaults_of_columns_that_it_does_not_name(
    client: bigquery.Client, asked: str
) -> None:
    run(client, asked, "INSERT INTO ds.asked (Day) VALUES ('2026-01-02'), ('2026-01-03')")

    first, second = run(client, asked, "SELECT * FROM ds.asked ORDER BY Day")
    assert UUID(first[0]) != UUID(second[0])  # evaluated for each row
    assert first[2] == f"{getpass.getuser()}@localhost"
    assert datetime.now(UTC) - first[3] < timedelta(minutes=1)
    assert first[4] == 7


def test_a_select_and_a_merge_insert_defaults_too(client: bigquery.Client, asked: str) -> None:
    run(client, asked, "INSERT ds.asked (Day) SELECT DATE '2026-01-02' UNION ALL SELECT NULL")
    run(
        client,
        asked,
        "MERGE ds.asked a USING (SELECT DATE '2026-02-01' AS d) s ON a.Day = s.d"
        " WHEN NOT MATCHED THEN INSERT (Day) VALUES (s.d)",
    )

    rows = run(client, asked, "SELECT COUNT(DISTINCT ID), SUM(Rank), COUNT(At) FROM ds.asked")
    assert rows == [(3, 21, 3)]


def test_null_and_the_word_default_are_written_as_they_are_said(
    client: bigquery.Client, asked: str
) -> None:
    run(client, asked, "INSERT ds.asked (ID, At, Rank) VALUES ('a', NULL, DEFAULT)")
    run(client, asked, "INSERT ds.asked VALUES ('b', NULL, 'me@here', DEFAULT, NULL)")

    rows = run(client, asked, "SELECT ID, `By`, At IS NULL, Rank FROM ds.asked ORDER BY ID")
    assert rows == [("a", f"{getpass.getuser()}@localhost", True, 7), ("b", "me@here", False, None)]


def test_a_default_is_defined_changed_and_dropped_in_sql(
    client: bigquery.Client, dataset: str
) -> None:
    run(client, dataset, "CREATE TABLE ds.t (a STRING DEFAULT 'x' NOT NULL, b DATE)")
    assert defaults(client, f"{dataset}.t") == ["'x'", None]
    run(client, dataset, "ALTER TABLE ds.t ALTER COLUMN b SET DEFAULT CURRENT_DATE()")
    run(client, dataset, "ALTER TABLE ds.t ALTER COLUMN a DROP DEFAULT")
    assert defaults(client, f"{dataset}.t") == [None, "CURRENT_DATE"]

    run(client, dataset, "INSERT ds.t (a) VALUES ('y')")

    assert run(client, dataset, "SELECT b = CURRENT_DATE() FROM ds.t") == [(True,)]
    with pytest.raises(BadRequest, match="Required field a cannot be null"):
        run(client, dataset, "INSERT ds.t (b) VALUES (NULL)")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE ds.t (a STRING DEFAULT UPPER('x'))", "neither a literal nor an allowed"),
        ("CREATE TABLE ds.t (a STRING NOT NULL DEFAULT NULL)", "cannot be NULL"),
        ("CREATE TABLE ds.t (a STRUCT<b STRING DEFAULT 'x'>)", "only for a column"),
        ("ALTER TABLE ds.asked ADD COLUMN c STRING DEFAULT 'x'", "fields with a default value"),
        ("ALTER TABLE ds.asked ALTER COLUMN c SET DEFAULT 'x'", "Column not found: c"),
    ],
)
def test_a_default_that_bigquery_would_refuse_is_refused(
    client: bigquery.Client, asked: str, sql: str, message: str
) -> None:
    with pytest.raises(BadRequest, match=message):
        run(client, asked, sql)


def test_a_default_of_another_type_is_refused_when_it_is_written(
    client: bigquery.Client, dataset: str
) -> None:
    run(client, dataset, "CREATE TABLE ds.t (a INT64 DEFAULT 'x', b INT64)")
    with pytest.raises(BadRequest, match="type STRING which cannot be inserted"):
        run(client, dataset, "INSERT ds.t (b) VALUES (1)")


def test_rows_of_load_jobs_and_streams_are_refused_where_defaults_would_matter(
    client: bigquery.Client, asked: str
) -> None:
    """What the service does with rows that lack such a column is not done here."""
    with pytest.raises(BadRequest, match="default values"):
        client.insert_rows_json(f"{client.project}.{asked}.asked", [{"ID": "c"}])
