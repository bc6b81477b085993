"""Scripts: several statements, variables and temporary functions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from google.api_core.exceptions import BadRequest

from tests.embedded.test_statements import run

if TYPE_CHECKING:
    from google.cloud import bigquery


def test_variables_keep_their_types(client: bigquery.Client, dataset: str) -> None:
    """DECLARE with and without a type, SET of one and of several, arrays and dates."""
    assert run(
        client,
        dataset,
        """
        DECLARE a, b INT64 DEFAULT 5;
        DECLARE day DATE DEFAULT DATE '2020-01-02';
        DECLARE names ARRAY<STRING>;
        DECLARE at DEFAULT TIMESTAMP '2020-01-02 03:04:05';
        SET a = a + 1;
        SET (b, names) = (a * 10, ['x', 'it''s']);
        SELECT a, b, day + 1, names, at, (SELECT COUNT(*) FROM UNNEST(names));
        """.replace("''", "\\'"),
    ) == [(6, 60, date(2020, 1, 3), ["x", "it's"], datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), 2)]


def test_a_script_of_dbt_replaces_the_partitions_that_come_anew(
    client: bigquery.Client, dataset: str
) -> None:
    """insert_overwrite: variables that are fields of SELECT AS STRUCT, and a MERGE on FALSE."""
    client.query_and_wait(
        f"CREATE TABLE {dataset}.r (id INT64, day DATE) PARTITION BY day;"
        f"INSERT {dataset}.r VALUES (9, '2026-01-01'), (8, '2026-01-02')"
    )
    rows = run(
        client,
        dataset,
        """
        DECLARE days ARRAY<DATE>;
        DECLARE n INT64;
        CREATE OR REPLACE TABLE ds.new PARTITION BY day
        OPTIONS (expiration_timestamp = TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL 12 HOUR))
        AS (SELECT 1 AS id, DATE '2026-01-01' AS day);
        SET (days) = (SELECT AS STRUCT ARRAY_AGG(DISTINCT DATE(day) IGNORE NULLS) FROM ds.new);
        SET (n, days) = (SELECT AS STRUCT COUNT(*), ARRAY_CONCAT(days, days) FROM ds.new);
        MERGE INTO ds.r AS old USING (SELECT * FROM ds.new) AS new ON FALSE
        WHEN NOT MATCHED BY SOURCE AND DATE(old.day) IN UNNEST(days) THEN DELETE
        WHEN NOT MATCHED THEN INSERT (`id`, `day`) VALUES (`id`, `day`);
        DROP TABLE IF EXISTS ds.new;
        SELECT id, n FROM ds.r ORDER BY id
        """,
    )

    assert rows == [(1, 1), (8, 1)]
    with pytest.raises(BadRequest, match="as many values"):
        run(client, dataset, "DECLARE a, b INT64; SET (a, b) = (SELECT AS STRUCT 1)")


def test_a_script_sees_what_it_did(client: bigquery.Client, dataset: str) -> None:
    """Changes and a SELECT after them; a column goes before a variable of its name."""
    job = client.query(
        f"DECLARE n INT64 DEFAULT 7; DECLARE least INT64 DEFAULT 2;"
        f"CREATE TABLE {dataset}.t AS SELECT n FROM UNNEST([1, 2, 3]) AS n;"
        f"INSERT {dataset}.t VALUES (least + 8);"
        f"SELECT n FROM {dataset}.t WHERE n >= least ORDER BY n;"
    )
    assert [tuple(row) for row in job.result()] == [(2,), (3,), (10,)]
    assert job.statement_type == "SCRIPT"
    with pytest.raises(BadRequest, match="division by zero"):
        run(client, dataset, "DELETE FROM ds.t WHERE TRUE; SELECT 1 / 0")
    assert run(client, dataset, "SELECT COUNT(*) FROM ds.t") == [(4,)]
    assert run(client, dataset, "SELECT 1 AS x; SELECT JSON '[1]' AS j") == [([1],)]


def test_temporary_functions(client: bigquery.Client, dataset: str) -> None:
    """In SQL, one of the other, over columns, with and without types."""
    assert run(
        client,
        dataset,
        """
        CREATE TEMP FUNCTION twice(x INT64) RETURNS INT64 AS (x * 2);
        CREATE TEMP FUNCTION both(x ANY TYPE, y ANY TYPE) AS (STRUCT(twice(x) AS a, y AS b));
        SELECT both(n, CAST(n AS STRING)).a FROM UNNEST([1, 2]) AS n
        ORDER BY n
        """,
    ) == [(2,), (4,)]
    assert run(
        client,
        dataset,
        "CREATE TEMP FUNCTION total(l ARRAY<INT64>) AS ((SELECT SUM(e) FROM UNNEST(l) AS e)); "
        "SELECT total([1, 2, 3])",
    ) == [(6,)]
    with pytest.raises(BadRequest, match="Number of arguments"):
        run(client, dataset, "CREATE TEMP FUNCTION f(x INT64) AS (x); SELECT f(1, 2)")
