"""Days by their index alone: what is believed, and that tables are right either way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import bigquery

from jostler.schema import fields_from_api, table_schema
from loader.bigquery.ledger import LOADS, LOADS_FIELDS
from loader.plan.trust import not_contained, sample
from tests.loader.archived import Agents, files
from tests.loader.world import DAY, World, row
from tests.support.spool import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.loader.world import Ran

Rows = list[dict[str, Any]]
FOO = "raw_exp.foo1"
ONLY = ("--datatype", "foo1")
SAMPLES = {"name": "Samples", "type": "RECORD", "mode": "REPEATED"}


@dataclass
class Case:
    """A day and what is to come of it.

    Attributes:
        day: the day.
        files: the names of the files that its partition must have, each once.
        why: what the ledger says of the index; None if it must be believed.
    """

    day: date
    files: list[str]
    why: str | None


class Days:
    """Days, one for each way in which an index can be right or wrong."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.agents = Agents(world)
        self.cases: list[Case] = []
        self._days: Iterator[date] = (DAY + timedelta(days=n) for n in range(100))

    def new(self, *numbers: int, why: str | None) -> date:
        day = next(self._days)
        self.cases.append(Case(day, sorted(f"{day:%Y/%m/%d}/m{n}.json" for n in numbers), why))
        return day

    def lie(self, why: str, change: Callable[[Rows], Rows], *, rows: int = 3) -> None:
        """Make a day of one bundle whose index is changed."""
        day = self.new(1, 2, 3, why=why)
        _, index = self.agents.store(files(1, 2, 3), day=day)
        self.agents.alter(index, change, rows=str(rows))

    def put_lies(self) -> None:
        """Make days whose index lies about its one bundle; `tests/spark/test_index.py` has more."""
        lie = self.lie
        lie("it has 3 rows, and its index 2", lambda rows: rows[:2])
        lie("it has 3 rows, and its index 4", lambda rows: [*rows, rows[-1]])
        lie("does not have the hash", lambda rows: changed(rows, Hash="0" * 32))
        lie("is not the file that", lambda rows: changed(rows, Filename=f"{_day(rows)}/m9.json"))

    def put_strangers(self) -> None:
        """Make days that have bundles which nobody vouches for."""
        agents, store, new, put = self.agents, self.agents.store, self.new, self.world.put_bundle
        day = new(1, 2, why="names no schema")
        store(files(1), day=day)
        put([row(2, day=day)], day=day)
        day = new(1, why="names no schema")
        store(files(1), day=day)
        put([row(2, day=day, go=True)], day=day)
        self.cases[-1].files.insert(0, f"/var/spool/exp/foo1/{day:%Y/%m/%d}/m2.json")
        day = new(1, why="by the schema 0{32}: it cannot be read")
        Agents(self.world, schema="0" * 32).store(files(1), day=day)
        day = new(1, why="has no index")
        self.world.remove(store(files(1), day=day)[1])
        day = new(1, why=None)  # an index without data is nobody's: what is there is loaded
        store(files(1), day=day)
        self.world.remove(store(files(2), day=day)[0])
        day = new(7, why="stored after its index")  # other rows, and the same metadata
        agents.alter(store(files(1), day=day)[0], renamed)
        day = new(1, 2, why="is not that of its bytes")
        names = [store(files(n), day=day)[1] for n in (1, 2)]
        self.swap(*names)
        day = new(1, 2, why="a Filename more than once")
        store(files(1), day=day)
        store(files(1, 2), day=day)
        day = new(1, why="line 2 is a bad row")  # of a judge that was wrong
        store({**files(1), "m2.json": b'{"Rate":"x"}'}, day=day)

    def swap(self, one: str, other: str) -> None:
        """Put each of two objects under the name of the other, with its metadata."""
        found = {name: self.agents.storage.read(name).data for name in (one, other)}
        told = {name: self.agents.storage.metadata(name) for name in (one, other)}
        for name, theirs in ((one, other), (other, one)):
            blob = self.world.storage.bucket(self.world.bucket).blob(name)
            blob.metadata = dict(told[theirs])
            blob.upload_from_string(found[theirs])

    def check(self, ran: Ran) -> None:
        """Hold tables and ledger to what must have come."""
        told = {line["date"]: line for line in self.world.ledger() if line["Status"] == "success"}
        for case in self.cases:
            line = told[case.day]
            assert self.world.rows(day=case.day) == case.files, (case, ran.err)
            counts = (line["Trusted"], line["Verified"])
            if case.why is None:
                assert counts == (line["Bundles"], 0), (case, line)
                assert (line["Sampled"] >= 1, line["Distrusted"]) == (True, "")
            else:
                assert counts == (0, line["Bundles"]), (case, line)
                assert re.search(case.why, line["Distrusted"] or ""), (case, line["Distrusted"])


def changed(rows: Rows, **change: object) -> Rows:
    """Change the last row's `raw`."""
    rows[-1]["raw"].update(change)
    return rows


def renamed(rows: Rows) -> Rows:
    rows[0]["archiver"]["Filename"] = f"{rows[0]['date'].replace('-', '/')}/m7.json"
    return rows


def _day(rows: Rows) -> str:
    filename: str = rows[0]["raw"]["Filename"]
    return filename.rpartition("/")[0]


def test_a_day_is_believed_as_a_whole_or_not_at_all(world: World, spark: object) -> None:
    """Whatever an index, a bundle or its metadata say, the table has each good row once."""
    del spark
    days = Days(world)
    day = days.new(1, 2, 3, 4, why=None)
    for n, node in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        days.agents.store(files(n), day=day, node=node)
    days.put_lies()
    days.put_strangers()
    world.gcs.seen.clear()

    ran = world.load(*ONLY, "--sample", "0.3", "--max-bad-fraction", "0.6")

    assert ran.code == 0, ran.out + ran.err
    days.check(ran)


def read_in_full(world: World) -> list[str]:
    return [name for name in world.reads() if "-data." in name]


def test_a_trusted_day_costs_its_index_and_a_sample(world: World) -> None:
    """No Spark is started for it, and the sample is as large as was asked for."""
    agents = Agents(world)
    for n in range(8):
        agents.store(files(n))
    world.gcs.seen.clear()
    ran = world.load(*ONLY, "--sample", "0.25")
    assert ran.code == 0, ran.err
    assert len(read_in_full(world)) == 2
    (told,) = world.ledger()
    assert (told["Trusted"], told["Sampled"], told["Verified"]) == (8, 2, 0)
    assert (told["RowsRead"], told["RowsLoaded"], told["PlainBytes"]) == (8, 8, None)
    assert len(world.rows()) == 8


def test_what_bigquery_refuses_is_verified_in_full_and_loaded_again(
    world: World, spark: object
) -> None:
    """It is the last judge; the failed attempt stays in the ledger."""
    del spark
    Agents(world).store(files(1, 2))
    world.fault("job_error", job="20260102", reason="invalid", message="no such column")
    ran = world.load(*ONLY)
    assert ran.code == 0, ran.err
    first, second = world.ledger()
    assert (first["Status"], first["Trusted"], first["Attempt"]) == ("failed", 1, 1)
    assert (second["Status"], second["Verified"], second["Attempt"]) == ("success", 1, 2)
    assert "no such column" in second["Distrusted"]
    assert "day.failed" not in {event["event"] for event in ran.events}
    assert len(world.rows()) == 2


@pytest.mark.long
def test_a_load_that_writes_another_number_of_rows_is_verified_in_full(
    world: World, spark: object
) -> None:
    """An index and metadata may agree with each other and not with the data."""
    del spark
    agents = Agents(world)
    for n in range(30):  # of which one is sampled, and hardly the one that lies
        data, index = agents.store(files(2 * n, 2 * n + 1))
    agents.alter(data, lambda rows: rows, rows="1")
    agents.alter(index, one_row_of(agents.storage.read(data).data), rows="1")
    ran = world.load(*ONLY)
    assert ran.code == 0, ran.err
    assert world.ledger()[-1]["Verified"] == 30
    assert len(world.rows()) == 60


def one_row_of(data: bytes) -> Callable[[Rows], Rows]:
    """Return what leaves the first row of an index, in which the bundle has its size."""

    def change(rows: Rows) -> Rows:
        rows[0]["raw"]["Length"] = len(data) - 10 - rows[0]["raw"]["Offset"]
        return rows[:1]

    return change


def test_verify_full_asks_no_index(world: World, spark: object) -> None:
    """As it was before there were any that could be trusted."""
    del spark
    Agents(world).store(files(1))
    assert world.load(*ONLY, "--verify", "full").code == 0
    (told,) = world.ledger()
    assert (told["Trusted"], told["Sampled"], told["Verified"]) == (0, 0, 1)
    assert told["Distrusted"] == ""
    assert not any("-index1." in name for name in world.reads())


def test_a_ledger_of_an_older_version_gets_the_columns(world: World) -> None:
    """Its rows have nulls there."""
    new = {"Trusted", "Sampled", "Verified", "Distrusted"}
    old = [field for field in LOADS_FIELDS if field.name not in new]
    world.client.create_dataset("jostler")
    world.client.create_table(_table(world, old))
    Agents(world).store(files(1))
    assert world.load(*ONLY).code == 0
    assert world.ledger()[0]["Trusted"] == 1


def _table(world: World, fields: list[Any]) -> bigquery.Table:
    schema = [bigquery.SchemaField(field.name, field.type) for field in fields]
    table = bigquery.Table(f"{world.project}.jostler.{LOADS}", schema=schema)
    table.time_partitioning = bigquery.TimePartitioning(field="date")
    return table


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], ""),
        ([{"name": "uuid", "type": "STRING"}], ""),
        (
            [
                {
                    "name": "Samples",
                    "type": "RECORD",
                    "mode": "REPEATED",
                    "fields": [{"name": "T", "type": "INT64"}],
                }
            ],
            "",
        ),
        ([{"name": "New", "type": "STRING"}], "the table has no raw.New"),
        ([{"name": "Rate", "type": "STRING"}], "raw.Rate: stored is FLOAT"),
        ([{"name": "Rate", "type": "FLOAT", "mode": "REPEATED"}], "stored is NULLABLE"),
        ([{"name": "UUID", "type": "STRING", "maxLength": "5"}], "stored is STRING"),
    ],
)
def test_a_schema_is_contained_if_each_row_that_fits_it_fits_the_table(
    schema: list[dict[str, Any]], why: str
) -> None:
    """It may lack columns, and no more."""
    table = table_schema(fields_from_api(SCHEMA))
    told = not_contained(table_schema(fields_from_api(schema)), table)
    assert why in told if why else not told


def test_a_table_that_requires_more_than_the_schema_does_not_contain_it() -> None:
    """A row may lack what is REQUIRED there."""
    strict = [{"name": "UUID", "type": "STRING", "mode": "REQUIRED"}]
    table = table_schema(fields_from_api(strict))
    for schema in ([], [{"name": "UUID", "type": "STRING"}]):
        told = not_contained(table_schema(fields_from_api(schema)), table)
        assert told == "the table has raw.UUID REQUIRED"
    assert not not_contained(table, table)


@pytest.mark.parametrize(
    ("bundles", "fraction", "count"),
    [(1, 0.01, 1), (1, 0.0, 1), (100, 0.01, 1), (101, 0.01, 2), (5, 1.0, 5), (0, 0.5, 0)],
)
def test_a_sample_has_its_part_of_the_bundles_and_at_least_one(
    bundles: int, fraction: float, count: int
) -> None:
    """Each time others."""
    assert len(sample(bundles, fraction)) == count
    assert sample(bundles, fraction) <= set(range(bundles))
