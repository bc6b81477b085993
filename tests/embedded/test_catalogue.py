"""INFORMATION_SCHEMA, wildcard tables and copy jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound
from google.cloud.bigquery import CopyJobConfig

from tests.embedded.test_statements import run

if TYPE_CHECKING:
    from google.cloud import bigquery


@pytest.fixture
def days(client: bigquery.Client, dataset: str) -> str:
    """A dataset with a table of two days, two tables of one name with suffixes, and a view."""
    columns = "day DATE, k INT64 NOT NULL, raw ARRAY<STRUCT<a NUMERIC(5, 2), b STRING(3)>>"
    run(client, dataset, f"CREATE TABLE ds.t ({columns}) PARTITION BY day CLUSTER BY k")
    run(client, dataset, "INSERT ds.t (day, k) VALUES ('2020-01-01', 1), ('2020-01-02', 2), "
        "('2020-01-02', 3), (NULL, 4)")  # fmt: skip
    run(client, dataset, "CREATE TABLE ds.part_a AS SELECT 1 AS n")
    run(client, dataset, "CREATE TABLE ds.part_b AS SELECT 2 AS n, 'x' AS more")
    run(client, dataset, "CREATE VIEW ds.v AS SELECT 1 AS one")
    return dataset


def test_the_catalogue_can_be_asked_in_sql(client: bigquery.Client, days: str) -> None:
    """SCHEMATA, TABLES, COLUMNS, PARTITIONS, VIEWS and JOBS."""

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return run(client, days, sql)

    assert ask("SELECT table_name, table_type FROM ds.INFORMATION_SCHEMA.TABLES ORDER BY 1") == [
        ("part_a", "BASE TABLE"), ("part_b", "BASE TABLE"), ("t", "BASE TABLE"), ("v", "VIEW"),
    ]  # fmt: skip
    assert ask(
        "SELECT column_name, ordinal_position, is_nullable, data_type, is_partitioning_column, "
        "clustering_ordinal_position FROM `proj.ds.INFORMATION_SCHEMA.COLUMNS` AS c "
        "WHERE c.table_name = 't' ORDER BY 2"
    ) == [
        ("day", 1, "YES", "DATE", "YES", None), ("k", 2, "NO", "INT64", "NO", 1),
        ("raw", 3, "YES", "ARRAY<STRUCT<a NUMERIC(5, 2), b STRING(3)>>", "NO", None),
    ]  # fmt: skip
    assert ask(
        "SELECT partition_id, total_rows FROM ds.INFORMATION_SCHEMA.PARTITIONS "
        "WHERE table_name = 't' ORDER BY 1"
    ) == [("20200101", 1), ("20200102", 2), ("__NULL__", 1)]
    assert ask("SELECT view_definition FROM ds.INFORMATION_SCHEMA.VIEWS") == [("SELECT 1 AS one",)]
    for place in (
        "INFORMATION_SCHEMA",
        "`region-us`.INFORMATION_SCHEMA",
        "proj.`region-us`.INFORMATION_SCHEMA",
    ):
        found = ask(f"SELECT location FROM {place}.SCHEMATA WHERE schema_name = '{days}'")
        assert found == [("US",)]
    (job,) = ask(
        "SELECT state, job_type, statement_type FROM `region-us`.INFORMATION_SCHEMA.JOBS "
        f"WHERE query = 'CREATE VIEW {days}.v AS SELECT 1 AS one'"
    )
    assert job == ("DONE", "QUERY", "CREATE_VIEW")
    with pytest.raises(NotFound, match="Dataset"):
        ask("SELECT * FROM nowhere.INFORMATION_SCHEMA.TABLES")


def test_options_nested_columns_and_the_old_list_of_tables(
    client: bigquery.Client, days: str
) -> None:
    """What dbt's documentation asks for."""

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return run(client, days, sql)

    ask(
        "CREATE TABLE ds.told (at DATE OPTIONS (description = 'the day')) PARTITION BY at OPTIONS ("
        "description = 'say \"it\"', labels = [('a', 'b')], require_partition_filter = TRUE)"
    )

    assert ask(
        "SELECT option_name, option_type, option_value FROM ds.INFORMATION_SCHEMA.TABLE_OPTIONS "
        "WHERE table_name = 'told' ORDER BY 1"
    ) == [
        ("description", "STRING", '"say \\"it\\""'),
        ("labels", "ARRAY<STRUCT<STRING, STRING>>", '[STRUCT("a", "b")]'),
        ("require_partition_filter", "BOOL", "true"),
    ]
    assert ask(
        "SELECT column_name, field_path, data_type, description FROM "
        "ds.INFORMATION_SCHEMA.COLUMN_FIELD_PATHS WHERE table_name IN ('t', 'told') ORDER BY 2"
    ) == [
        ("at", "at", "DATE", "the day"),
        ("day", "day", "DATE", None),
        ("k", "k", "INT64", None),
        ("raw", "raw", "ARRAY<STRUCT<a NUMERIC(5, 2), b STRING(3)>>", None),
        ("raw", "raw.a", "NUMERIC(5, 2)", None),
        ("raw", "raw.b", "STRING(3)", None),
    ]
    assert ask("SELECT * FROM ds.INFORMATION_SCHEMA.MATERIALIZED_VIEWS") == []
    assert ask(
        "SELECT dataset_id, table_id, row_count, size_bytes, type, creation_time > 1600000000000 "
        "FROM `ds.__TABLES__` AS t WHERE t.table_id IN ('t', 'v') ORDER BY 2"
    ) == [(days, "t", 4, None, 1, True), (days, "v", 0, None, 2, True)]


def test_what_is_said_of_a_view_is_not_lost(client: bigquery.Client, days: str) -> None:
    """A sample of a view is refused; PIVOT works on its rows."""
    with pytest.raises(BadRequest, match="not supported"):
        run(client, days, "SELECT * FROM ds.v TABLESAMPLE SYSTEM (10 PERCENT)")
    pivot = "SELECT * FROM ds.v PIVOT (COUNT(*) FOR one IN (1 AS yes, 2 AS no))"
    assert run(client, days, pivot) == [(1, 0)]


def test_a_wildcard_reads_all_tables_of_a_prefix(client: bigquery.Client, days: str) -> None:
    """By the columns of the newest; `_TABLE_SUFFIX` tells them apart and is in no `*`."""

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return run(client, days, sql)

    assert ask("SELECT * FROM `ds.part_*` ORDER BY n") == [(1, None), (2, "x")]
    assert ask("SELECT n, _TABLE_SUFFIX AS s FROM `proj.ds.part_*` ORDER BY n") == [
        (1, "a"), (2, "b"),
    ]  # fmt: skip
    assert ask("SELECT SUM(p.n) FROM `ds.part_*` AS p WHERE _TABLE_SUFFIX = 'b'") == [(2,)]


def test_tables_are_copied(client: bigquery.Client, days: str) -> None:
    """One or several, whole or a day, with the dispositions of loads."""

    def copy(source: str | list[str], to: str, **options: str) -> None:
        names = [source] if isinstance(source, str) else source
        config = CopyJobConfig(**options)
        client.copy_table(
            [f"{days}.{n}" for n in names], f"{days}.{to}", job_config=config
        ).result()

    copy("t", "c")
    made = client.get_table(f"{days}.c")
    assert (made.num_rows, made.time_partitioning.field, made.clustering_fields) == (
        4,
        "day",
        ["k"],
    )
    with pytest.raises(Conflict, match="Already Exists"):
        copy("t", "c")
    copy("t$20200102", "c", write_disposition="WRITE_TRUNCATE")
    copy("t$20200101", "c", write_disposition="WRITE_APPEND")
    assert run(client, days, "SELECT k FROM ds.c ORDER BY k") == [(1,), (2,), (3,)]
    copy(["t", "c"], "both")
    assert client.get_table(f"{days}.both").num_rows == 7
    with pytest.raises(BadRequest, match="is a view"):
        copy("v", "w")
    with pytest.raises(BadRequest, match="onto itself"):
        copy("t", "t", write_disposition="WRITE_TRUNCATE")
