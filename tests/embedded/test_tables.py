"""Datasets and tables, through the official client."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound, PreconditionFailed
from google.cloud import bigquery
from google.cloud.bigquery import SchemaField

from jostler.schema import fields_to_api, parse_datatype_schema, table_schema

FIELDS = [
    SchemaField("date", "DATE", "REQUIRED", description="the day"),
    SchemaField("n", "INTEGER"),
    SchemaField(
        "raw", "RECORD", fields=[SchemaField("a", "STRING"), SchemaField("b", "FLOAT", "REPEATED")]
    ),
]


def make(client: bigquery.Client, dataset: str, name: str = "t") -> bigquery.Table:
    table = bigquery.Table(f"proj.{dataset}.{name}", schema=FIELDS)
    table.time_partitioning = bigquery.TimePartitioning(field="date")
    table.clustering_fields = ["n"]
    table.require_partition_filter = True
    table.description = "measurements"
    table.labels = {"who": "tests"}
    return client.create_table(table)


def load(client: bigquery.Client, table: str, *rows: dict[str, object]) -> None:
    client.load_table_from_json(list(rows), table).result()


def test_a_dataset_is_made_found_described_and_dropped(client: bigquery.Client) -> None:
    """The client reads back what it wrote, and not-found once it is gone."""
    made = bigquery.Dataset("proj.ds_life")
    made.description = "first"
    made.labels = {"a": "b"}
    made.location = "EU"
    client.create_dataset(made)

    found = client.get_dataset("ds_life")
    assert (found.description, found.labels, found.location) == ("first", {"a": "b"}, "EU")
    assert "ds_life" in {item.dataset_id for item in client.list_datasets()}

    found.description = "second"
    client.update_dataset(found, ["description"])
    assert client.get_dataset("ds_life").description == "second"

    client.delete_dataset("ds_life")
    with pytest.raises(NotFound, match="Not found: Dataset proj:ds_life"):
        client.get_dataset("ds_life")


def test_a_dataset_is_made_once(client: bigquery.Client, dataset: str) -> None:
    """A second insert is refused, unless the caller allows for it."""
    with pytest.raises(Conflict, match="Already Exists: Dataset proj:"):
        client.create_dataset(dataset)
    client.create_dataset(dataset, exists_ok=True)


@pytest.mark.parametrize("name", ["with-dash", "with.dot", ""])
def test_a_dataset_name_is_letters_digits_and_underscores(
    client: bigquery.Client, name: str
) -> None:
    """A dash, which a table may have, is refused."""
    body = {"datasetReference": {"projectId": "proj", "datasetId": name}}
    with pytest.raises(BadRequest, match="Invalid dataset ID"):
        client._connection.api_request(method="POST", path="/projects/proj/datasets", data=body)


def test_a_dataset_with_tables_is_not_dropped_by_accident(
    client: bigquery.Client, dataset: str
) -> None:
    """It takes deleteContents to drop the tables too."""
    make(client, dataset)
    with pytest.raises(BadRequest, match="still in use"):
        client.delete_dataset(dataset)
    client.delete_dataset(dataset, delete_contents=True)
    with pytest.raises(NotFound):
        client.get_table(f"{dataset}.t")


def test_a_table_reads_back_as_it_was_made(client: bigquery.Client, dataset: str) -> None:
    """Schema, partitions, clustering, description and labels are kept."""
    make(client, dataset)
    found = client.get_table(f"{dataset}.t")

    assert found.schema == FIELDS
    assert found.time_partitioning.field == "date"
    assert found.clustering_fields == ["n"]
    assert found.require_partition_filter is True
    assert (found.description, found.labels) == ("measurements", {"who": "tests"})
    assert (found.num_rows, found.table_type) == (0, "TABLE")
    assert [item.table_id for item in client.list_tables(dataset)] == ["t"]
    with pytest.raises(Conflict, match="Already Exists: Table"):
        make(client, dataset)
    client.delete_table(f"{dataset}.t")
    with pytest.raises(NotFound, match="Not found: Table"):
        client.get_table(f"{dataset}.t")


def test_a_table_is_gone_when_it_expires(client: bigquery.Client, dataset: str) -> None:
    """It is listed and read until then; its name is free afterwards."""
    make(client, dataset)
    kept, gone = client.get_table(f"{dataset}.t"), f"{dataset}.gone"
    now = datetime.now(UTC).replace(microsecond=0)
    kept.expires = now + timedelta(hours=1)
    kept = client.update_table(kept, ["expires"])
    assert kept.expires == now + timedelta(hours=1)
    past = "OPTIONS (expiration_timestamp = TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 1 SECOND))"

    client.query_and_wait(f"CREATE TABLE {gone} (n INT64) {past}")

    with pytest.raises(NotFound, match="Not found: Table"):
        client.get_table(gone)
    assert [item.table_id for item in client.list_tables(dataset)] == ["t"]
    client.query_and_wait(f"CREATE TABLE {gone} AS SELECT 1 AS n")
    client.query_and_wait(f"ALTER TABLE {gone} SET {past}")
    with pytest.raises(NotFound):
        client.query_and_wait(f"SELECT n FROM {gone}")
    kept.expires = None
    assert client.update_table(kept, ["expires"]).expires is None


def test_tables_live_as_long_as_their_dataset_says(client: bigquery.Client, dataset: str) -> None:
    """The default lifetime is that of tables made afterwards."""
    found = client.get_dataset(dataset)
    found.default_table_expiration_ms = 3_600_000
    client.update_dataset(found, ["default_table_expiration_ms"])
    make(client, dataset)

    expires = client.get_table(f"{dataset}.t").expires

    assert timedelta(minutes=50) < expires - datetime.now(UTC) < timedelta(hours=1)


def test_table_names_differ_by_case(client: bigquery.Client, dataset: str) -> None:
    """`T` and `t` are two tables."""
    make(client, dataset, "t")
    make(client, dataset, "T")
    load(client, f"{dataset}.T", {"date": "2022-09-29"})

    assert client.get_table(f"{dataset}.t").num_rows == 0
    assert client.get_table(f"{dataset}.T").num_rows == 1


@pytest.mark.parametrize("kind", ["GEOGRAPHY", "INTERVAL", "RANGE"])
def test_a_type_that_cannot_be_held_is_refused_by_name(
    client: bigquery.Client, dataset: str, kind: str
) -> None:
    """Creation fails and says which field and which type."""
    schema = [SchemaField("outer", "RECORD", fields=[SchemaField("inner", kind)])]
    with pytest.raises(BadRequest, match=f"Type {kind} of field outer.inner is not supported"):
        client.create_table(bigquery.Table(f"proj.{dataset}.t", schema=schema))


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"name": "a b", "type": "STRING"}, "Invalid field name"),
        ({"name": "_PARTITIONDATE", "type": "DATE"}, "Invalid field name"),
        ({"name": "a", "type": "STRUNG"}, "Invalid value for type"),
        ({"name": "a", "type": "STRING", "mode": "MAYBE"}, "Invalid value for mode"),
        ({"name": "a", "type": "RECORD"}, "has no fields"),
        ({"name": "a", "type": "STRING", "policyTags": {"names": ["x"]}}, "policyTags of field a"),
        ({"name": "a", "type": "NUMERIC", "precision": "50"}, "Invalid precision"),
        ({"name": "A", "type": "STRING"}, "Duplicate field name"),
    ],
)
def test_a_field_that_bigquery_would_not_have_is_refused(
    client: bigquery.Client, dataset: str, field: dict[str, object], said: str
) -> None:
    """Names, types and modes are held to the rules of TableFieldSchema."""
    before = [{"name": "a", "type": "STRING"}] if field["name"] == "A" else []
    body = {
        "tableReference": {"projectId": "proj", "datasetId": dataset, "tableId": "t"},
        "schema": {"fields": [*before, field]},
    }
    with pytest.raises(BadRequest, match=said):
        client._connection.api_request(
            method="POST", path=f"/projects/proj/datasets/{dataset}/tables", data=body
        )


def test_partitioning_is_by_day_on_a_column(client: bigquery.Client, dataset: str) -> None:
    """Ingestion time, other units and other columns are refused."""
    for partitioning, said in (
        (bigquery.TimePartitioning(), "ingestion time"),
        (bigquery.TimePartitioning(type_="MONTH", field="date"), "Partitioning by MONTH"),
        (bigquery.TimePartitioning(field="n"), "must be a top-level"),
        (bigquery.TimePartitioning(field="missing"), "cannot be found"),
    ):
        table = bigquery.Table(f"proj.{dataset}.t", schema=FIELDS)
        table.time_partitioning = partitioning
        with pytest.raises(BadRequest, match=said):
            client.create_table(table)


def test_columns_are_added_at_the_end_at_every_level(client: bigquery.Client, dataset: str) -> None:
    """Rows from before read NULL, or an empty array, in what was added."""
    table = make(client, dataset)
    load(client, f"{dataset}.t", {"date": "2022-09-29", "n": 1, "raw": {"a": "x", "b": [1.5]}})
    table.schema = [
        SchemaField("date", "DATE", "NULLABLE"),
        FIELDS[1],
        SchemaField(
            "raw",
            "RECORD",
            fields=[
                *FIELDS[2].fields,
                SchemaField("c", "INTEGER"),
                SchemaField("d", "RECORD", "REPEATED", fields=[SchemaField("e", "STRING")]),
            ],
        ),
        SchemaField("tags", "STRING", "REPEATED"),
    ]

    changed = client.update_table(table, ["schema"])

    assert changed.schema == table.schema
    (row,) = client.list_rows(f"{dataset}.t")
    assert row["raw"] == {"a": "x", "b": [1.5], "c": None, "d": []}
    assert row["tags"] == []
    (counts,) = client.query_and_wait(
        f"SELECT ARRAY_LENGTH(raw.d) AS d, ARRAY_LENGTH(tags) AS tags FROM {dataset}.t "
        "WHERE date > '2022-01-01'"
    )
    assert (counts.d, counts.tags) == (0, 0)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (FIELDS[:2], "Field raw is missing in new schema"),
        (
            [FIELDS[0], SchemaField("n", "STRING"), FIELDS[2]],
            "Field n has changed type from INTEGER to STRING",
        ),
        (
            [FIELDS[0], SchemaField("n", "INTEGER", "REQUIRED"), FIELDS[2]],
            "Field n has changed mode from NULLABLE to REQUIRED",
        ),
        (
            [*FIELDS, SchemaField("new", "STRING", "REQUIRED")],
            "Cannot add required fields to an existing schema. .field: new",
        ),
        (
            [FIELDS[0], SchemaField("new", "STRING"), *FIELDS[1:]],
            "Fields can be added at the end only .field: new",
        ),
        (
            [*FIELDS[:2], SchemaField("raw", "RECORD", fields=[SchemaField("a", "STRING")])],
            "Field raw.b is missing in new schema",
        ),
    ],
)
def test_other_schema_changes_are_refused_in_bigquerys_words(
    client: bigquery.Client, dataset: str, schema: list[SchemaField], said: str
) -> None:
    """Nothing but additions and REQUIRED → NULLABLE; the old schema stays."""
    table = make(client, dataset)
    table.schema = schema
    words = rf"Provided Schema does not match Table proj:{dataset}.t\. {said}"
    with pytest.raises(BadRequest, match=words):
        client.update_table(table, ["schema"])
    assert client.get_table(f"{dataset}.t").schema == FIELDS


def test_a_stale_etag_changes_nothing(client: bigquery.Client, dataset: str) -> None:
    """The second of two that read the same state gets 412."""
    first, second = make(client, dataset), client.get_table(f"{dataset}.t")
    first.description = "first"
    client.update_table(first, ["description"])
    second.description = "second"
    with pytest.raises(PreconditionFailed):
        client.update_table(second, ["description"])
    assert client.get_table(f"{dataset}.t").description == "first"


def test_a_column_description_can_change(client: bigquery.Client, dataset: str) -> None:
    """Descriptions are metadata; no rule of evolution holds for them."""
    table = make(client, dataset)
    table.schema = [SchemaField("date", "DATE", "REQUIRED", description="new"), *FIELDS[1:]]
    client.update_table(table, ["schema"])
    assert client.get_table(f"{dataset}.t").schema[0].description == "new"


def test_partitioning_cannot_change(client: bigquery.Client, dataset: str) -> None:
    """The filter requirement can."""
    table = make(client, dataset)
    table.require_partition_filter = False
    table = client.update_table(table, ["require_partition_filter"])
    assert not client.get_table(f"{dataset}.t").require_partition_filter
    table.time_partitioning = None
    with pytest.raises(BadRequest, match="Cannot change partitioning"):
        client.update_table(table, ["time_partitioning"])


def test_a_view_shows_its_query(client: bigquery.Client, dataset: str) -> None:
    """It has the columns and the rows of its query, over another view too."""
    make(client, dataset)
    load(client, f"{dataset}.t", {"date": "2022-09-29", "n": 3, "raw": {"a": "x"}})
    view = bigquery.Table(f"proj.{dataset}.v")
    view.view_query = f"SELECT date, n * 2 AS twice, raw.a FROM `proj.{dataset}.t`"
    view = client.create_table(view)
    outer = bigquery.Table(f"proj.{dataset}.w")
    outer.view_query = f"SELECT * FROM {dataset}.v"
    client.create_table(outer)

    assert [(field.name, field.field_type) for field in view.schema] == [
        ("date", "DATE"),
        ("twice", "INTEGER"),
        ("a", "STRING"),
    ]
    assert (view.table_type, view.view_use_legacy_sql) == ("VIEW", False)
    query = f"SELECT * FROM {dataset}.w WHERE date = '2022-09-29'"
    (row,) = client.query_and_wait(query)
    assert (row.twice, row.a) == (6, "x")
    with pytest.raises(BadRequest, match="without a filter over column"):
        client.query_and_wait(f"SELECT * FROM {dataset}.w")

    view.view_query = f"SELECT n FROM {dataset}.t"
    client.update_table(view, ["view_query"])
    assert [field.name for field in client.get_table(f"{dataset}.v").schema] == ["n"]


def test_a_view_of_nothing_is_not_made(client: bigquery.Client, dataset: str) -> None:
    """A view's query must run when the view is created."""
    view = bigquery.Table(f"proj.{dataset}.v")
    view.view_query = f"SELECT * FROM {dataset}.missing"
    with pytest.raises(NotFound, match="Not found: Table"):
        client.create_table(view)


def nested(records: int) -> SchemaField:
    field = SchemaField("x", "STRING")
    for _ in range(records):
        field = SchemaField("r", "RECORD", fields=[field])
    return field


def test_records_nest_as_deep_as_the_agent_lets_them(client: bigquery.Client, dataset: str) -> None:
    """Fourteen in a datatype schema, and `raw` around them; a sixteenth is refused."""
    columns = parse_datatype_schema(json.dumps([nested(14).to_api_repr()]).encode(), source="x")
    schema = [SchemaField.from_api_repr(field) for field in fields_to_api(table_schema(columns))]
    client.create_table(bigquery.Table(f"proj.{dataset}.deep", schema=schema))
    row: object = {"x": "y"}
    for _ in range(14):
        row = {"r": row}
    load(client, f"{dataset}.deep", {"raw": row})

    (found,) = client.list_rows(f"{dataset}.deep")
    assert found.raw == row
    with pytest.raises(BadRequest, match="nested too deep: at most 15 levels"):
        client.create_table(bigquery.Table(f"proj.{dataset}.deeper", schema=[nested(16)]))


@pytest.mark.long
def test_a_table_has_ten_thousand_columns_and_no_more(
    client: bigquery.Client, dataset: str
) -> None:
    """Half of them nested; a row with all of them loads."""
    half = [SchemaField(f"c{index}", "INTEGER") for index in range(4_999)]
    schema = [*half, SchemaField("n", "RECORD", "REPEATED", fields=half)]
    more = SchemaField("last", "STRING")
    with pytest.raises(BadRequest, match="Too many columns: 10001"):
        client.create_table(
            bigquery.Table(f"proj.{dataset}.more", schema=[*schema, more, nested(0)])
        )
    client.create_table(bigquery.Table(f"proj.{dataset}.wide", schema=[*schema, more]))
    numbers = {field.name: number for number, field in enumerate(half)}
    load(client, f"{dataset}.wide", {**numbers, "n": [numbers], "last": "z"})

    assert client.get_table(f"{dataset}.wide").num_rows == 1
