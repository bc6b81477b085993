"""Readers, labels and the expiration of partitions, through the official client."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery
from google.cloud.bigquery import AccessEntry, SchemaField

from tests.embedded.conftest import serving

if TYPE_CHECKING:
    from pathlib import Path

DAY_MS = 86_400_000
TODAY = datetime.now(UTC).date()
OWNERS = AccessEntry("OWNER", "specialGroup", "projectOwners")


def given(client: bigquery.Client, dataset: str, *entries: AccessEntry) -> list[AccessEntry]:
    """Set the access of a dataset; return what the service has then."""
    found = client.get_dataset(dataset)
    found.access_entries = list(entries)
    client.update_dataset(found, ["access_entries"])
    return list(client.get_dataset(dataset).access_entries)


def test_readers_are_given_and_taken(client: bigquery.Client, dataset: str) -> None:
    """The list is replaced as a whole; roles come back in the older spelling, each entry once."""
    assert list(client.get_dataset(dataset).access_entries) == [OWNERS]
    reader = AccessEntry("READER", "groupByEmail", "g@x.org")
    newer = AccessEntry("roles/bigquery.dataViewer", "groupByEmail", "g@x.org")
    assert given(client, dataset, OWNERS, newer, reader) == [OWNERS, reader]
    view = AccessEntry(None, "view", {"projectId": "p", "datasetId": "d", "tableId": "v"})
    domain = AccessEntry("READER", "domain", "x.org")
    assert given(client, dataset, OWNERS, view, domain) == [OWNERS, view, domain]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"role": "READER"}, "one of userByEmail"),
        ({"role": "READER", "domain": "x.org", "groupByEmail": "g@x.org"}, "one of userByEmail"),
        ({"role": "reader", "domain": "x.org"}, "role: 'reader'"),
        ({"role": "READER", "specialGroup": "everybody"}, "specialGroup: everybody"),
        ({"role": "READER", "userByEmail": "a@nobody.invalid"}, "a@nobody.invalid does not exist"),
        ({"role": "READER", "groupByEmail": "g"}, "Group g does not exist"),
    ],
)
def test_an_entry_that_is_none_is_refused(
    client: bigquery.Client, dataset: str, entry: dict[str, str], told: str
) -> None:
    """And the others stay as they were."""
    path = f"/projects/proj/datasets/{dataset}"
    with pytest.raises(BadRequest, match=told):
        client._connection.api_request(method="PATCH", path=path, data={"access": [entry]})
    assert list(client.get_dataset(dataset).access_entries) == [OWNERS]


@pytest.mark.parametrize(
    "labels",
    [{"A": "b"}, {"a": "B"}, {"1": "b"}, {"a": "x" * 64}, {"a": "b c"}, {"": "b"},
     {f"a{n}": "" for n in range(65)}],
    ids=["key", "value", "digit", "long", "space", "empty", "many"],
)  # fmt: skip
def test_labels_are_as_bigquery_takes_them(
    client: bigquery.Client, dataset: str, labels: dict[str, str]
) -> None:
    """Of datasets and of tables."""
    table = bigquery.Table(f"proj.{dataset}.t", schema=[SchemaField("n", "INTEGER")])
    table.labels = labels
    with pytest.raises(BadRequest, match="abel"):
        client.create_table(table)
    found = client.get_dataset(dataset)
    found.labels = labels
    with pytest.raises(BadRequest, match="abel"):
        client.update_dataset(found, ["labels"])


def partitioned(client: bigquery.Client, dataset: str, days: int | None) -> bigquery.Table:
    """Make a table with a row of each of the last five days, and one without a day."""
    table = bigquery.Table(
        f"proj.{dataset}.t", schema=[SchemaField("date", "DATE"), SchemaField("n", "INTEGER")]
    )
    table.time_partitioning = bigquery.TimePartitioning(
        field="date", expiration_ms=None if days is None else days * DAY_MS
    )
    made = client.create_table(table)
    rows = [{"date": str(TODAY - timedelta(days=n)), "n": n} for n in range(5)]
    client.load_table_from_json([*rows, {"n": 99}], made).result()
    return made


def numbers(client: bigquery.Client, dataset: str) -> list[int]:
    rows = client.query_and_wait(f"SELECT n FROM {dataset}.t ORDER BY n")
    return [row.n for row in rows]


def test_partitions_expire_days_after_their_day(client: bigquery.Client, dataset: str) -> None:
    """Of two days: today, yesterday and the day before that; rows without a day stay."""
    made = partitioned(client, dataset, 2)
    assert numbers(client, dataset) == [0, 1, 2, 99]
    found = client.get_table(made)
    assert found.time_partitioning.expiration_ms == 2 * DAY_MS
    client.load_table_from_json([{"date": "2020-01-01", "n": 5}], made).result()
    assert numbers(client, dataset) == [0, 1, 2, 99]


def test_an_expiration_is_set_changed_and_removed(client: bigquery.Client, dataset: str) -> None:
    """Null removes it; a patch without it leaves it."""
    made = partitioned(client, dataset, None)
    assert numbers(client, dataset) == [0, 1, 2, 3, 4, 99]

    def patch(**spec: object) -> object:
        path = f"/projects/proj/datasets/{dataset}/tables/t"
        body = {"timePartitioning": {"type": "DAY", "field": "date", **spec}}
        client._connection.api_request(method="PATCH", path=path, data=body)
        return client.get_table(made).time_partitioning.expiration_ms

    assert patch(expirationMs=str(3 * DAY_MS)) == 3 * DAY_MS
    assert numbers(client, dataset) == [0, 1, 2, 3, 99]
    assert patch() == 3 * DAY_MS
    assert patch(expirationMs=None) is None
    with pytest.raises(BadRequest, match="expirationMs"):
        patch(expirationMs="-1")


def test_an_expiration_is_an_option_of_sql(client: bigquery.Client, dataset: str) -> None:
    """Of CREATE TABLE and ALTER TABLE, and shown in TABLE_OPTIONS."""

    def options() -> list[str]:
        sql = f"SELECT option_value FROM {dataset}.INFORMATION_SCHEMA.TABLE_OPTIONS"
        where = "option_name = 'partition_expiration_days'"
        return [row.option_value for row in client.query_and_wait(f"{sql} WHERE {where}")]

    def run(sql: str) -> None:
        client.query_and_wait(sql)

    run(
        f"CREATE TABLE {dataset}.t (date DATE, n INT64) PARTITION BY date"
        " OPTIONS (partition_expiration_days = 2.5, description = 'x')"
    )
    assert options() == ["2.5"]
    day = "DATE_SUB(CURRENT_DATE(), INTERVAL 9 DAY)"
    run(f"INSERT INTO {dataset}.t VALUES ({day}, 9), (CURRENT_DATE(), 0)")
    assert numbers(client, dataset) == [0]
    run(f"ALTER TABLE {dataset}.t SET OPTIONS (partition_expiration_days = NULL)")
    assert options() == []
    run(f"INSERT INTO {dataset}.t VALUES ({day}, 9)")
    assert numbers(client, dataset) == [0, 9]
    run(f"ALTER TABLE {dataset}.t SET OPTIONS (partition_expiration_days = 3)")
    assert numbers(client, dataset) == [0]
    run(f"CREATE TABLE {dataset}.flat (n INT64)")
    for table, value, told in (("flat", 1, "partitioned table"), ("t", 0, "positive number")):
        sql = f"ALTER TABLE {dataset}.{table} SET OPTIONS (partition_expiration_days = {value})"
        with pytest.raises(BadRequest, match=told):
            run(sql)


def test_what_expired_while_the_server_was_off_is_gone(tmp_path: Path) -> None:
    """The first request finds nothing of it: a midnight passes without a write."""
    dataset = f"ds_{uuid.uuid4().hex[:8]}"
    with serving(tmp_path) as server, server.client() as client:
        client.create_dataset(dataset)
        partitioned(client, dataset, 30)
        assert len(numbers(client, dataset)) == 6
    import duckdb  # noqa: PLC0415 - stands for time that passes

    with duckdb.connect(str(tmp_path / "bigquery.duckdb")) as database:
        old, new = f'"expirationMs":"{30 * DAY_MS}"', f'"expirationMs":"{DAY_MS}"'
        database.execute("UPDATE meta.resources SET body = replace(body, ?, ?)", [old, new])
    with serving(tmp_path) as server, server.client() as client:
        assert numbers(client, dataset) == [0, 1, 99]
