"""DDL and DML of nested columns, as an analyst types them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound

if TYPE_CHECKING:
    from google.cloud import bigquery

    from tests.embedded.conftest import Server


def run(client: bigquery.Client, dataset: str, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in client.query_and_wait(sql.replace("ds.", f"{dataset}."))]


def test_datasets_are_made_and_dropped_in_sql(client: bigquery.Client) -> None:
    """CREATE SCHEMA, IF NOT EXISTS, DROP SCHEMA … CASCADE."""
    client.query_and_wait("CREATE SCHEMA made OPTIONS(location='EU', description='by hand')")
    dataset = client.get_dataset("made")
    assert (dataset.location, dataset.description) == ("EU", "by hand")
    client.query_and_wait("CREATE SCHEMA IF NOT EXISTS `proj.made`")
    with pytest.raises(Conflict, match="Already Exists: Dataset proj:made"):
        client.query_and_wait("CREATE SCHEMA made")
    client.query_and_wait("CREATE TABLE made.t (a INT64)")
    with pytest.raises(BadRequest, match="still in use"):
        client.query_and_wait("DROP SCHEMA made")
    client.query_and_wait("DROP SCHEMA made CASCADE")
    client.query_and_wait("DROP SCHEMA IF EXISTS made")
    with pytest.raises(NotFound):
        client.get_dataset("made")


def test_tables_are_made_in_sql(client: bigquery.Client, dataset: str) -> None:
    """Columns of every form, partitioning, clustering, options."""
    run(
        client,
        dataset,
        """
        CREATE TABLE ds.t (
          k INT64 NOT NULL OPTIONS(description='the key'),
          day DATE, ts TIMESTAMP, name STRING(10), price NUMERIC(5, 2),
          raw STRUCT<id STRING, tags ARRAY<STRING>, at STRUCT<x FLOAT64>>,
          items ARRAY<STRUCT<n INT64>>, blob BYTES, doc JSON
        )
        PARTITION BY day CLUSTER BY k, name
        OPTIONS(description='made', labels=[('a', 'b')], require_partition_filter=TRUE)
        """,
    )
    table = client.get_table(f"{dataset}.t")
    assert [(field.name, field.field_type, field.mode) for field in table.schema] == [
        ("k", "INTEGER", "REQUIRED"), ("day", "DATE", "NULLABLE"), ("ts", "TIMESTAMP", "NULLABLE"),
        ("name", "STRING", "NULLABLE"), ("price", "NUMERIC", "NULLABLE"),
        ("raw", "RECORD", "NULLABLE"), ("items", "RECORD", "REPEATED"),
        ("blob", "BYTES", "NULLABLE"), ("doc", "JSON", "NULLABLE"),
    ]  # fmt: skip
    assert table.schema[0].description == "the key"
    assert (table.schema[3].max_length, table.schema[4].precision) == (10, 5)
    assert table.schema[5].fields[1].mode == "REPEATED"
    assert table.time_partitioning.field == "day"
    assert table.clustering_fields == ["k", "name"]
    assert (table.description, table.labels) == ("made", {"a": "b"})
    with pytest.raises(BadRequest, match="without a filter"):
        run(client, dataset, "SELECT k FROM ds.t")
    with pytest.raises(Conflict, match="Already Exists: Table"):
        run(client, dataset, "CREATE TABLE ds.t (a INT64)")
    run(client, dataset, "CREATE TABLE IF NOT EXISTS ds.t (a INT64)")
    assert len(client.get_table(f"{dataset}.t").schema) == 9
    run(client, dataset, "CREATE OR REPLACE TABLE ds.t (a INT64)")
    assert len(client.get_table(f"{dataset}.t").schema) == 1
    run(client, dataset, "ALTER TABLE ds.t ADD COLUMN b STRING, ADD COLUMN IF NOT EXISTS a INT64")
    assert [field.name for field in client.get_table(f"{dataset}.t").schema] == ["a", "b"]
    for statement in ("CREATE TABLE ds.u (a INT64) PARTITION BY RANGE_BUCKET(a, [1])",
                      "CREATE TABLE ds.u (a GEOGRAPHY)",
                      "CREATE TABLE ds.u (a INT64) OPTIONS(kms_key_name='x')",
                      "ALTER TABLE ds.t RENAME TO u"):  # fmt: skip
        with pytest.raises(BadRequest, match="not supported"):
            run(client, dataset, statement)


def test_a_table_is_made_of_a_query(client: bigquery.Client, dataset: str) -> None:
    """CREATE TABLE AS SELECT, also over itself, LIKE, COPY and CLONE."""
    job = client.query(
        f"CREATE TABLE {dataset}.t PARTITION BY d AS "
        "SELECT DATE '2020-01-02' AS d, 1 AS n, [STRUCT('x' AS s)] AS l, CAST(NULL AS STRING) AS z"
    )
    job.result()
    assert (job.statement_type, job.ddl_operation_performed) == ("CREATE_TABLE_AS_SELECT", "CREATE")
    assert job.ddl_target_table.table_id == "t"
    assert client.get_table(f"{dataset}.t").time_partitioning.field == "d"
    run(client, dataset, "CREATE OR REPLACE TABLE ds.t AS SELECT n + 1 AS n, l FROM ds.t")
    assert run(client, dataset, "SELECT * FROM ds.t") == [(2, [{"s": "x"}])]
    run(client, dataset, "CREATE TABLE ds.same LIKE ds.t")
    assert client.get_table(f"{dataset}.same").num_rows == 0
    run(client, dataset, "CREATE TABLE ds.copied COPY ds.t")
    assert run(client, dataset, "SELECT n FROM ds.copied") == [(2,)]
    run(client, dataset, "CREATE TABLE ds.named (m INT64, k ARRAY<STRUCT<s STRING>>) AS "
        "SELECT n, l FROM ds.t")  # fmt: skip
    assert run(client, dataset, "SELECT m FROM ds.named") == [(2,)]
    run(client, dataset, "DROP TABLE ds.named")
    with pytest.raises(NotFound):
        run(client, dataset, "DROP TABLE ds.named")


NESTED = """
k INT64, f FLOAT64, raw STRUCT<id STRING, at STRUCT<x INT64, y INT64>>, tags ARRAY<STRUCT<t STRING>>
"""

TWICE = (
    "MERGE ds.t USING (SELECT 2 AS k UNION ALL SELECT 2) AS s ON t.k = s.k WHEN MATCHED THEN DELETE"
)


def test_nested_columns_are_written_in_sql(client: bigquery.Client, dataset: str) -> None:
    """INSERT of STRUCTs by place, SET of a path, INSERT ROW; what does not fit is refused."""
    run(client, dataset, f"CREATE TABLE ds.t ({NESTED})")
    run(client, dataset, "INSERT INTO ds.t (k, raw, tags) VALUES "
        "(1, STRUCT('a', STRUCT(1 AS p, 2 AS q)), [STRUCT('u')]), "
        "(2, ('b', (3, 4)), [])")  # fmt: skip
    run(client, dataset, "INSERT ds.t SELECT 3, 1.5, STRUCT('c', NULL), [STRUCT('v'), STRUCT('w')]")
    assert run(client, dataset, "SELECT k, raw.id, raw.at.x FROM ds.t ORDER BY k") == [
        (1, "a", 1), (2, "b", 3), (3, "c", None),
    ]  # fmt: skip
    run(client, dataset, "UPDATE ds.t SET raw.at.x = k * 10, raw.id = UPPER(raw.id) WHERE k < 3")
    run(client, dataset, "UPDATE ds.t AS r SET r.tags = [], f = f * 2 WHERE r.k = 3")
    assert run(client, dataset, "SELECT raw, ARRAY_LENGTH(tags) FROM ds.t ORDER BY k") == [
        ({"id": "A", "at": {"x": 10, "y": 2}}, 1), ({"id": "B", "at": {"x": 20, "y": 4}}, 0),
        ({"id": "c", "at": None}, 0),
    ]  # fmt: skip
    run(
        client,
        dataset,
        "CREATE TABLE ds.s AS SELECT k + 1 AS k, f, raw, tags FROM ds.t WHERE k > 1",
    )
    run(client, dataset, "MERGE ds.t AS t USING ds.s AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET raw.id = s.raw.id WHEN NOT MATCHED THEN INSERT ROW "
        "WHEN NOT MATCHED BY SOURCE AND t.k = 1 THEN DELETE")  # fmt: skip
    assert run(client, dataset, "SELECT k, raw.id FROM ds.t ORDER BY k") == [
        (2, "B"), (3, "B"), (4, "c"),
    ]  # fmt: skip
    run(client, dataset, "DELETE ds.t WHERE raw.id = 'c'")
    assert run(client, dataset, "SELECT COUNT(*) FROM ds.t") == [(2,)]
    for statement, said in (
        ("INSERT ds.t (k, raw) VALUES (1, STRUCT('x'))", "STRUCT with 1 fields"),
        ("INSERT ds.t (k) VALUES (1, 2)", "wrong column count"),
        ("INSERT ds.t (nope) VALUES (1)", "nope is not present"),
        ("INSERT ds.t (k, raw) VALUES (1, STRUCT('x', STRUCT(1.5, 2)))", "type FLOAT"),
        ("UPDATE ds.t SET tags.t = 'x' WHERE TRUE", "Cannot access field t of tags"),
        ("UPDATE ds.t SET raw.nope = 1 WHERE TRUE", "nope is not present"),
        ("UPDATE ds.t SET k = 1, k = 2 WHERE TRUE", "more than once"),
        (TWICE, "at most one source row"),
    ):  # fmt: skip
        with pytest.raises(BadRequest, match=said):
            run(client, dataset, statement)


def test_a_request_may_be_compressed(server: Server) -> None:
    """`Content-Encoding: gzip`, as Java's clients send; what is none is refused."""
    body = gzip.compress(json.dumps({"query": "SELECT 1 AS x", "useLegacySql": False}).encode())

    def post(data: bytes) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{server.url}/bigquery/v2/projects/proj/queries",
            data,
            {"Content-Encoding": "gzip", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=100) as reply:
            answer: dict[str, Any] = json.load(reply)
            return answer

    assert post(body)["rows"] == [{"f": [{"v": "1"}]}]
    for broken in (b"{}", body[:-4]):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            post(broken)


def test_help_has_no_marks_of_bold_type() -> None:
    """`--help` on a terminal."""
    done = subprocess.run(
        [sys.executable, "-m", "embedded", "--help"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "**" not in done.stdout
    assert "`" not in done.stdout


def test_alter_table_sets_options(client: bigquery.Client, dataset: str) -> None:
    """SET OPTIONS changes what it names, as dbt does after a seed."""
    client.query_and_wait(
        f"CREATE TABLE {dataset}.t (n INT64) OPTIONS (description = 'a', labels = [('k', 'v')])"
    )
    client.query_and_wait(f"ALTER TABLE {dataset}.t SET OPTIONS (description = 'b')")
    client.query_and_wait(f"ALTER TABLE {dataset}.t SET OPTIONS()")
    table = client.get_table(f"{dataset}.t")
    assert (table.description, table.labels) == ("b", {"k": "v"})


def test_a_created_table_is_its_jobs_destination(client: bigquery.Client, dataset: str) -> None:
    """Clients find the table of CREATE TABLE AS in the job, and no rows."""
    job = client.query(f"CREATE TABLE {dataset}.t AS SELECT 1 AS n")
    assert list(job.result()) == []
    assert job.destination.table_id == "t"
