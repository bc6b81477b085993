"""Many clients at once."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from google.api_core.exceptions import Conflict
from google.cloud import bigquery
from google.cloud.bigquery import LoadJobConfig, SchemaField

if TYPE_CHECKING:
    from pathlib import Path

    from tests.embedded.conftest import Server

ROWS = 2_000
DAYS = [f"2022-09-{day:02}" for day in range(1, 11)]
REPLACE = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", write_disposition="WRITE_TRUNCATE")


def make(client: bigquery.Client, dataset: str) -> str:
    name = f"proj.{dataset}.t"
    table = bigquery.Table(name, [SchemaField("date", "DATE"), SchemaField("n", "INTEGER")])
    table.time_partitioning = bigquery.TimePartitioning(field="date")
    client.create_table(table)
    return name


def day_file(directory: Path, day: str) -> str:
    path = directory / f"{day}.jsonl"
    path.write_text("".join(json.dumps({"date": day, "n": n}) + "\n" for n in range(ROWS)))
    return path.as_uri()


def counts(client: bigquery.Client, table: str) -> dict[str, tuple[int, int]]:
    sql = f"SELECT date, COUNT(*) AS c, COUNT(DISTINCT n) AS d FROM `{table}` GROUP BY date"
    return {str(row.date): (row.c, row.d) for row in client.query_and_wait(sql)}


def test_ten_clients_load_ten_days(
    server: Server, client: bigquery.Client, dataset: str, tmp_path: Path
) -> None:
    """Every day has each of its rows once, though each is loaded twice over."""
    table = make(client, dataset)
    uris = {day: day_file(tmp_path, day) for day in DAYS}
    together = threading.Barrier(len(DAYS))

    def load(day: str) -> None:
        mine = server.client()
        together.wait(timeout=100)
        for _ in range(2):
            part = f"{table}${day.replace('-', '')}"
            mine.load_table_from_uri(uris[day], part, job_config=REPLACE).result()
        mine.close()

    with ThreadPoolExecutor(len(DAYS)) as pool:
        list(pool.map(load, DAYS))

    assert counts(client, table) == dict.fromkeys(DAYS, (ROWS, ROWS))


def test_two_clients_load_a_day_under_one_id(
    server: Server, client: bigquery.Client, dataset: str, tmp_path: Path
) -> None:
    """One of them loads, the other is told of the conflict and can wait for the same job."""
    table = make(client, dataset)
    append = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON")
    uri = day_file(tmp_path, DAYS[0])
    together = threading.Barrier(2)

    def load(_: int) -> bool:
        mine = server.client()
        together.wait(timeout=100)
        try:
            job = mine.load_table_from_uri(uri, table, job_config=append, job_id=f"{dataset}-1")
            won = True
        except Conflict:
            job = mine.get_job(f"{dataset}-1", location="US")
            won = False
        job.result()
        mine.close()
        return won

    with ThreadPoolExecutor(2) as pool:
        won = list(pool.map(load, range(2)))

    assert sorted(won) == [False, True]
    assert counts(client, table) == {DAYS[0]: (ROWS, ROWS)}


def added(
    client: bigquery.Client, table: str, config: LoadJobConfig, uri: str, number: int
) -> bool:
    """Load a row with one more column than the table has just now; False if that has changed."""
    known = client.get_table(table).schema
    config.schema = [*known, SchemaField(f"c{number}", "INTEGER")]
    job = client.load_table_from_uri(uri, table, job_config=config)
    error = job.exception()
    if error is None:
        return True
    assert "is missing in new schema" in str(error), error
    return False


def test_ten_clients_add_ten_columns(
    server: Server, client: bigquery.Client, dataset: str, tmp_path: Path
) -> None:
    """None of the loads fails for the others, and none of the columns is lost."""
    table = make(client, dataset)
    together = threading.Barrier(len(DAYS))

    def load(number: int) -> None:
        path = tmp_path / f"{number}.jsonl"
        path.write_text(json.dumps({"date": DAYS[0], f"c{number}": number}))
        config = LoadJobConfig(
            source_format="NEWLINE_DELIMITED_JSON",
            schema_update_options=["ALLOW_FIELD_ADDITION"],
        )
        mine = server.client()
        together.wait(timeout=100)
        while not added(mine, table, config, path.as_uri(), number):
            pass  # another was faster: read the schema again
        mine.close()

    with ThreadPoolExecutor(len(DAYS)) as pool:
        list(pool.map(load, range(len(DAYS))))

    names = {field.name for field in client.get_table(table).schema}
    assert names == {"date", "n", *(f"c{number}" for number in range(len(DAYS)))}
    assert client.get_table(table).num_rows == len(DAYS)


def test_a_reader_sees_a_day_before_or_after(
    server: Server, client: bigquery.Client, dataset: str, tmp_path: Path
) -> None:
    """While the day is replaced over and over, no query finds it empty or twice there."""
    table = make(client, dataset)
    uri = day_file(tmp_path, DAYS[0])
    part = f"{table}$20220901"
    client.load_table_from_uri(uri, part, job_config=REPLACE).result()
    done = threading.Event()

    def replace() -> None:
        mine = server.client()
        for _ in range(5):
            mine.load_table_from_uri(uri, part, job_config=REPLACE).result()
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(replace)
        seen = set()
        while not done.is_set() and not writer.done():
            seen.add(counts(client, table).get(DAYS[0]))
        writer.result()

    assert seen == {(ROWS, ROWS)}
